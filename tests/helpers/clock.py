"""A clock that stands still until a test moves it."""

from datetime import UTC, datetime, timedelta


class FakeClock:
    """Time under the test's control."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now = start

    def now(self) -> datetime:
        """The time that the test has set."""
        return self._now

    def advance(self, **parts: float) -> None:
        """Let time pass: `clock.advance(minutes=5)`."""
        self._now += timedelta(**parts)
