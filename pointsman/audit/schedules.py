"""Invariants of schedules: no time starts two runs, every run is the one of its time, an active schedule has its timer."""

from collections.abc import Iterator

from sqlalchemy import Connection

from pointsman.services.chassis.engine.audit import History, Violation
from pointsman.services.orchestrator.domain.run import run_id_for
from pointsman.services.orchestrator.domain.schedules.enums import ScheduleState
from pointsman.services.orchestrator.domain.schedules.events import Ended, Started
from pointsman.services.orchestrator.domain.schedules.machine import NEXT
from pointsman.services.orchestrator.domain.schedules.model import Schedule, start_key


def prove_schedule(_connection: Connection, history: History) -> Iterator[Violation]:
    """Every violation of one schedule."""
    schedule: Schedule = history.state
    yield from _runs(history, schedule)
    is_active = schedule.status is ScheduleState.ACTIVE
    if is_active is not (NEXT in history.timers):
        said = "an active schedule has no timer" if is_active else "a schedule that is not active has a timer"
        yield history.violation("timer", history.row.version, said)


def _runs(history: History, schedule: Schedule) -> Iterator[Violation]:
    started: set[object] = set()
    for step, event in zip(history.steps, history.events, strict=True):
        if not isinstance(event.data, Started | Ended):
            continue
        time, run_id = event.data.nominal_at, event.data.run_id
        if run_id != run_id_for(history.row.project, start_key(schedule.schedule_id, time)):
            yield history.violation("start", step.seq, f"{run_id} is not the run of {time}")
        if isinstance(event.data, Started) and time in started:
            yield history.violation("start", step.seq, f"the run of {time} was started twice")
        started.add(time)
