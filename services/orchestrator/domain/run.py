"""A run as its journal makes it."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple

from pointsman.services.orchestrator.domain.enums import (
    TERMINAL,
    Call,
    Capability,
    Grade,
    PermissionState,
    State,
    TaskStatus,
    WorkflowStatus,
)
from pointsman.services.orchestrator.domain.model import (
    NO_TERMS,
    NOTHING_SPENT,
    Assignment,
    Budget,
    Candidate,
    GivenCriterion,
    OpenQuestion,
    OpenRemark,
    Order,
    Plan,
    ProofTerms,
    Risk,
    Slot,
    Task,
    Usage,
)

CONFIDENCE_FLOOR = 0.6
MAX_REJECTIONS = 3
MAX_REPLANS = 3
MAX_FEEDBACK_ROUNDS = 3
MAX_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Permission:
    """What an agent at work on an assignment asks for, and what was answered."""

    assignment_id: str
    text: str
    state: PermissionState = PermissionState.PENDING


@dataclass(frozen=True, slots=True)
class Rest:
    """Until when an account rests, because its provider has a limit."""

    account: str
    until: datetime
    kind: str


@dataclass(slots=True)
class Run:
    """One submitted message on its way through the machine.

    Folding an event sets fields and never changes a collection in place, so that a shallow copy is a copy.
    """

    run_id: str
    status: State
    intent: str
    order: Order
    budget: Budget
    created_at: datetime
    since: datetime
    spent: Usage = NOTHING_SPENT
    confidence: float = 0.0
    asserted: float | None = None
    """What a person said about the confidence; it holds until the next re-plan."""
    epic_id: str = ""
    queued_epic_id: str = ""
    candidates: tuple[Candidate, ...] = ()
    question: OpenQuestion | None = None
    question_count: int = 0
    disposition: str = ""
    calls: dict[str, Call] = field(default_factory=dict)
    call_count: int = 0
    assignments: dict[str, Assignment] = field(default_factory=dict)
    held: tuple[Assignment, ...] = ()
    """Work that the budget has no room for now."""
    named: int = 0
    """How many pieces of work were given an id since the budget first held one back; 0 where it never did."""
    dearest: dict[str, Usage] = field(default_factory=dict)
    """The most that one start used, by capability, where the budget limits tokens or cost."""
    permissions: dict[str, Permission] = field(default_factory=dict)
    """What agents at work asked for, by id, as long as their assignments last."""
    resting: dict[str, Rest] = field(default_factory=dict)
    """Assignments that went back because of a provider's limit, until somebody takes them up."""
    tasks: dict[str, Task] = field(default_factory=dict)
    attempts: dict[str, int] = field(default_factory=dict)
    """The last attempt at each task when the plan was made; a task that a plan leaves out may come back in a later one."""
    slots: dict[str, Slot] = field(default_factory=dict)
    authors: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The principals that handed in work for each task, in any attempt, stage or plan: none of them judges it."""
    plan_authors: tuple[str, ...] = ()
    """The principals that made or patched the plan: none of them debates it."""
    earlier_plan: Plan | None = None
    """What the run that this one does again left to do; gone once it is taken as the plan."""
    plan_count: int = 0
    plan_built_in: bool = False
    plan_is_fresh: bool = False
    plan_approved: bool = False
    """Whether a person said yes to the plan as it is."""
    audit_errors: tuple[str, ...] = ()
    remarks: dict[str, OpenRemark] = field(default_factory=dict)
    blocking_rounds: int = 0
    debated: bool = False
    replans: int = 0
    reasons: tuple[str, ...] = ()
    """Why the next plan is needed."""
    wave: tuple[str, ...] = ()
    wave_verdict: str = ""
    executing: bool = False
    workflow_status: WorkflowStatus = WorkflowStatus.UNKNOWN
    workflow_detail: str = ""
    queue_checks: int = 0
    risks: tuple[Risk, ...] = ()
    accepted_commit: str = ""
    accepted_bundle: str = ""
    end_reason: str = ""

    @property
    def effective_confidence(self) -> float:
        """What the guards look at: a person's word first."""
        return self.confidence if self.asserted is None else self.asserted

    @property
    def ended(self) -> bool:
        """Whether the run is in a terminal state."""
        return self.status in TERMINAL

    @property
    def grade(self) -> Grade | None:
        """What the accepted work is worth: the least grade among the accepted tasks."""
        grades = {task.grade for task in self.tasks.values() if task.status is TaskStatus.ACCEPTED}
        return next((grade for grade in Grade if grade in grades), None)

    @property
    def wave_tasks(self) -> dict[str, Task]:
        """The tasks that were claimed last."""
        return {task_id: self.tasks[task_id] for task_id in self.wave if task_id in self.tasks}

    @property
    def attempts_so_far(self) -> dict[str, int]:
        """The last attempt at each task that was ever tried, whatever plan it was in."""
        tried = {task_id: task.attempt for task_id, task in self.tasks.items() if task.attempt}
        return {**self.attempts, **tried}

    @property
    def given_criteria(self) -> tuple[GivenCriterion, ...]:
        """The user's criteria for what the run works on; on a resumed epic, whose wish is another, the commands."""
        criteria = self.order.criteria
        return tuple(item for item in criteria if item.command) if self.queued_epic_id else criteria

    @property
    def proof_terms(self) -> ProofTerms:
        """What the proof has to show besides the commands; of a resumed epic, whose wish is another, nothing."""
        return NO_TERMS if self.queued_epic_id else self.order.proof_terms

    def is_last_work(self, task_ids: Sequence[str]) -> bool:
        """Whether nothing is left to do once these tasks are accepted: then they are what is delivered."""
        return all(task.status is TaskStatus.ACCEPTED or key in task_ids for key, task in self.tasks.items())

    @property
    def needs_verifier(self) -> bool:
        """Whether there is something that only the verifier can prove."""
        commands = any(c.has_command and c.required for task in self.tasks.values() for c in task.outline.criteria)
        return bool(self.order.repository_id) or commands

    @property
    def live_pipelines(self) -> tuple[str, ...]:
        """Pipelines that the run waits for; one that has ended waits for none."""
        running = (t for t in self.tasks.values() if t.status is TaskStatus.RUNNING and t.pipeline_id)
        return () if self.ended else tuple(task.pipeline_id for task in running)

    def excluded_from(self, capability: Capability, task_id: str) -> tuple[str, ...]:
        """The principals that may not do a piece of work, because they would judge their own."""
        if capability is Capability.DEBATE:
            return self.plan_authors
        if capability is Capability.REVIEW:
            return self.authors.get(task_id, ())
        if capability is Capability.VERIFY:
            return tuple(dict.fromkeys(chain.from_iterable(self.authors.get(key, ()) for key in self.wave)))
        return ()

    def copy(self) -> "Run":
        """Another run with the same fields."""
        return Run(*_fields_of(self))

    def change(self, **fields: Any) -> "Run":
        """The run itself, with these fields set."""
        for name, value in fields.items():
            setattr(self, name, value)
        return self

    def change_task(self, task_id: str, **fields: Any) -> "Run":
        """The run itself, with one task replaced by a changed one."""
        self.tasks = {**self.tasks, task_id: replace(self.tasks[task_id], **fields)}
        return self


