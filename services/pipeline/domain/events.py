"""The payloads of a pipeline's events: every fact that the state is folded from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from pointsman.services.pipeline.domain.dag import Node
from pointsman.services.pipeline.domain.route import EffectiveRoute, Warned
from pointsman.services.pipeline.domain.state import OpenBarrier, Return, Settings, Stage
from pointsman.services.pipeline.domain.words import EventName, PipelineStatus, Severity, Verdict


@dataclass(frozen=True, slots=True)
class PipelineStarted:
    """A pipeline begins."""

    settings: Settings
    nodes: tuple[Node, ...]
    ready: tuple[str, ...]
    reflections: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """What earlier attempts taught, by stage."""
    returned: dict[str, Return] = field(default_factory=dict)
    """Which stages should read it."""


@dataclass(frozen=True, slots=True)
class PipelineImported:
    """A pipeline goes on from a state file."""

    settings: Settings
    nodes: tuple[Node, ...]
    marks: str
    reported: str
    stages: dict[str, Stage]
    status: PipelineStatus
    returns: tuple[str, ...] = ()
    barriers: dict[str, OpenBarrier] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StageDelegated:
    """A stage is given to an agent."""

    stage: str
    number: int
    agent_id: str
    nonce: str


@dataclass(frozen=True, slots=True)
class StageFinished:
    """An agent's verdict counts: the stage is completed or failed, and others may become ready."""

    stage: str
    number: int
    route: EffectiveRoute
    ready: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StageRetry:
    """The pipeline goes back to a stage, or has an agent try again."""

    stage: str
    returned: Return | None
    """None: the same stage is asked again, because its agent left no route."""
    reset: tuple[str, ...] = ()
    counted: tuple[str, ...] = ()
    """The failing stages whose retries this uses up."""


@dataclass(frozen=True, slots=True)
class StageSkipped:
    """A person lets a stage be skipped."""

    stage: str
    reason: str
    ready: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StageEscalated:
    """A stage may not go on by itself."""

    stage: str
    cause: str


@dataclass(frozen=True, slots=True)
class StageRestarted:
    """A person has a stage and all after it run again."""

    stage: str
    reset: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class RouteFallback:
    """An agent answered without a route."""

    stage: str
    number: int


@dataclass(frozen=True, slots=True)
class RouteCorrected:
    """A route was repaired or overruled."""

    stage: str
    warnings: tuple[Warned, ...]


@dataclass(frozen=True, slots=True)
class RetryExhausted:
    """Failing stages have no retries left."""

    stages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ConvergenceStall:
    """Two rounds in a row failed alike."""

    stage: str
    severity: Severity


@dataclass(frozen=True, slots=True)
class ReflectionWritten:
    """A failed round is remembered."""

    stage: str
    round: int
    section: str


@dataclass(frozen=True, slots=True)
class ContextPut:
    """A stage left a report; its body is kept beside the journal, under its digest."""

    stage: str
    number: int
    sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class BarrierCreated:
    """Several stages will go on together."""

    group: str
    number: int
    members: tuple[str, ...]
    due_at: datetime


@dataclass(frozen=True, slots=True)
class BarrierWaiting:
    """A member arrived, others have not."""

    group: str
    stage: str
    arrived: int
    total: int


@dataclass(frozen=True, slots=True)
class BarrierResolved:
    """A barrier is over, once: the worst verdict of its members wins."""

    group: str
    number: int
    verdict: Verdict
    severity: Severity | None = None
    failed: tuple[str, ...] = ()
    ready: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BarrierTimedOut:
    """A barrier does not wait any longer for these."""

    group: str
    number: int
    absent: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AgentCrash:
    """An agent answered without a route once too often."""

    stage: str
    crashes: int


@dataclass(frozen=True, slots=True)
class CompletionIgnored:
    """A result came for a delegation that no longer counts."""

    stage: str
    number: int
    agent_id: str
    verdict: str


@dataclass(frozen=True, slots=True)
class PipelineEnded:
    """Nothing more happens; an ABORT names its stage."""

    reason: str = ""
    stage: str = ""


@dataclass(frozen=True, slots=True)
class PipelineCleaned:
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
