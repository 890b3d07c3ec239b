"""The payloads of a pipeline's events: every fact that the state is folded from."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from pointsman.services.pipeline.domain.dag import Node
from pointsman.services.pipeline.domain.enums import EventName, PipelineStatus, Severity, Verdict
from pointsman.services.pipeline.domain.model import OpenBarrier, Return, Settings, Stage
from pointsman.services.pipeline.domain.route import EffectiveRoute, RouteWarning


class PipelineStarted(msgspec.Struct, frozen=True):
    """A pipeline begins."""

    settings: Settings
    nodes: tuple[Node, ...]
    ready: tuple[str, ...]
    reflections: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """What earlier attempts taught, by stage."""
    returned: dict[str, Return] = msgspec.field(default_factory=dict)
    """Which stages should read it."""


class PipelineImported(msgspec.Struct, frozen=True):
    """A pipeline goes on from a state file."""

    settings: Settings
    nodes: tuple[Node, ...]
    marks: str
    reported: str
    stages: dict[str, Stage]
    status: PipelineStatus
    returns: tuple[str, ...] = ()
    barriers: dict[str, OpenBarrier] = msgspec.field(default_factory=dict)


class StageDelegated(msgspec.Struct, frozen=True):
    """A stage is given to an agent."""

    stage: str
    number: int
    agent_id: str
    nonce: str


class StageFinished(msgspec.Struct, frozen=True):
    """An agent's verdict counts: the stage is completed or failed, and others may become ready."""

    stage: str
    number: int
    route: EffectiveRoute
    ready: tuple[str, ...] = ()


class StageRetry(msgspec.Struct, frozen=True):
    """The pipeline goes back to a stage, or has an agent try again."""

    stage: str
    returned: Return | None
    """None: the same stage is asked again, because its agent left no route."""
    reset: tuple[str, ...] = ()
    counted: tuple[str, ...] = ()
    """The failing stages whose retries this uses up."""


class StageSkipped(msgspec.Struct, frozen=True):
    """A person lets a stage be skipped."""

    stage: str
    reason: str
    ready: tuple[str, ...] = ()


class StageEscalated(msgspec.Struct, frozen=True):
    """A stage may not go on by itself."""

    stage: str
    cause: str


class StageRestarted(msgspec.Struct, frozen=True):
    """A person has a stage and all after it run again."""

    stage: str
    reset: tuple[str, ...]
    reason: str


class RouteFallback(msgspec.Struct, frozen=True):
    """An agent answered without a route."""

    stage: str
    number: int


class RouteCorrected(msgspec.Struct, frozen=True):
    """A route was repaired or overruled."""

    stage: str
    warnings: tuple[RouteWarning, ...]


class RetryExhausted(msgspec.Struct, frozen=True):
    """Failing stages have no retries left."""

    stages: tuple[str, ...]
    forced_on: bool = False
    """Whether the pipeline goes on without them; else a person decides."""


class ConvergenceStall(msgspec.Struct, frozen=True):
    """Two rounds in a row failed alike."""

    stage: str
    severity: Severity


class ReflectionWritten(msgspec.Struct, frozen=True):
    """A failed round is remembered."""

    stage: str
    round: int
    section: str


class ContextPut(msgspec.Struct, frozen=True):
    """A stage left a report; its body is kept beside the journal, under its digest."""

    stage: str
    number: int
    sha256: str
    size_bytes: int


class BarrierCreated(msgspec.Struct, frozen=True):
    """Several stages will go on together."""

    group: str
    number: int
    members: tuple[str, ...]
    due_at: datetime


class BarrierWaiting(msgspec.Struct, frozen=True):
    """A member arrived, others have not."""

    group: str
    stage: str
    arrived: int
    total: int


class BarrierResolved(msgspec.Struct, frozen=True):
    """A barrier is over, once: the worst verdict of its members wins."""

    group: str
    number: int
    verdict: Verdict
    severity: Severity | None = None
    failed: tuple[str, ...] = ()
    ready: tuple[str, ...] = ()


class BarrierTimedOut(msgspec.Struct, frozen=True):
    """A barrier does not wait any longer for these."""

    group: str
    number: int
    absent: tuple[str, ...]
    returns: tuple[str, ...] = ()
    """Those of them that a failure went back to: nobody has to take them any more."""


class AgentCrash(msgspec.Struct, frozen=True):
    """An agent answered without a route once too often."""

    stage: str
    crashes: int


class CompletionIgnored(msgspec.Struct, frozen=True):
    """A result came for a delegation that no longer counts."""

    stage: str
    number: int
    agent_id: str
    verdict: str


class PipelineEnded(msgspec.Struct, frozen=True):
    """Nothing more happens; an ABORT names its stage."""

    reason: str = ""
    stage: str = ""


class PipelineCleaned(msgspec.Struct, frozen=True):
    """Reports, reflections and barriers were removed."""


EVENTS: Mapping[str, type] = {
    EventName.PIPELINE_STARTED: PipelineStarted,
    EventName.PIPELINE_IMPORTED: PipelineImported,
    EventName.STAGE_DELEGATED: StageDelegated,
    EventName.STAGE_COMPLETED: StageFinished,
    EventName.STAGE_FAILED: StageFinished,
    EventName.STAGE_RETRY: StageRetry,
    EventName.STAGE_SKIPPED: StageSkipped,
    EventName.STAGE_ESCALATED: StageEscalated,
    EventName.STAGE_RESTARTED: StageRestarted,
    EventName.ROUTE_FALLBACK: RouteFallback,
    EventName.ROUTE_CORRECTED: RouteCorrected,
    EventName.RETRY_EXHAUSTED: RetryExhausted,
    EventName.CONVERGENCE_STALL: ConvergenceStall,
    EventName.REFLECTION_WRITTEN: ReflectionWritten,
    EventName.CONTEXT_PUT: ContextPut,
    EventName.BARRIER_CREATED: BarrierCreated,
    EventName.BARRIER_WAITING: BarrierWaiting,
    EventName.BARRIER_RESOLVED: BarrierResolved,
    EventName.BARRIER_TIMED_OUT: BarrierTimedOut,
    EventName.AGENT_CRASH: AgentCrash,
    EventName.COMPLETION_IGNORED: CompletionIgnored,
    EventName.PIPELINE_COMPLETED: PipelineEnded,
    EventName.PIPELINE_ABORTED: PipelineEnded,
    EventName.PIPELINE_CANCELLED: PipelineEnded,
    EventName.PIPELINE_CLEANED: PipelineCleaned,
}
