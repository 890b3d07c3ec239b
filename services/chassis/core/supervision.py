"""Supervised background loops: a loop that fails is logged and restarted with backoff."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from pointsman.services.chassis.core.ids import jitter

MAX_BACKOFF_SECONDS = 30.0

log = structlog.get_logger()


class Loops:
    """The supervised loops of one service."""

    def __init__(self) -> None:
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def start(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        """Run `work` again whenever it ends or fails, with growing pauses; failures are logged."""
        self._tasks[name] = asyncio.create_task(_supervise(name, work), name=name)

    async def stop(self) -> None:
        """Cancel all loops and wait for their end."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._tasks.clear()


async def _supervise(name: str, work: Callable[[], Awaitable[None]]) -> None:
    backoff_seconds = 0.1
    while True:
        started = asyncio.get_running_loop().time()
        try:
            await work()
        except Exception as error:  # noqa: BLE001 - a loop survives every failure of its work
            log.error("loop_failed", loop=name, error=type(error).__name__, detail=str(error))
            if _is_stopped():
                return
        if asyncio.get_running_loop().time() - started > MAX_BACKOFF_SECONDS:
            backoff_seconds = 0.1
        await asyncio.sleep(jitter(backoff_seconds))
        backoff_seconds = min(backoff_seconds * 2, MAX_BACKOFF_SECONDS)


def _is_stopped() -> bool:
    """Whether this task was cancelled, even if an exception during its clean-up has replaced the CancelledError."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
