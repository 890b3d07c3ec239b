"""The times of a schedule: cron in a time zone, with the days on which the clocks change."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import islice
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from pointsman.services.orchestrator.domain.schedules.model import Spec

FIELDS = 5
RANGES = "minutes are 0-59, hours 0-23, days of the month 1-31 (L is the last), months 1-12, days of the week 0-7"
MAX_TIMES = 100
"""How many missed times are looked at: a schedule of every minute that was away for a month is not run 40,000 times."""
MACHINES_OWN = "localtime"
"""Another zone on another machine."""
CLOCK_CHANGE = timedelta(hours=3)
"""Clocks go back by less than this."""


def problem_of_cron(cron: str) -> str:
    """Why this is no cron line that ever comes due; empty where it is one."""
    if len(cron.split()) != FIELDS:
        return "takes five fields (minute, hour, day of the month, month, day of the week), such as 0 3 * * *"
    try:
        CronSim(cron, datetime(2024, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        return f"'{cron}' has a {str(error).lower()}; {RANGES}, such as 0 3 * * * or */30 8-18 * * MON-FRI"
    if next(CronSim(cron, datetime(2024, 1, 1, tzinfo=UTC)), None) is None:
        return f"'{cron}' names a day that never comes; {RANGES}"
    return ""


def problem_of_time_zone(name: str) -> str:
    """Why this is no time zone; empty where it is one."""
    if name in available_timezones() - {MACHINES_OWN}:
        return ""
    return f"'{name}' is no time zone; take a name such as Europe/Berlin or UTC"


def next_after(spec: Spec, moment: datetime) -> datetime:
    """The first time after a moment; where clocks go back, a local time that was there already does not come again."""
    times = (time.astimezone(UTC) for time in CronSim(spec.cron, moment.astimezone(_zone(spec))))
    return next(time for time in times if time > moment)


def times_until(spec: Spec, first: datetime, moment: datetime) -> tuple[datetime, ...]:
    """The times from `first` on that are over at a moment, the latest hundred of them, in order."""
    found = list(islice(_backwards(spec, first, moment), MAX_TIMES))
    return tuple(reversed(found))


def _backwards(spec: Spec, first: datetime, moment: datetime) -> Iterator[datetime]:
    # from later on: in the hour that comes twice, a local time that looks later may be over already
    for local in CronSim(spec.cron, (moment + CLOCK_CHANGE).astimezone(_zone(spec)), reverse=True):
        time = local.astimezone(UTC)
        if time < first:
            return
        if time <= moment:
            yield time


def _zone(spec: Spec) -> tzinfo:
    return UTC if spec.time_zone == "UTC" else ZoneInfo(spec.time_zone)
