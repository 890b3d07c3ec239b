"""Values that runs are made of; each can be written into a journal row."""

from dataclasses import dataclass, field
from datetime import datetime

from pointsman.services.orchestrator.domain.enums import (
    Capability,
    EvidenceKind,
    ExecutionMode,
    Grade,
    PipelineStatus,
    Purpose,
    Question,
    Resume,
    Severity,
    TaskStatus,
)
from pointsman.services.orchestrator.domain.origin import Origin, Scheduled


@dataclass(frozen=True, slots=True)
class Routing:
    """What the router decided about the message."""

    decision_id: str
    confidence: float
    debate: bool = False
    high_stakes: bool = False


@dataclass(frozen=True, slots=True)
class Budget:
    """What a run may spend; 0 tokens or cost means no limit."""

    assignments: int = 500
    transitions: int = 10_000
    fan_out: int = 64
    tokens: int = 0
    cost_micros: int = 0
    wall_clock_seconds: float = 7 * 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Usage:
    """What was spent."""

    assignments: int = 0
    transitions: int = 0
    tokens: int = 0
    cost_micros: int = 0
    unpriced_tokens: int = 0
    """Tokens whose price nobody knows; with any of them the cost is unknown."""


NOTHING_SPENT = Usage()


@dataclass(frozen=True, slots=True)
class GivenCriterion:
    """What the user said must hold; with a command, that command proves it."""

    criterion_id: str
    statement: str
    command: tuple[str, ...] = ()
    required: bool = True
    test_files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProofTerms:
    """What the proof of the work has to show besides its commands."""

    fixes: tuple[str, ...] = ()
    """Tests that fail on the base and have to pass in what is delivered."""
    held_out: str = ""
    """SHA-256 of an archive of checks that no agent gets; empty where there are none."""
    require_grade: Grade | None = None
    """Work that is worth less is shown to a person."""
    tests_may_change: bool = False


NO_TERMS = ProofTerms()


@dataclass(frozen=True, slots=True)
class Order:
    """What was submitted, and on which terms."""

    routing: Routing
    project: str = ""
    session_id: str = ""
    resume: Resume = Resume.NO
    auto_resume: bool = False
    repository_id: str = ""
    base_commit: str = ""
    criteria: tuple[GivenCriterion, ...] = ()
    execution_mode: ExecutionMode = ExecutionMode.QUALITY_GATE
    template: str = ""
    require_audit: bool = False
    research_expected: int = 1
    priority: int = 0
    labels: dict[str, str] = field(default_factory=dict)
    rival_run_id: str = ""
    """Another live run of the session, when this one was submitted."""
    epic_id: str = ""
    """The stored epic that this run was started for; empty for a fresh message."""
    traceparent: str = ""
    barrier_timeout_seconds: float = 0.0
    """How long barriers of its pipelines wait; 0 leaves it to the pipeline service."""
    proof_terms: ProofTerms = NO_TERMS
    lenient: bool = False
    """An unreadable judge passes in the end, as the pipeline service has it by itself; else a person is asked."""
    crew: tuple[Capability, ...] = ()
    """What the submitter's own workers do: the run waits for them instead of doing without."""
    reserved: bool = False
    """Whether only workers that ask for this run are given its work."""
    parallel: int = 0
    """How many tasks are worked on at the same time; 0 leaves it to the budget's fan-out."""
    best_of: int = 0
    """How many coders do each task side by side, so that the best work is chosen; 0 and 1 mean one alone."""
    review_plan: bool = False
    """Whether a person looks at the plan before the work begins."""
    brings_plan: bool = False
    """Whether the submitter answers that question with a plan, so that no planner is asked for the first one."""
    parent_entry: str = ""
    """The merge queue entry that this run was started for; it receives the run's outcome."""
    resolver: bool = False  # a resolver writes its code instead of a coder
    origin: Origin | None = None
    """The run that this one does again."""
    scheduled: Scheduled | None = None
    """The schedule that started it; it receives the run's end."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Unfinished work that could be resumed."""

    epic_id: str
    title: str
    planned: bool


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question to a person."""

    question_id: str
    kind: Question
    text: str
    subjects: tuple[str, ...]
    asked_at: datetime


@dataclass(frozen=True, slots=True)
class Criterion:
    """What acceptance needs to know of a criterion."""

    criterion_id: str
    required: bool
    has_command: bool
    test_files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskOutline:
    """What the run keeps of a planned task; the whole of it is in the plan's document."""

    task_id: str
    name: str
    criteria: tuple[Criterion, ...]
    files: tuple[str, ...] = ()
    """Globs of the files that it is about; none means that the plan does not say."""
    depends: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SlotOutline:
    """A question that research is to answer."""

    slot_id: str
    question: str


@dataclass(frozen=True, slots=True)
class Risk:
    """Something known not to be right, passed on openly."""

    key: str
    statement: str
    severity: Severity = Severity.MEDIUM
    task_id: str = ""
    forced: bool = False
    """The pipeline went on although a stage failed."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan's outline and its document."""

    tasks: tuple[TaskOutline, ...]
    slots: tuple[SlotOutline, ...]
    confidence: float
    document: str
    built_in: bool = False
    risks: tuple[Risk, ...] = ()


