"""Waiting for a condition instead of sleeping and hoping."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tests.helpers.limits import Limit

Value = TypeVar("Value")
STEP_SECONDS = 0.01


async def eventually(condition: Callable[[], Awaitable[Value]], seconds: float = 10.0) -> Value:
    """The condition's first true value; a failure when it never becomes true."""
    limit = Limit(seconds)
    while True:
        value = await condition()
        if value:
            return value
        assert not limit.is_over(), f"not true within {seconds} s"
        await asyncio.sleep(STEP_SECONDS)


def eventually_now(condition: Callable[[], Value], seconds: float = 10.0) -> Value:
    """The same for code without an event loop."""
    limit, pause = Limit(seconds), threading.Event()
    while True:
        value = condition()
        if value:
            return value
        assert not limit.is_over(), f"not true within {seconds} s"
        pause.wait(STEP_SECONDS)
