"""Background work that is never silently dead: a loop that fails is logged and started again."""

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
        """Run `work` for ever: when it fails, say so, wait a little longer each time, and run it again."""
        self._tasks[name] = asyncio.create_task(_supervise(name, work), name=name)

    async def stop(self) -> None:
        """Cancel all loops and wait until they are gone."""
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
        except Exception as error:  # noqa: BLE001 - a loop outlives whatever its work throws
            log.error("loop_failed", loop=name, error=type(error).__name__, detail=str(error))
            if _is_stopped():
                return
        if asyncio.get_running_loop().time() - started > MAX_BACKOFF_SECONDS:
            backoff_seconds = 0.1
        await asyncio.sleep(jitter(backoff_seconds))
        backoff_seconds = min(backoff_seconds * 2, MAX_BACKOFF_SECONDS)


def _is_stopped() -> bool:
    """Whether this task was cancelled, also where what it did on its way out has failed and taken the place of that."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