@dataclass(frozen=True, slots=True)
class ClaimOutline:
    """What acceptance needs to know of a claim."""

    claim_id: str
    criterion_ids: tuple[str, ...]
    evidence: tuple[EvidenceKind, ...]


@dataclass(frozen=True, slots=True)
class Work:
    """What a coder handed in: the outline of its claims, and the document."""

    author: str
    claims: tuple[ClaimOutline, ...]
    changed_files: tuple[str, ...]
    document: str
    result_commit: str = ""
    stage: str = ""
    """The stage that handed it in; empty where a version wrote it that did not keep this."""
    principal: str = ""


@dataclass(frozen=True, slots=True)
class Contender:
    """One of several works of the same attempt, and what the verifier found about it."""

    number: int
    work: Work
    proven: bool = False
    passed: bool = False
    grade: Grade | None = None
    reason: str = ""
    failing: int = 0
    chosen: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a proof does not hold: in words, and the tests that fail and did not fail on the base."""

    reason: str = ""
    failing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StageProof:
    """What the verifier's TEST stage said about a patch; a failure tells why it does not hold."""

    patch: str
    failure: Failure | None = None
    again: bool = False
    """It fails as it did the time before."""


@dataclass(frozen=True, slots=True)
class Remark:
    """One remark of a critic on the plan."""

    key: str
    statement: str
    counter: str = ""
    severity: Severity = Severity.MEDIUM
    blocking: bool = False


@dataclass(frozen=True, slots=True)
class OpenRemark:
    """A remark with the number of rounds in which it was made."""

    remark: Remark
    rounds: int


@dataclass(frozen=True, slots=True)
class Delegation:
    """A stage that the pipeline wants done now."""

    delegation_id: str
    stage: str
    node_context: str
    directive: str
    nonce: str = ""
    """What a route of this delegation has to carry."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """A piece of work that the run waits for; its lease is the store's business."""

    assignment_id: str
    purpose: Purpose
    capability: Capability
    task_id: str = ""
    stage: str = ""
    slot: str = ""
    delegation_id: str = ""
    node_context: str = ""
    directive: str = ""
    nonce: str = ""
    patch: str = ""
    """The commit that a judge is to judge, as it was when the work was offered."""
    excluded_agent: str = ""
    excluded_principals: tuple[str, ...] = ()
    """The authors of what it judges: none of them may take it."""
    needs_repository: bool = False
    created_at: datetime | None = None
    setbacks: tuple[str, ...] = ()
    """Why earlier attempts at it failed."""
    restarts: int = 0
    """Starts of an agent on it, beyond the first, that the run has counted."""
    contender: int = 0
    """Which of several works of the same stage it makes or proves; 0 where there is one alone."""
    holds: Usage = NOTHING_SPENT
    """What it holds of the run's budget until it is known what it used."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A research slot and what came of it."""

    question: str
    settled: bool = False
    usable: bool = False
    confidence: float = 0.0
    again: bool = False
    """Its agents failed twice in the same way."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What has been said about a task's work so far."""

    reviewed: bool = False
    accepted: bool | None = None
    reason: str = ""
    replan: bool = False
    grade: Grade | None = None
    """What the verifier's proof is worth, or a reviewer's or person's word."""
    failing: tuple[str, ...] = ()
    """Tests that fail and did not fail on the base."""
    proof_reused: bool = False
    """The proof of the TEST stage counted for the merged tree too."""


UNJUDGED = Judgement()


@dataclass(frozen=True, slots=True)
class Task:
    """A task of the plan, as the run sees it."""

    outline: TaskOutline
    status: TaskStatus = TaskStatus.PENDING
    attempt: int = 0
    rejections: tuple[str, ...] = ()
    pipeline_id: str = ""
    pipeline_status: PipelineStatus | None = None
    work: Work | None = None
    judgement: Judgement = UNJUDGED
    reflections: tuple[str, ...] = ()
    spent: Usage = NOTHING_SPENT
    setbacks: tuple[str, ...] = ()
    """What went wrong in this attempt, in the agents' words."""
    is_stuck: bool = False
    """The agents of a stage failed twice in the same way in this attempt."""
    reviewed_patch: str = ""
    """The commit that the reviewer of a REVIEW stage passed."""
    proof: StageProof | None = None
    """What the TEST stage of this attempt said last."""
    deferred: tuple[Delegation, ...] = ()
    """Judges' stages that wait for the verifier's results."""
    failed: Failure | None = None
    """Why the verifier refused the attempt before."""
    grade: Grade | None = None
    """What the accepted work is worth."""
    contenders: tuple[Contender, ...] = ()
    """The works of this attempt among which one is chosen."""
    first: Work | None = None
    """The work of the writing stage before the one that handed in `work`: tests before the code, code before its documents."""

    def start_of(self, stage: str) -> Work | None:
        """The work that a writing stage begins on; None for the first, which begins on the base."""
        made = self.work
        return made if made is not None and made.stage not in ("", stage) else self.first
