"""How loops wait: for a notification or a timeout, and after which refusals they try again."""

import asyncio

from pointsman.services.chassis.core.errors import Code

TRANSIENT = frozenset({Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED, Code.RESOURCE_EXHAUSTED, Code.ABORTED})
"""Refusals that may pass by themselves."""


async def wait_for_notification(event: asyncio.Event, seconds: float) -> None:
    """Wait until the event is set or the time is over: a notification may be lost, so no loop waits for one alone."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
