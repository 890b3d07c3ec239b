"""What can be asked of a pipeline, and what each answer holds."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from pointsman.services.pipeline.domain.dag import Graph
from pointsman.services.pipeline.domain.delegation import Delegation
from pointsman.services.pipeline.domain.enums import Disposition, PipelineStatus, RiskKind
from pointsman.services.pipeline.domain.events import PipelineImported
from pointsman.services.pipeline.domain.model import Settings
from pointsman.services.pipeline.domain.retries import StopDecision
from pointsman.services.pipeline.domain.route import EffectiveRoute, ReportedRoute


class AutoDelegate(msgspec.Struct, frozen=True):
    """Delegate what becomes ready in the same step: to the agent named for the stage, else to the one."""

    agent_id: str
    agents: dict[str, str] = msgspec.field(default_factory=dict)


class StartPipeline(msgspec.Struct, frozen=True):
    """Begin a pipeline."""

    entity_id: str
    settings: Settings
    graph: Graph
    nonce_seed: str
    reflections: dict[str, str] = msgspec.field(default_factory=dict)
    auto: AutoDelegate | None = None


class ImportPipeline(msgspec.Struct, frozen=True):
    """Go on with a pipeline from a state file."""

    entity_id: str
    imported: PipelineImported


class DelegateStage(msgspec.Struct, frozen=True):
    """Give a stage to an agent."""

    entity_id: str
    stage: str
    agent_id: str
    nonce_seed: str
    replace: bool = False


class NewReport(msgspec.Struct, frozen=True):
    """A report whose body is stored already."""

    sha256: str
    size_bytes: int


class CompleteStage(msgspec.Struct, frozen=True):
    """Take the result of a delegation: what the agent may have said, the last first."""

    entity_id: str
    delegation_id: str
    agent_id: str
    nonce_seed: str
    said: tuple[ReportedRoute, ...] = ()
    report: NewReport | None = None
    auto: AutoDelegate | None = None


class PutContext(msgspec.Struct, frozen=True):
    """Attach a report to an active delegation."""

    entity_id: str
    delegation_id: str
    agent_id: str
    report: NewReport


class SkipStage(msgspec.Struct, frozen=True):
    """Let a stage be skipped."""

    entity_id: str
    stage: str
    reason: str = ""


class RestartFrom(msgspec.Struct, frozen=True):
    """Run a stage and all after it again."""

    entity_id: str
    stage: str
    reason: str = ""


class CancelPipeline(msgspec.Struct, frozen=True):
    """End a pipeline."""

    entity_id: str
    reason: str = ""


class TimeOutBarrier(msgspec.Struct, frozen=True):
    """A barrier's time is over; one that has been resolved or opened anew since then is left alone."""

    entity_id: str
    group: str
    number: int


class CleanUp(msgspec.Struct, frozen=True):
    """Remove what an ended pipeline no longer needs, if it ended long enough ago."""

    entity_id: str
    older_than_seconds: float


class Answer(msgspec.Struct, frozen=True):
    """Where the pipeline is, and which stages became ready or were delegated."""

    status: PipelineStatus
    next: tuple[Delegation, ...] = ()
    pipeline_id: str = ""


class CompletionAnswer(msgspec.Struct, frozen=True):
    """Everything that is needed to go on."""

    disposition: Disposition
    status: PipelineStatus
    route: EffectiveRoute | None = None
    next: tuple[Delegation, ...] = ()
    stop: StopDecision | None = None
    risks: tuple[tuple[str, RiskKind], ...] = ()
    barrier_due_at: datetime | None = None
    """When the first of the barriers that wait now stops waiting."""


ANSWERS: Mapping[type, type] = {
    StartPipeline: Answer,
    ImportPipeline: Answer,
    DelegateStage: Answer,
    CompleteStage: CompletionAnswer,
    PutContext: Answer,
    SkipStage: Answer,
    RestartFrom: Answer,
    CancelPipeline: Answer,
    TimeOutBarrier: Answer,
    CleanUp: Answer,
}
