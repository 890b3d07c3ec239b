"""What is done about the times that are over: which start a run, which wait, which are missed or overlap."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from pointsman.services.orchestrator.domain.schedules.calendar import next_after, times_until
from pointsman.services.orchestrator.domain.schedules.enums import MissedPolicy, OverlapPolicy
from pointsman.services.orchestrator.domain.schedules.events import CameDue
from pointsman.services.orchestrator.domain.schedules.model import Schedule, Spec

ON_TIME = timedelta(seconds=60)
"""A time that is over for less than this was not missed."""


def came_due(schedule: Schedule, first: datetime, now: datetime) -> CameDue:
    """The decision about all times from the first that is not settled until now."""
    spec = schedule.spec
    times = times_until(spec, first, now)
    wanted = _wanted(spec, times, now)
    missed = len(times) - len(wanted)
    next_at = next_after(spec, now) if times else first  # a clock that was set back brings no time twice
    if spec.overlap is OverlapPolicy.ALLOW:
        return CameDue(next_at, wanted, missed=missed)
    if schedule.is_busy:
        return CameDue(next_at, missed=missed, overlapped=len(wanted))
    return CameDue(next_at, wanted[:1], wanted[1:], missed)


def _wanted(spec: Spec, times: Sequence[datetime], now: datetime) -> tuple[datetime, ...]:
    """The times that have a right to a run."""
    on_time = tuple(time for time in times[-1:] if now - time < ON_TIME)
    if spec.missed is MissedPolicy.SKIP:
        return on_time
    window = timedelta(seconds=spec.catch_up_seconds)
    late = tuple(time for time in times if now - time <= window) or on_time
    return late if spec.missed is MissedPolicy.ALL else late[-1:]
