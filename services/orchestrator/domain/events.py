"""What the journal of a run holds: the payload of each event."""

from dataclasses import dataclass, field

from pointsman.services.orchestrator.domain.enums import (
    AssignmentEnd,
    Call,
    Capability,
    Grade,
    PipelineStatus,
    Reply,
    WorkflowStatus,
)
from pointsman.services.orchestrator.domain.model import (
    NOTHING_SPENT,
    Assignment,
    Budget,
    Candidate,
    Delegation,
    OpenQuestion,
    Order,
    Plan,
    Remark,
    Risk,
    Usage,
    Work,
)


@dataclass(frozen=True, slots=True)
class Transitioned:
    """The payload of every transition: why, and whether it counts as a re-plan."""

    reason: str = ""
    is_replan: bool = False


@dataclass(frozen=True, slots=True)
class Submitted:
    """A message became a run."""

    run_id: str
    intent: str
    order: Order
    budget: Budget
    plan: Plan | None = None
    """What it goes on with, where it does again what another run did."""


@dataclass(frozen=True, slots=True)
class Called:
    """Another service is asked; the answer names the call."""

    call_id: str
    call: Call
    subject: str = ""


@dataclass(frozen=True, slots=True)
class CallEnded:
    """Another service answered, or refused for good, and there is nothing else to keep of it."""

    call_id: str
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class ResumablesFound:
    """The unfinished work there is, best first."""

    call_id: str
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class EpicStored:
    """The workflow service keeps the epic; `queued` when it is the message that waits for its turn."""

    call_id: str
    epic_id: str
    queued: bool = False


@dataclass(frozen=True, slots=True)
class Resumed:
    """The run took over a stored epic with its plan."""

    call_id: str
    epic_id: str
    intent: str
    plan: Plan
    accepted: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Planned:
    """There is a plan."""

    plan: Plan
    attempts: dict[str, int] = field(default_factory=dict)
    """The last attempt at each task so far, of earlier plans too: numbers go on from there, never from 1 again."""
    principal: str = ""
    """Who made it; empty for the built-in one, and where a version wrote it that did not keep this."""


@dataclass(frozen=True, slots=True)
class PlanStored:
    """The workflow service keeps the plan, and audited it."""

    call_id: str
    audit_errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FeedbackGiven:
    """The critic's remarks of one round; they replace those of the round before."""

    remarks: tuple[Remark, ...]


@dataclass(frozen=True, slots=True)
class FeedbackSettled:
    """Remarks that are open no longer."""

    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Researched:
    """A slot is settled: by a report, or by the loss of everyone who could have written it."""

    slot: str
    agent_id: str
    usable: bool
    confidence: float
    document: str
    assignment_id: str = ""
    """The assignment that the report ends; journals of before this field end it by an event of its own."""
    usage: Usage = NOTHING_SPENT
    restarts: int = 0
    again: bool = False
    """Nobody wrote a report: its agents failed twice in the same way."""

    @property
    def ended(self) -> "AssignmentEnded | None":
        """The end of the assignment that the report was for."""
        if not self.assignment_id:
            return None
        return AssignmentEnded(
            self.assignment_id, AssignmentEnd.DONE, self.agent_id, usage=self.usage, restarts=self.restarts
        )


@dataclass(frozen=True, slots=True)
class Designed:
    """There is a design."""

    document: str
    built_in: bool


@dataclass(frozen=True, slots=True)
class WorkflowSeen:
    """What the workflow service said about the epic."""

    call_id: str
    status: WorkflowStatus
    detail: str = ""


@dataclass(frozen=True, slots=True)
class WaveClaimed:
    """These tasks are the run's to do now."""

    call_id: str
    task_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PipelineAdvanced:
    """What the pipeline service said about a task's pipeline."""

    call_id: str
    task_id: str
    pipeline_id: str
    status: PipelineStatus
    reflections: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StageFailed:
    """A stage of a task's pipeline failed, with its agent's reason; empty when no agent finished."""

    task_id: str
    stage: str
    agent_id: str
    reason: str
    again: bool = False
    """Its agents failed twice in the same way: a person is asked instead of a third."""


