"""The only place that reads a clock; everything else is given `now`."""

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
    """A database server's clock, read now and then and carried on by a clock that nobody can set."""

    def __init__(self) -> None:
        self._offset_us = to_us(SystemClock().now()) - _boot_us()

    def observe(self, server_time: datetime, before_us: int) -> None:
        """Take the server's time, read between before_us (this clock's own ticks) and now."""
        self._offset_us = to_us(server_time) - (before_us + _boot_us()) // 2

    def now(self) -> datetime:
        """The server's time, to within the round trip of the last reading."""
        return from_us(self._offset_us + _boot_us())


def ticks_us() -> int:
    """Microseconds of a clock that only goes forward, for measuring and for DatabaseClock.observe."""
    return _boot_us()


def to_us(moment: datetime) -> int:
    """A moment as whole microseconds since 1970, the form in which every store keeps time."""
    return (moment - EPOCH) // _MICROSECOND


def from_us(microseconds: int) -> datetime:
    """The moment that to_us made into a number."""
    return EPOCH + timedelta(microseconds=microseconds)


def _boot_us() -> int:
    return time.clock_gettime_ns(_BOOT_CLOCK) // 1000
