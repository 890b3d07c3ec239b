"""How an event changes a schedule; the same function rebuilds it from its journal."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from pointsman.services.chassis.core.machine import Event
from pointsman.services.orchestrator.domain.schedules.enums import ScheduleEvent, ScheduleState
from pointsman.services.orchestrator.domain.schedules.events import (
    CameDue,
    Created,
    Ended,
    Refused,
    Resumed,
    Started,
    Stopped,
    Triggered,
)
from pointsman.services.orchestrator.domain.schedules.model import MAX_STARTS, Schedule, Start


def apply(schedule: Schedule | None, event: Event, at: datetime) -> Schedule:
    """Fold one event."""
    if schedule is None:
        new: Created = event.data
        return Schedule(new.schedule_id, ScheduleState.ACTIVE, new.spec, new.template, new.principal, at, new.next_at)
    moved = replace(schedule, status=ScheduleState(event.target))
    return _CHANGES[ScheduleEvent(event.name)](moved, event.data)


def _came_due(it: Schedule, data: CameDue) -> Schedule:
    return replace(
        it,
        next_at=data.next_at,
        starting=(*it.starting, *data.starting),
        backlog=(*it.backlog, *data.backlog),
        missed=it.missed + data.missed,
        overlapped=it.overlapped + data.overlapped,
    )


def _triggered(it: Schedule, data: Triggered) -> Schedule:
    return replace(it, starting=(*it.starting, data.nominal_at))


def _started(it: Schedule, data: Started) -> Schedule:
    live = (*it.live_run_ids, data.run_id)
    return _remembered(replace(it, live_run_ids=live, started=it.started + 1), Start(data.nominal_at, data.run_id))


def _refused(it: Schedule, data: Refused) -> Schedule:
    recorded = _remembered(replace(it, refused=it.refused + 1), Start(data.nominal_at, reason=data.reason))
    return _next_of_backlog(recorded, data.then)


def _ended(it: Schedule, data: Ended) -> Schedule:
    is_new = data.run_id not in it.live_run_ids
    live = tuple(run_id for run_id in it.live_run_ids if run_id != data.run_id)
    counted = replace(it, live_run_ids=live, started=it.started + is_new)
    recorded = _remembered(counted, Start(data.nominal_at, data.run_id, data.outcome))
    return _next_of_backlog(recorded, data.then)


def _remembered(it: Schedule, start: Start) -> Schedule:
    """With what became of a time, which is not about to start any more."""
    others = tuple(one for one in it.starts if one.nominal_at != start.nominal_at)
    starting = tuple(time for time in it.starting if time != start.nominal_at)
    return replace(it, starting=starting, starts=(*others, start)[-MAX_STARTS:])


def _next_of_backlog(it: Schedule, then: datetime | None) -> Schedule:
    if then is None:
        return it
    left = tuple(time for time in it.backlog if time != then)
    return replace(it, starting=(*it.starting, then), backlog=left)


def _stopped(it: Schedule, data: Stopped) -> Schedule:
    return replace(it, next_at=None, backlog=(), missed=it.missed + len(it.backlog), said=data.reason)


def _resumed(it: Schedule, data: Resumed) -> Schedule:
    return replace(it, next_at=data.next_at, said="")


_CHANGES: Mapping[ScheduleEvent, Callable[[Schedule, Any], Schedule]] = {
    ScheduleEvent.CAME_DUE: _came_due,
    ScheduleEvent.TRIGGERED: _triggered,
    ScheduleEvent.STARTED: _started,
    ScheduleEvent.START_REFUSED: _refused,
    ScheduleEvent.RUN_ENDED: _ended,
    ScheduleEvent.PAUSED: _stopped,
    ScheduleEvent.RESUMED: _resumed,
    ScheduleEvent.DELETED: _stopped,
}
