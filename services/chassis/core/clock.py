"""The only reader of clocks; everything else gets `now` as an argument."""

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    """Tells the time in UTC."""

    def now(self) -> datetime:
        """The current time."""


class SystemClock:
    """This machine's wall clock: the database's clock too, when the database is a file on it."""

    def now(self) -> datetime:
        """The machine's time."""
        return datetime.now(UTC)  # noqa: TID251


class DatabaseClock:
    """The clock of a database server: read periodically, and advanced by the boot clock, which cannot be set."""

    def __init__(self) -> None:
        self._offset_us = to_us(SystemClock().now()) - _boot_us()

    def observe(self, server_time: datetime, before_us: int) -> None:
        """Set the clock from the server's time, which was read between before_us (ticks) and now."""
        self._offset_us = to_us(server_time) - (before_us + _boot_us()) // 2

    def now(self) -> datetime:
        """The server's time, to within the round trip of the last reading."""
        return from_us(self._offset_us + _boot_us())


def ticks_us() -> int:
    """Microseconds of a monotonic clock, for durations and for DatabaseClock.observe."""
    return _boot_us()


def to_us(moment: datetime) -> int:
    """A time as microseconds since 1970, as stores hold it."""
    return (moment - EPOCH) // _MICROSECOND


def from_us(microseconds: int) -> datetime:
    """The inverse of to_us."""
    return EPOCH + timedelta(microseconds=microseconds)


def _boot_us() -> int:
    return time.clock_gettime_ns(_BOOT_CLOCK) // 1000
