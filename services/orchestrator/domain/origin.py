"""Where a run comes from, if it is not somebody's own message: another run, or a schedule."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Origin:
    """The run that another one does again, and from which point on."""

    run_id: str
    first_run_id: str
    """The first run of the story."""
    point: str
    accepted_commit: str = ""
    accepted_bundle: str = ""
    plan_approved: bool = False
    """Whether a person had said yes to the plan that it goes on with."""


@dataclass(frozen=True, slots=True)
class Scheduled:
    """The schedule that started a run, and the time that it was started for."""

    schedule_id: str
    nominal_at: datetime
