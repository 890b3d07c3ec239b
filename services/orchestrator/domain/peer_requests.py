"""What the run's effects carry: the question to another service, with the id under which the answer comes back."""

from dataclasses import dataclass

from pointsman.services.orchestrator.domain.enums import ExecutionMode, Reply, Severity


@dataclass(frozen=True, slots=True)
class ListResumable:
    """A question that needs nothing but the run itself."""

    call_id: str


@dataclass(frozen=True, slots=True)
class StoreEpic:
    """Store the epic with its text; an empty id makes a new one."""

    call_id: str
    epic_id: str
    intent: str
    priority: int
    owned: bool
    mode: ExecutionMode = ExecutionMode.QUALITY_GATE


@dataclass(frozen=True, slots=True)
class Epic:
    """Do something with an epic."""

    call_id: str
    epic_id: str


@dataclass(frozen=True, slots=True)
class StorePlan:
    """Store the plan in the epic."""

    call_id: str
    epic_id: str
    document: str
    audited: bool


@dataclass(frozen=True, slots=True)
class ClaimWave:
    """Hand out the next tasks."""

    call_id: str
    epic_id: str
    limit: int


@dataclass(frozen=True, slots=True)
class Rejection:
    """A task that is to be done again."""

    task_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class SettleWave:
    """Record a wave."""

    call_id: str
    epic_id: str
    completed: tuple[str, ...]
    rejected: tuple[Rejection, ...]


@dataclass(frozen=True, slots=True)
class ReleaseEpic:
    """Give tasks back, and the epic too when its owner is done with it."""

    call_id: str
    epic_id: str
    task_ids: tuple[str, ...]
    disown: bool


@dataclass(frozen=True, slots=True)
class ForwardAnswer:
    """Pass a person's answer on."""

    call_id: str
    epic_id: str
    reply: Reply
    text: str
    task_id: str


@dataclass(frozen=True, slots=True)
class StartPipeline:
    """Start the pipeline of one attempt at a task."""

    call_id: str
    pipeline_id: str
    task_id: str
    template: str
    earlier_pipeline_id: str
    """The attempt before, whose reflections are handed on; empty for the first."""
    barrier_timeout_seconds: float = 0.0
    """How long its barriers wait; 0 leaves it to the pipeline service."""
    lenient: bool = False
    """Whether it may go on past an unreadable judge."""


@dataclass(frozen=True, slots=True)
class CompleteStage:
    """Hand a stage's answer to the pipeline; `lost` says that its agent is gone for good."""

    call_id: str
    pipeline_id: str
    task_id: str
    stage: str
    delegation_id: str
    agent_id: str
    verdict: str = ""
    route: str = ""
    severity: Severity | None = None
    hint: str = ""
    transcript: str = ""
    report: str = ""
    lost: bool = False
    nonce: str = ""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Do something with a pipeline."""

    call_id: str
    pipeline_id: str
    task_id: str = ""


@dataclass(frozen=True, slots=True)
class ForwardStageAnswer:
    """Pass a person's answer on."""

    call_id: str
    pipeline_id: str
    task_id: str
    reply: Reply
    stage: str
    text: str


@dataclass(frozen=True, slots=True)
class ReportOutcome:
    """Tell the router how it went; a failure comes with its text, and with what is different the next time."""

    call_id: str
    decision_id: str
    failed: bool
    error: str
    difference: str
    clarification: bool = False
    """Neither success nor failure: the user is asked what is meant."""


@dataclass(frozen=True, slots=True)
class ResolveDebate:
    """Let the router weigh the plan's advocate against its critic."""

    call_id: str
    decision_id: str
    proposal: str
    confidence: float
    objection: str
    counter: str
    severity: Severity | None


@dataclass(frozen=True, slots=True)
class OtherRun:
    """Say something to another run."""

    call_id: str
    run_id: str
    text: str


@dataclass(frozen=True, slots=True)
class StartNext:
    """Start the run of the next epic: the one named, else the best of the queue."""

    call_id: str
    epic_id: str