_fields_of = attrgetter(*Run.__slots__)


@dataclass(frozen=True, slots=True)
class Lease:
    """An assignment's row in the store: who holds it, under which epoch, for the how-manieth time."""

    agent_id: str
    epoch: int
    attempt: int
    leased: bool
    principal: str = ""
    """Who polled for it; empty where a version gave it out that did not keep this."""
    secret_digests: tuple[str, ...] = ()
    """The digests of its secrets, one for each answer that carried it; none where a version gave it out without."""

    def is_held_by(self, agent_id: str, principal: str, epoch: int, secret_digest: str) -> bool:
        """Whether it is this agent of this principal that holds it, under this epoch and with one of its secrets."""
        is_named = (self.agent_id, self.epoch) == (agent_id, epoch) and self.principal in ("", principal)
        return is_named and (not self.secret_digests or secret_digest in self.secret_digests)


class Crew(NamedTuple):
    """Agents that are there and can do the same for a run, by the principals that they act for."""

    capabilities: frozenset[Capability]
    principals: frozenset[str]


@dataclass(slots=True)
class RunState:
    """A run with what the store knows besides: the leases a batch's commands name, and which agents are there."""

    run: Run
    leases: dict[str, Lease] = field(default_factory=dict)
    present: frozenset[Capability] = frozenset()
    crews: tuple[Crew, ...] = ()
    asked: bool = False
    """Whether a question was open when the batch began."""


def run_id_for(scope: str, request_id: str) -> str:
    """The same request names the same run, however often it is sent: the router keeps its decision under this id.

    The scope is that of the caller's requests; a run that the service itself starts has its project for one.
    """
    return f"run_{hashlib.sha256(f'{scope}/{request_id}'.encode()).hexdigest()[:26]}"
