"""One command, one decision: what a schedule does, and the machine that the chassis runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from pointsman.services.chassis.core.errors import Reason, Refusal, not_found, state_forbids
from pointsman.services.chassis.core.machine import CancelTimer, Decision, Effect, Event, Machine, SetTimer
from pointsman.services.orchestrator.domain.schedules import commands, events
from pointsman.services.orchestrator.domain.schedules.apply import apply
from pointsman.services.orchestrator.domain.schedules.calendar import next_after
from pointsman.services.orchestrator.domain.schedules.due import came_due
from pointsman.services.orchestrator.domain.schedules.enums import OverlapPolicy, ScheduleEvent, ScheduleState
from pointsman.services.orchestrator.domain.schedules.model import Schedule

KIND = "schedule"
NEXT = "schedule.next"
"""The timer of the next time."""
START_RUN = "schedule.start_run"
"""The effect that starts the run of a time."""


@dataclass(frozen=True, slots=True)
class StartRun:
    """Start the run of a time."""

    nominal_at: datetime
    asked: bool = False
    """Whether a person asked for it, so that a pause does not matter."""


def decide(schedule: Schedule | None, command: Any, now: datetime) -> Decision:
    """What a command leads to, or why it is refused."""
    if isinstance(command, commands.Create):
        return _create(schedule, command, now)
    if schedule is None:
        raise not_found(KIND, command.entity_id)
    return _HANDLERS[type(command)](schedule, command, now)


def _create(schedule: Schedule | None, command: commands.Create, now: datetime) -> Decision:
    if schedule is not None:
        metadata = {"kind": KIND, "id": schedule.schedule_id}
        raise Refusal(Reason.ALREADY_EXISTS, "there is a schedule with this id", metadata=metadata)
    if command.others >= command.limit:
        raise Refusal(
            Reason.OVERLOADED,
            f"this project has {command.others} schedules, which is as many as it may; delete one first",
            metadata={"limit": str(command.limit)},
        )
    next_at = next_after(command.spec, now)
    data = events.Created(command.entity_id, command.spec, command.template, command.principal, next_at)
    event = Event(str(ScheduleEvent.CREATED), "", str(ScheduleState.ACTIVE), data)
    return Decision([event], _ack(command.entity_id, ScheduleState.ACTIVE), timers=[SetTimer(NEXT, next_at)])


def _ack(schedule_id: str, status: ScheduleState) -> commands.ScheduleAck:
    return commands.ScheduleAck(schedule_id, str(status))


def _nothing(it: Schedule) -> Decision:
    return Decision([], _ack(it.schedule_id, it.status))


def _stays(it: Schedule, name: ScheduleEvent, data: Any, *starts: datetime) -> Decision:
    """An event that leaves the state as it is, and the runs that it asks for."""
    event = Event(str(name), str(it.status), str(it.status), data)
    effects = [Effect(START_RUN, StartRun(time)) for time in starts]
    return Decision([event], _ack(it.schedule_id, it.status), effects)


def _come_due(it: Schedule, _command: commands.ComeDue, now: datetime) -> Decision:
    if it.status is not ScheduleState.ACTIVE or it.next_at is None:
        return _nothing(it)
    data = came_due(it, it.next_at, now)
    event = Event(str(ScheduleEvent.CAME_DUE), str(it.status), str(it.status), data)
    effects = [Effect(START_RUN, StartRun(time)) for time in data.starting]
    return Decision([event], _ack(it.schedule_id, it.status), effects, [SetTimer(NEXT, data.next_at)])


def _trigger(it: Schedule, _command: commands.Trigger, now: datetime) -> Decision:
    if it.status is ScheduleState.DELETED:
        raise _refusal(it, "it is deleted")
    if it.spec.overlap is OverlapPolicy.SKIP and it.is_busy:
        live = ", ".join(it.live_run_ids) or "about to start"
        raise _forbidden(it, f"a run of it is live ({live}); wait for its end, cancel it, or let runs overlap")
    asked = _stays(it, ScheduleEvent.TRIGGERED, events.Triggered(now))
    return msgspec.structs.replace(asked, effects=[Effect(START_RUN, StartRun(now, asked=True))])


def _run_started(it: Schedule, command: commands.RunStarted, _now: datetime) -> Decision:
    if command.nominal_at not in it.starting:
        return _nothing(it)
    return _stays(it, ScheduleEvent.STARTED, events.Started(command.nominal_at, command.run_id))


def _start_refused(it: Schedule, command: commands.StartRefused, _now: datetime) -> Decision:
    if command.nominal_at not in it.starting:
        return _nothing(it)
    then = next(iter(it.backlog), None)
    data = events.Refused(command.nominal_at, command.reason, then)
    return _stays(it, ScheduleEvent.START_REFUSED, data, *([then] if then else []))


def _run_ended(it: Schedule, command: commands.RunEnded, _now: datetime) -> Decision:
    """Also of a run whose start was not recorded yet; one that is not known any more changes nothing."""
    if command.run_id not in it.live_run_ids and command.nominal_at not in it.starting:
        return _nothing(it)
    then = next(iter(it.backlog), None)
    data = events.Ended(command.nominal_at, command.run_id, command.outcome, then)
    return _stays(it, ScheduleEvent.RUN_ENDED, data, *([then] if then else []))


def _moved(it: Schedule, name: ScheduleEvent, target: ScheduleState, data: Any) -> Decision:
    event = Event(str(name), str(it.status), str(target), data)
    timers = [SetTimer(NEXT, data.next_at)] if isinstance(data, events.Resumed) else [CancelTimer(NEXT)]
    return Decision([event], _ack(it.schedule_id, target), timers=timers)


def _pause(it: Schedule, command: commands.Pause, _now: datetime) -> Decision:
    if it.status is not ScheduleState.ACTIVE:
        raise _refusal(it, f"it is {it.status.lower()} already")
    return _moved(it, ScheduleEvent.PAUSED, ScheduleState.PAUSED, events.Stopped(command.reason))


def _resume(it: Schedule, _command: commands.Resume, now: datetime) -> Decision:
    if it.status is not ScheduleState.PAUSED:
        raise _refusal(it, f"it is {it.status.lower()}: only a paused schedule is resumed")
    return _moved(it, ScheduleEvent.RESUMED, ScheduleState.ACTIVE, events.Resumed(next_after(it.spec, now)))


def _delete(it: Schedule, command: commands.Delete, _now: datetime) -> Decision:
    if it.status is ScheduleState.DELETED:
        raise _refusal(it, "it is deleted already")
    return _moved(it, ScheduleEvent.DELETED, ScheduleState.DELETED, events.Stopped(command.reason))


_ALLOWED: Mapping[ScheduleState, tuple[str, ...]] = {
    ScheduleState.ACTIVE: ("pause", "trigger", "delete"),
    ScheduleState.PAUSED: ("resume", "trigger", "delete"),
    ScheduleState.DELETED: (),
}


def _refusal(it: Schedule, message: str) -> Refusal:
    """Why not, and what is possible instead."""
    allowed = _ALLOWED[it.status]
    instead = f"possible now: {', '.join(allowed)}" if allowed else "make another one"
    return _forbidden(it, f"{message}; {instead}")


def _forbidden(it: Schedule, message: str) -> Refusal:
    return state_forbids(KIND, it.schedule_id, str(it.status), _ALLOWED[it.status], message)


_HANDLERS: Mapping[type, Callable[[Schedule, Any, datetime], Decision]] = {
    commands.Pause: _pause,
    commands.Resume: _resume,
    commands.Delete: _delete,
    commands.Trigger: _trigger,
    commands.ComeDue: _come_due,
    commands.RunStarted: _run_started,
    commands.StartRefused: _start_refused,
    commands.RunEnded: _run_ended,
}
MACHINE = Machine(
    kind=KIND,
    version=1,
    state_type=Schedule,
    decide=decide,
    apply=apply,
    status=lambda schedule: str(schedule.status),
    run_id=lambda _schedule: "",
    events=events.EVENTS,
    answers=commands.ANSWERS,
)
"""Without an end: a span over the months of a schedule would say nothing, so each event is in its own trace."""
