"""What can be asked of a run, by people, agents, other services and timers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pointsman.services.orchestrator.domain.enums import (
    Capability,
    Grade,
    PermissionState,
    Reply,
    Severity,
    Verdict,
)
from pointsman.services.orchestrator.domain.limit_events import AccountPaused, WorkTakenUp
from pointsman.services.orchestrator.domain.model import (
    NOTHING_SPENT,
    Budget,
    Order,
    Plan,
    Remark,
    Risk,
    Usage,
    Work,
)


@dataclass(frozen=True, slots=True)
class Submit:
    """Start a run."""

    entity_id: str
    intent: str
    order: Order
    budget: Budget
    plan: Plan | None = None
    """What it goes on with, where it does again what another run did."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer the open question."""

    entity_id: str
    question_id: str
    reply: Reply
    text: str = ""
    confidence: float | None = None
    budget: Budget | None = None
    task_id: str = ""
    stage: str = ""
    plan: Plan | None = None
    """Instead of the plan that is asked about."""
    principal: str = ""


@dataclass(frozen=True, slots=True)
class ChangeRequirement:
    """Add to what is wanted."""

    entity_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Label:
    """Set labels; an empty value takes one away."""

    entity_id: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Cancel:
    """End the run on purpose; `resumable` leaves its workflow resumable."""

    entity_id: str
    reason: str
    resumable: bool = False


@dataclass(frozen=True, slots=True)
class TimerFired:
    """A timer of the run came due."""

    entity_id: str
    name: str


@dataclass(frozen=True, slots=True)
class CallAnswered:
    """A peer answered a call of the run; the answer names the call, and is often the event that records it."""

    entity_id: str
    answer: Any


@dataclass(frozen=True, slots=True)
class CallRefused:
    """A peer refused for good."""

    entity_id: str
    call_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class PlanResult:
    """PLAN, PATCH: a plan."""

    plan: Plan


@dataclass(frozen=True, slots=True)
class DebateResult:
    """DEBATE: remarks on the plan, and risks that stay."""

    remarks: tuple[Remark, ...]
    risks: tuple[Risk, ...] = ()


@dataclass(frozen=True, slots=True)
class AnswersResult:
    """PLAN_ANSWER: the planner's answers to the remarks."""

    settled_keys: tuple[str, ...]
    statement: str
    confidence: float


@dataclass(frozen=True, slots=True)
class ResearchResult:
    """RESEARCH: a report."""

    confidence: float
    document: str
    is_survey: bool = False


@dataclass(frozen=True, slots=True)
class DesignResult:
    """DESIGN: a design."""

    document: str


@dataclass(frozen=True, slots=True)
class StageResult:
    """STAGE: where to go, typed or as a transcript, and the work or the report."""

    verdict: str = ""
    route: str = ""
    severity: Severity | None = None
    hint: str = ""
    transcript: str = ""
    report: str = ""
    work: Work | None = None
    risks: tuple[Risk, ...] = ()
    proof: "TaskFinding | None" = None
    """TEST: what the verifier found."""
    document: str = ""
    """TEST: the whole finding."""


@dataclass(frozen=True, slots=True)
class ReviewResult:
    """REVIEW: a decision on a task's work."""

    verdict: Verdict
    rejected_claims: tuple[str, ...] = ()
    feedback: tuple[str, ...] = ()
    risks: tuple[Risk, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskFinding:
    """What the verifier found about one task."""

    task_id: str
    accepted: bool
    supported_claims: tuple[str, ...]
    passed_criteria: tuple[str, ...]
    reason: str = ""
    grade: Grade | None = None
    questions: tuple[str, ...] = ()
    """What somebody who is not the author has to say yes to."""
    risks: tuple[Risk, ...] = ()
    failing: tuple[str, ...] = ()
    """Tests that fail and did not fail on the base."""
    reused: bool = False
    """Nothing was run: the proof of the TEST stage counts."""


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """VERIFY: what was merged and proven."""

    findings: tuple[TaskFinding, ...]
    accepted_commit: str
    bundle: str
    document: str


@dataclass(frozen=True, slots=True)
class MalformedResult:
    """Something that does not fit the assignment; it counts as a failed attempt."""

    field: str
    problem: str


Result = (
    PlanResult
    | DebateResult
    | AnswersResult
    | ResearchResult
    | DesignResult
    | StageResult
    | ReviewResult
    | VerifyResult
    | MalformedResult
)


@dataclass(frozen=True, slots=True)
class CompleteAssignment:
    """An agent hands in a result under its lease."""

    entity_id: str
    assignment_id: str
    epoch: int
    agent_id: str
    result: Result
    usage: Usage = NOTHING_SPENT
    principal: str = ""
    secret_digest: str = ""
    """The digest of the secret that the agent showed."""
    granted: frozenset[Capability] = frozenset(Capability)
    """What the principal may do, as its credential says at this moment."""


@dataclass(frozen=True, slots=True)
class CompleteAssignments:
    """Several results for one run: of one agent in one call, or of several agents in the same commit."""

    entity_id: str
    items: tuple[CompleteAssignment, ...]


@dataclass(frozen=True, slots=True)
class FailAssignment:
    """An agent gives an assignment up."""

    entity_id: str
    assignment_id: str
    epoch: int
    agent_id: str
    error: str
    permanent: bool = False
    usage: Usage = NOTHING_SPENT
    principal: str = ""
    secret_digest: str = ""


@dataclass(frozen=True, slots=True)
class RequestPermission:
    """An agent asks, under its lease, whether it may do something."""

    entity_id: str
    assignment_id: str
    epoch: int
    agent_id: str
    key: str
    text: str
    principal: str = ""
    secret_digest: str = ""


@dataclass(frozen=True, slots=True)
class ExpireAssignment:
    """The last lease of an assignment ran out."""

    entity_id: str
    assignment_id: str
    epoch: int


@dataclass(frozen=True, slots=True)
class LoseLease:
    """A lease of an assignment ran out that may be tried again."""

    entity_id: str
    assignment_id: str
    agent_id: str
    attempt: int


@dataclass(frozen=True, slots=True)
class NoteLimit:
    """A lease went back because of a provider's limit, or the work was taken up again."""

    entity_id: str
    assignment_id: str
    said: AccountPaused | WorkTakenUp


@dataclass(frozen=True, slots=True)
class Ack:
    """What every command answers: the run's state after it."""

    run_id: str
    status: str


@dataclass(frozen=True, slots=True)
class CompletionOutcome:
    """What became of a result: taken, or counted as a failed attempt because of a field."""

    accepted: bool
    field: str = ""
    problem: str = ""
    refusal: str = ""
    """Why one of several was refused, where the others may have been taken; a single one is refused as a whole."""


@dataclass(frozen=True, slots=True)
class PermissionOutcome:
    """What was answered to an agent that asks for a permission."""

    state: PermissionState


@dataclass(frozen=True, slots=True)
class CompletionOutcomes:
    """What became of several results, in their order."""

    outcomes: tuple[CompletionOutcome, ...]


ANSWERS: Mapping[type, type] = {
    Submit: Ack,
    Answer: Ack,
    ChangeRequirement: Ack,
    Cancel: Ack,
    TimerFired: Ack,
    CompleteAssignment: CompletionOutcome,
    CompleteAssignments: CompletionOutcomes,
    FailAssignment: CompletionOutcome,
    RequestPermission: PermissionOutcome,
    CallAnswered: Ack,
    CallRefused: Ack,
    ExpireAssignment: Ack,
    LoseLease: Ack,
    NoteLimit: Ack,
}
