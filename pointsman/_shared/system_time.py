"""The system's clock, for what outlives a process: tokens and certificates."""

import time


def now_seconds() -> float:
    """Seconds since the epoch."""
    return time.time()  # noqa: TID251 - the one place outside of the services that reads it
