"""What people, timers and runs ask of a schedule."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from pointsman.services.orchestrator.domain.schedules.model import Spec, Template


@dataclass(frozen=True, slots=True)
class Create:
    """Begin to start runs at the times of a calendar."""

    entity_id: str
    project: str
    spec: Spec
    template: Template
    principal: str
    limit: int
    """How many schedules a project may have."""
    others: int = 0
    """How many it has; the store adds it in the transaction that decides."""


@dataclass(frozen=True, slots=True)
class Pause:
    """Start no more runs for now."""

    entity_id: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Resume:
    """Go on with the next time; what came meanwhile is not made up for."""

    entity_id: str


@dataclass(frozen=True, slots=True)
class Delete:
    """Start no more runs for good; live ones go on."""

    entity_id: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Trigger:
    """Start a run now, besides the calendar."""

    entity_id: str


@dataclass(frozen=True, slots=True)
class ComeDue:
    """The timer of the next time has fired."""

    entity_id: str


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The run of a time is there."""

    entity_id: str
    nominal_at: datetime
    run_id: str


@dataclass(frozen=True, slots=True)
class StartRefused:
    """The run of a time could not be started."""

    entity_id: str
    nominal_at: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class RunEnded:
    """A run of the schedule has ended; it may be heard of before its start was recorded."""

    entity_id: str
    nominal_at: datetime
    run_id: str
    outcome: str


@dataclass(frozen=True, slots=True)
class ScheduleAck:
    """The schedule after the command."""

    schedule_id: str
    status: str


ANSWERS: Mapping[type, type] = dict.fromkeys(
    (Create, Pause, Resume, Delete, Trigger, ComeDue, RunStarted, StartRefused, RunEnded), ScheduleAck
)
