"""A schedule and its parts, as values."""

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime

from pointsman.services.chassis.core.caller import ENGINE_REQUESTS
from pointsman.services.orchestrator.domain.schedules.enums import MissedPolicy, OverlapPolicy, ScheduleState

MAX_STARTS = 20
"""How many of its last times a schedule remembers."""


@dataclass(frozen=True, slots=True)
class Spec:
    """At which times, and what to do where a time cannot have its run."""

    cron: str
    time_zone: str = "UTC"
    missed: MissedPolicy = MissedPolicy.ONE
    overlap: OverlapPolicy = OverlapPolicy.SKIP
    catch_up_seconds: float = 86_400.0
    """How long after its time a missed run may still be started."""


@dataclass(frozen=True, slots=True)
class Template:
    """What each run is started with."""

    message: str
    order_json: str
    """The SubmitRequest as JSON."""


@dataclass(frozen=True, slots=True)
class Start:
    """What became of one time."""

    nominal_at: datetime
    run_id: str = ""
    outcome: str = ""
    """The state in which the run ended; empty while it is live."""
    reason: str = ""
    """Why no run was started."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """One schedule."""

    schedule_id: str
    status: ScheduleState
    spec: Spec
    template: Template
    principal: str
    """Who made it."""
    created_at: datetime
    next_at: datetime | None
    """The next time; none unless it is active."""
    starting: tuple[datetime, ...] = ()
    """Times whose run is asked for and not started yet."""
    backlog: tuple[datetime, ...] = ()
    """Missed times whose runs start one after the other."""
    live_run_ids: tuple[str, ...] = ()
    starts: tuple[Start, ...] = ()
    """What became of its last times, the latest last."""
    started: int = 0
    missed: int = 0
    overlapped: int = 0
    refused: int = 0
    said: str = ""
    """Why it was paused or deleted, in the words of who did it."""

    @property
    def is_busy(self) -> bool:
        """Whether a run of it is live, or about to be."""
        return bool(self.live_run_ids or self.starting or self.backlog)


def schedule_id_for(scope: str, request_id: str) -> str:
    """The same request names the same schedule, however often its caller sends it."""
    return f"schedule_{hashlib.sha256(f'{scope}/{request_id}'.encode()).hexdigest()[:26]}"


def start_key(schedule_id: str, nominal_at: datetime) -> str:
    """The request id under which the run of a time is submitted: a time starts one run, however often it is tried."""
    return f"{ENGINE_REQUESTS}{schedule_id}@{nominal_at.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
