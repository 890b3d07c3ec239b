"""The payloads of a pipeline's events, as the journal stores them."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from pointsman.services.pipeline.domain.dag import Node
from pointsman.services.pipeline.domain.enums import EventName, PipelineStatus, Severity, Verdict
from pointsman.services.pipeline.domain.model import OpenBarrier, Return, Settings, Stage
from pointsman.services.pipeline.domain.route import EffectiveRoute, RouteWarning


class PipelineStarted(msgspec.Struct, frozen=True):
    """A pipeline was started."""

    settings: Settings
    nodes: tuple[Node, ...]
    ready: tuple[str, ...]
    reflections: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """The reflections of earlier attempts, by stage."""
    returned: dict[str, Return] = msgspec.field(default_factory=dict)
    """The stages that read them."""


class PipelineImported(msgspec.Struct, frozen=True):
    """A pipeline was imported from a state file."""

    settings: Settings
    nodes: tuple[Node, ...]
    marks: str
    reported: str
    stages: dict[str, Stage]
    status: PipelineStatus
    returns: tuple[str, ...] = ()
    barriers: dict[str, OpenBarrier] = msgspec.field(default_factory=dict)


class StageDelegated(msgspec.Struct, frozen=True):
    """A stage was delegated to an agent."""

    stage: str
    number: int
    agent_id: str
    nonce: str


class StageFinished(msgspec.Struct, frozen=True):
    """A stage passed or failed; other stages may have become ready."""

    stage: str
    number: int
    route: EffectiveRoute
    ready: tuple[str, ...] = ()


class StageRetry(msgspec.Struct, frozen=True):
    """The pipeline returned to a stage, or a stage is repeated."""

    stage: str
    returned: Return | None
    """None if the stage is repeated because its agent reported no route."""
    reset: tuple[str, ...] = ()
    counted: tuple[str, ...] = ()
    """The failed stages that this counts as a retry of."""


class StageSkipped(msgspec.Struct, frozen=True):
    """A person skipped a stage."""

    stage: str
    reason: str
    ready: tuple[str, ...] = ()


class StageEscalated(msgspec.Struct, frozen=True):
    """A stage needs a person's decision."""

    stage: str
    cause: str


class StageRestarted(msgspec.Struct, frozen=True):
    """A person restarted the pipeline from a stage."""

    stage: str
    reset: tuple[str, ...]
    reason: str


class RouteFallback(msgspec.Struct, frozen=True):
    """An agent reported no route."""

    stage: str
    number: int


class RouteCorrected(msgspec.Struct, frozen=True):
    """A reported route was repaired or overruled."""

    stage: str
    warnings: tuple[RouteWarning, ...]


class RetryExhausted(msgspec.Struct, frozen=True):
    """Failed stages have no retries left."""

    stages: tuple[str, ...]
    forced_on: bool = False
    """Whether the pipeline was forced on; else a person decides."""


class ConvergenceStall(msgspec.Struct, frozen=True):
    """Two rounds in a row failed with the same severity."""

    stage: str
    severity: Severity


class ReflectionWritten(msgspec.Struct, frozen=True):
    """The reflection on a failed round was written."""

    stage: str
    round: int
    section: str


class ContextPut(msgspec.Struct, frozen=True):
    """A report was attached to a stage; its body is stored under its digest, outside the journal."""

    stage: str
    number: int
    sha256: str
    size_bytes: int


class BarrierCreated(msgspec.Struct, frozen=True):
    """A barrier was created for stages that must all end before the pipeline goes on."""

    group: str
    number: int
    members: tuple[str, ...]
    due_at: datetime


class BarrierWaiting(msgspec.Struct, frozen=True):
    """A member of a barrier has ended; others have not."""

    group: str
    stage: str
    arrived: int
    total: int


class BarrierResolved(msgspec.Struct, frozen=True):
    """A barrier was resolved with the worst verdict of its members."""

    group: str
    number: int
    verdict: Verdict
    severity: Severity | None = None
    failed: tuple[str, ...] = ()
    ready: tuple[str, ...] = ()


class BarrierTimedOut(msgspec.Struct, frozen=True):
    """A barrier timed out without the absent members."""

    group: str
    number: int
    absent: tuple[str, ...]
    returns: tuple[str, ...] = ()
    """The absent members to which a return was pending; it is no longer."""


class AgentCrash(msgspec.Struct, frozen=True):
    """Agents reported no route as often as the crash limit allows."""

    stage: str
    crashes: int


class CompletionIgnored(msgspec.Struct, frozen=True):
    """A completion of an outdated delegation was ignored."""

    stage: str
    number: int
    agent_id: str
    verdict: str


class PipelineEnded(msgspec.Struct, frozen=True):
    """The pipeline ended; an ABORT names its stage."""

    reason: str = ""
    stage: str = ""


class PipelineCleaned(msgspec.Struct, frozen=True):
    """Reports and reflections were removed."""


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
