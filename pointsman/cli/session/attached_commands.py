"""Commands attached to another command's embedded control plane, which waits for them before it stops."""

import asyncio
import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LINGER_SECONDS = 10.0
STEP_SECONDS = 0.05


@contextmanager
def attached(path: Path) -> Iterator[None]:
    """Attaches this command during the block, by a shared lock, which ends with the process."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield


async def wait_until_detached(path: Path) -> None:
    """Waits until no command is attached, for at most LINGER_SECONDS."""
    with path.open("a") as file:
        for _ in range(int(LINGER_SECONDS / STEP_SECONDS)):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                await asyncio.sleep(STEP_SECONDS)
            else:
                return
