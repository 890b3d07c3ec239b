"""What the loops of effects and timers share: which refusals pass by themselves, and how a loop waits for work."""

import asyncio

from pointsman.services.chassis.core.errors import Code

TRANSIENT = frozenset({Code.UNAVAILABLE, Code.DEADLINE_EXCEEDED, Code.RESOURCE_EXHAUSTED, Code.ABORTED})


async def wait_for_notification(event: asyncio.Event, seconds: float) -> None:
    """Wait until the event is set, at most so long."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
