"""Waiting for a condition instead of sleeping and hoping."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

Value = TypeVar("Value")
STEP_SECONDS = 0.01


async def eventually(condition: Callable[[], Awaitable[Value]], seconds: float = 10.0) -> Value:
    """The condition's first true value; a failure when it never becomes true."""
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        value = await condition()
        if value:
            return value
        assert asyncio.get_running_loop().time() < deadline, f"not true within {seconds} s"
        await asyncio.sleep(STEP_SECONDS)


def eventually_now(condition: Callable[[], Value], seconds: float = 10.0) -> Value:
    """The same for code without an event loop."""
    pause = threading.Event()
    for _ in range(int(seconds / STEP_SECONDS)):
        value = condition()
        if value:
            return value
        pause.wait(STEP_SECONDS)
    raise AssertionError(f"not true within {seconds} s")
