"""The commands of a pipeline, and their answers."""

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
    """Delegates stages as soon as they become ready: to the agent named for the stage, else to `agent_id`."""

    agent_id: str
    agents: dict[str, str] = msgspec.field(default_factory=dict)


class StartPipeline(msgspec.Struct, frozen=True):
    """Starts a pipeline."""

    entity_id: str
    settings: Settings
    graph: Graph
    nonce_seed: str
    reflections: dict[str, str] = msgspec.field(default_factory=dict)
    auto: AutoDelegate | None = None


class ImportPipeline(msgspec.Struct, frozen=True):
    """Continues a pipeline from a state file."""

    entity_id: str
    imported: PipelineImported


class DelegateStage(msgspec.Struct, frozen=True):
    """Delegates a stage to an agent."""

    entity_id: str
    stage: str
    agent_id: str
    nonce_seed: str
    replace: bool = False


class NewReport(msgspec.Struct, frozen=True):
    """A report; its body is stored already."""

    sha256: str
    size_bytes: int


class CompleteStage(msgspec.Struct, frozen=True):
    """Completes a delegation, with the routes that the agent reported, the last first."""

    entity_id: str
    delegation_id: str
    agent_id: str
    nonce_seed: str
    reported: tuple[ReportedRoute, ...] = ()
    report: NewReport | None = None
    auto: AutoDelegate | None = None
    tried_again: bool = False
    """Whether the caller repeated the stage itself before it gave up."""


class PutContext(msgspec.Struct, frozen=True):
    """Attaches a report to an active delegation."""

    entity_id: str
    delegation_id: str
    agent_id: str
    report: NewReport


class SkipStage(msgspec.Struct, frozen=True):
    """Skips a stage."""

    entity_id: str
    stage: str
    reason: str = ""


class RestartFrom(msgspec.Struct, frozen=True):
    """Runs a stage and all stages after it again."""

    entity_id: str
    stage: str
    reason: str = ""


class CancelPipeline(msgspec.Struct, frozen=True):
    """Cancels a pipeline."""

    entity_id: str
    reason: str = ""


class TimeOutBarrier(msgspec.Struct, frozen=True):
    """Times out a barrier, unless it has been resolved or created again since its timer was set."""

    entity_id: str
    group: str
    number: int


class CleanUp(msgspec.Struct, frozen=True):
    """Removes reports and reflections of a pipeline that ended long enough ago."""

    entity_id: str
    older_than_seconds: float


class Answer(msgspec.Struct, frozen=True):
    """The status of the pipeline, and the stages that became ready or were delegated."""

    status: PipelineStatus
    next: tuple[Delegation, ...] = ()
    pipeline_id: str = ""


class CompletionAnswer(msgspec.Struct, frozen=True):
    """The outcome of a completion, with everything that the caller needs to continue."""

    disposition: Disposition
    status: PipelineStatus
    route: EffectiveRoute | None = None
    next: tuple[Delegation, ...] = ()
    stop: StopDecision | None = None
    risks: tuple[tuple[str, RiskKind], ...] = ()
    barrier_due_at: datetime | None = None
    """When the next waiting barrier times out."""


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
