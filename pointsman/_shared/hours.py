"""A span of the day, such as quiet hours."""

import re
from dataclasses import dataclass
from datetime import datetime, time, timedelta

_HOURS = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)")


class InvalidHours(ValueError):
    """Text that is no span of hours."""


@dataclass(frozen=True, slots=True)
class Hours:
    """From one time of day to another, which may be on the next day."""

    begin: time
    end: time

    def __str__(self) -> str:
        return f"{self.begin:%H:%M}-{self.end:%H:%M}"

    def ends_after(self, moment: datetime) -> datetime:
        """The end of the span that the moment is in; the moment itself outside of it."""
        clock = moment.time()
        over_midnight = self.begin > self.end
        inside = (clock >= self.begin or clock < self.end) if over_midnight else self.begin <= clock < self.end
        if not inside:
            return moment
        today = moment.replace(hour=self.end.hour, minute=self.end.minute, second=0, microsecond=0)
        return today if today > moment else today + timedelta(days=1)


def read_hours(text: str) -> Hours:
    """Reads `22:00-07:00`; raises InvalidHours for anything else."""
    found = _HOURS.fullmatch(text)
    if found is None or found.group(1, 2) == found.group(3, 4):
        raise InvalidHours("takes two different times of day, such as 22:00-07:00")
    begin_hour, begin_minute, end_hour, end_minute = map(int, found.groups())
    return Hours(time(begin_hour, begin_minute), time(end_hour, end_minute))
