"""Commands that use the control plane inside another command: that one waits for them before it ends."""

import asyncio
import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LINGER_SECONDS = 10.0
STEP_SECONDS = 0.05


@contextmanager
def staying(path: Path) -> Iterator[None]:
    """Be a guest while the block runs; a lock says so, and ends with its process."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield


async def guests_gone(path: Path) -> None:
    """Wait until no guest is there any more, but not for ever."""
    with path.open("a") as file:
        for _ in range(int(LINGER_SECONDS / STEP_SECONDS)):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                await asyncio.sleep(STEP_SECONDS)
            else:
                return
