"""Waiting for a condition instead of sleeping and hoping."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

from tests.helpers.limits import Limit

Value = TypeVar("Value")
STEP_SECONDS, LONGEST_STEP_SECONDS, GROWTH = 0.01, 0.05, 1.1
"""Whoever waits long looks less often: a look that starts a query or a call takes time from what is waited for."""


def _steps() -> Iterator[float]:
    step = STEP_SECONDS
    while True:
        yield step
        step = min(LONGEST_STEP_SECONDS, step * GROWTH)


async def eventually(condition: Callable[[], Awaitable[Value]], seconds: float = 10.0) -> Value:
    """The condition's first true value; a failure when it never becomes true."""
    limit, steps = Limit(seconds), _steps()
    while True:
        value = await condition()
        if value:
            return value
        assert not limit.is_over(), f"not true within {seconds} s"
        await asyncio.sleep(next(steps))


def eventually_now(condition: Callable[[], Value], seconds: float = 10.0) -> Value:
    """The same for code without an event loop."""
    limit, steps, pause = Limit(seconds), _steps(), threading.Event()
    while True:
        value = condition()
        if value:
            return value
        assert not limit.is_over(), f"not true within {seconds} s"
        pause.wait(next(steps))