@dataclass(frozen=True, slots=True)
class StageReviewed:
    """The reviewer of a REVIEW stage passed a patch; at acceptance that counts for the same patch."""

    task_id: str
    agent_id: str
    patch: str


@dataclass(frozen=True, slots=True)
class StageProven:
    """The verifier proved, or refuted, a patch in its TEST stage; judges get what it found."""

    task_id: str
    agent_id: str
    patch: str
    passed: bool
    document: str
    reason: str = ""
    failing: tuple[str, ...] = ()
    again: bool = False
    """It fails as it did the time before."""


@dataclass(frozen=True, slots=True)
class StageDeferred:
    """A judge's stage waits for the verifier's results."""

    task_id: str
    stage: str
    delegation: Delegation


@dataclass(frozen=True, slots=True)
class WorkHandedIn:
    """A coder handed in its work."""

    task_id: str
    work: Work
    principal: str = ""
    """Whose work it is; empty where a version wrote it that did not keep this."""


@dataclass(frozen=True, slots=True)
class TaskJudged:
    """Something was said about a task's work: by rule, reviewer, verifier or person."""

    task_id: str
    judge: str
    accepted: bool | None
    reason: str = ""
    replan: bool = False
    grade: Grade | None = None
    failing: tuple[str, ...] = ()
    """Tests that fail and did not fail on the base."""
    proof_reused: bool = False
    """The proof of the TEST stage counted again."""


@dataclass(frozen=True, slots=True)
class WaveVerified:
    """The verifier merged what passed."""

    accepted_commit: str
    bundle: str
    document: str


@dataclass(frozen=True, slots=True)
class WaveConcluded:
    """What is to become of the wave, once the workflow service has recorded it."""

    call_id: str
    verdict: str


@dataclass(frozen=True, slots=True)
class Assigned:
    """A piece of work waits for an agent."""

    assignment: Assignment
    is_free: bool = False
    """It starts no agent that is paid for: the verifier's work counts against no budget."""


@dataclass(frozen=True, slots=True)
class AssignmentRetried:
    """An attempt failed; the assignment is offered again."""

    assignment_id: str
    agent_id: str
    attempt: int
    error: str
    usage: Usage
    restarts: int = 0
    """Starts of an agent on it, beyond the first, that were not counted before."""


@dataclass(frozen=True, slots=True)
class LeaseLost:
    """An agent's lease ran out without a heartbeat; the assignment is offered again."""

    assignment_id: str
    agent_id: str
    attempt: int


@dataclass(frozen=True, slots=True)
class AssignmentEnded:
    """Nobody has to work on the assignment any more."""

    assignment_id: str
    end: AssignmentEnd
    agent_id: str = ""
    error: str = ""
    usage: Usage = NOTHING_SPENT
    restarts: int = 0
    """Starts of an agent on it, beyond the first, that were not counted before."""
    principal: str = ""
    """Who handed in the result that was taken; empty where a version wrote it that did not keep this."""
    granted: Capability | None = None
    """The capability that the principal was found to be granted when its result was taken."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A person is asked."""

    question: OpenQuestion


@dataclass(frozen=True, slots=True)
class Answered:
    """A person answered."""

    question_id: str
    reply: Reply
    text: str = ""
    confidence: float | None = None
    budget: Budget | None = None
    task_id: str = ""
    stage: str = ""


@dataclass(frozen=True, slots=True)
class BudgetHeld:
    """A piece of work is not given out, because the budget is exhausted or held by work that runs."""

    assignment: Assignment
    what: str
    by_running: bool = False
    """It waits until work that runs has ended; nobody is asked."""


@dataclass(frozen=True, slots=True)
class IntentChanged:
    """What is wanted is something else now."""

    intent: str


@dataclass(frozen=True, slots=True)
class ConfidenceSet:
    """How sure the run is from now on."""

    confidence: float
    asserted: bool = False


@dataclass(frozen=True, slots=True)
class RisksNoted:
    """Risks that stay with the run."""

    risks: tuple[Risk, ...]


@dataclass(frozen=True, slots=True)
class Labelled:
    """Labels were set or, with an empty value, taken away."""

    labels: dict[str, str]
