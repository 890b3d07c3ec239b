"""What the journal keeps of a schedule, by the name of the event; times are computed when it is decided, never again."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from pointsman.services.orchestrator.domain.schedules.enums import ScheduleEvent
from pointsman.services.orchestrator.domain.schedules.model import Spec, Template


@dataclass(frozen=True, slots=True)
class Created:
    """The first event."""

    schedule_id: str
    spec: Spec
    template: Template
    principal: str
    next_at: datetime


@dataclass(frozen=True, slots=True)
class CameDue:
    """What is done about the times that are over, and when the next one is."""

    next_at: datetime
    starting: tuple[datetime, ...] = ()
    backlog: tuple[datetime, ...] = ()
    missed: int = 0
    overlapped: int = 0


@dataclass(frozen=True, slots=True)
class Triggered:
    """A run was asked for besides the calendar."""

    nominal_at: datetime


@dataclass(frozen=True, slots=True)
class Started:
    """A run was started."""

    nominal_at: datetime
    run_id: str


@dataclass(frozen=True, slots=True)
class Refused:
    """No run could be started; the next of the backlog is."""

    nominal_at: datetime
    reason: str
    then: datetime | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """A run has ended; the next of the backlog is started."""

    nominal_at: datetime
    run_id: str
    outcome: str
    then: datetime | None = None


@dataclass(frozen=True, slots=True)
class Resumed:
    """It goes on."""

    next_at: datetime


@dataclass(frozen=True, slots=True)
class Stopped:
    """It was paused or deleted."""

    reason: str


EVENTS: Mapping[str, type] = {
    str(ScheduleEvent.CREATED): Created,
    str(ScheduleEvent.CAME_DUE): CameDue,
    str(ScheduleEvent.TRIGGERED): Triggered,
    str(ScheduleEvent.STARTED): Started,
    str(ScheduleEvent.START_REFUSED): Refused,
    str(ScheduleEvent.RUN_ENDED): Ended,
    str(ScheduleEvent.PAUSED): Stopped,
    str(ScheduleEvent.RESUMED): Resumed,
    str(ScheduleEvent.DELETED): Stopped,
}
