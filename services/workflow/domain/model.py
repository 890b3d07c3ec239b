"""A workflow as it stands: a small header, the tasks in sight, and the details that few commands need."""

from dataclasses import dataclass, field
from datetime import datetime

from pointsman.services.workflow.domain.audit import Audit
from pointsman.services.workflow.domain.collaboration import Collaboration
from pointsman.services.workflow.domain.constraints import NO_CONSTRAINTS, ConstraintSet
from pointsman.services.workflow.domain.enums import (
    ExecutionMode,
    PauseCause,
    TaskStatus,
    WorkflowMode,
    WorkflowStatus,
)
from pointsman.services.workflow.domain.tasks import Book, Task

SUBAGENT_TASKS = 5
HISTORY_LIMIT = 10
EXCERPT_LENGTH = 500
DEFAULT_WINDOW_TOKENS = 200_000
READY = "ready"
TOTAL = "total"


@dataclass(frozen=True, slots=True)
class Pause:
    """Why and since when a workflow is paused."""

    cause: PauseCause
    message: str
    since: datetime
    constraint_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UsageRecord:
    """Tokens that one task used."""

    task_id: str
    tokens: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Risk:
    """A risk that a person took."""

    severity: str
    subject_id: str
    description: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Settings:
    """How a workflow is to be executed; None leaves what is stored."""

    execution_mode: ExecutionMode | None = None
    use_subagent: bool | None = None
    pause_before_commit: bool | None = None
    require_audit: bool | None = None


NO_SETTINGS = Settings()


def no_counts() -> dict[str, int]:
    """Counters of a workflow without tasks."""
    return dict.fromkeys([TOTAL, READY, *TaskStatus], 0)


@dataclass(slots=True)
class Header:
    """What the entity's row holds: nothing in it grows with the number of tasks."""

    workflow_id: str
    created_at: datetime
    updated_at: datetime
    status: WorkflowStatus = WorkflowStatus.IDLE
    title: str = ""
    execution_mode: ExecutionMode = ExecutionMode.PHASE
    mode: WorkflowMode = WorkflowMode.NORMAL
    use_subagent: bool | None = None
    pause_before_commit: bool = True
    require_audit: bool = False
    priority: int = 100
    owner_run_id: str = ""
    run_id: str = ""
    intake_excerpt: str = ""
    cancelled: bool = False
    cancelled_by: str = ""
    """The run that had it when it was cancelled."""
    failure_reason: str = ""
    pause: Pause | None = None
    counts: dict[str, int] = field(default_factory=no_counts)
    blocking: dict[str, int] = field(default_factory=dict)
    """How many blocked tasks wait for each dependency."""
    current_task: str = ""
    exclusive_task: str = ""
    """The gate or commit in flight, beside which nothing is handed out."""
    flight_phase: str = ""
    """The phase of what is in flight, or was last."""
    commit_approved: bool = False
    last_position: int = 0
    consecutive_count: int = 0
    max_consecutive_tasks: int = 8
    unblocked: tuple[str, ...] = ()
    sessions: dict[str, str | None] = field(default_factory=dict)
    estimated_tokens: int = 0
    warning_threshold: int = 60
    danger_threshold: int = 80
    window_tokens: int = DEFAULT_WINDOW_TOKENS
    history: tuple[UsageRecord, ...] = ()
    collaboration: Collaboration | None = None
    tasks_file: str = "tasks.md"
    tech_design: str = ""
    constrained: bool = False
    unmet: tuple[str, ...] = ()
    """Hard constraints that are neither verified nor waived."""

    def copy(self) -> "Header":
        """A header to try things out on; faster than `replace`, since every decision begins with one."""
        copied = object.__new__(Header)
        for name in self.__slots__:
            setattr(copied, name, getattr(self, name))
        copied.counts, copied.blocking = dict(self.counts), dict(self.blocking)
        return copied

    @property
    def usage_percent(self) -> float:
        """Context usage in percent of the model's window."""
        return 100 * self.estimated_tokens / self.window_tokens

    @property
    def subagents(self) -> bool:
        """Whether tasks run in subagents: as said, else when there are more than five."""
        return self.counts[TOTAL] > SUBAGENT_TASKS if self.use_subagent is None else self.use_subagent

    @property
    def idle_hands(self) -> bool:
        """Whether nothing is in flight and nothing could be handed out."""
        return self.counts[TaskStatus.IN_PROGRESS] == 0 and self.counts[READY] == 0

    @property
    def resumable(self) -> bool:
        """Whether a run could take it up."""
        waiting = (WorkflowStatus.PLANNED, WorkflowStatus.PAUSED, WorkflowStatus.BLOCKED, WorkflowStatus.FAILED)
        worth = self.status in waiting or (self.status is WorkflowStatus.IDLE and bool(self.intake_excerpt))
        return worth and not self.owner_run_id and not self.cancelled

    @property
    def executable(self) -> bool:
        """Whether it could go on with nothing in the way."""
        if self.status is WorkflowStatus.IDLE:
            return True
        if self.status not in (WorkflowStatus.PLANNED, WorkflowStatus.PAUSED):
            return False
        return self.counts[READY] > 0 or self.counts[TaskStatus.IN_PROGRESS] > 0

    def count(self, task: Task, by: int) -> None:
        """Count a task in or out."""
        self.counts[TOTAL] += by
        self.counts[task.status] += by
        if task.ready:
            self.counts[READY] += by
        if task.status is TaskStatus.BLOCKED:
            for dependency in task.spec.blocked_by:
                if dependency not in self.unblocked:
                    self._wait_for(dependency, by)

    def _wait_for(self, dependency: str, by: int) -> None:
        waiting = self.blocking.get(dependency, 0) + by
        if waiting > 0:
            self.blocking[dependency] = waiting
        else:
            self.blocking.pop(dependency, None)


@dataclass(frozen=True, slots=True)
class Details:
    """What few commands need: kept in a row of its own."""

    intake_text: str = ""
    constraints: ConstraintSet = NO_CONSTRAINTS
    audit: Audit | None = None
    risks: tuple[Risk, ...] = ()
    document: str = ""
    """The workflow-state.json that was imported, as text."""


@dataclass(slots=True)
class Workflow:
    """The state of the machine: header, tasks in sight, details."""

    header: Header
    book: Book = field(default_factory=Book)
    details: Details = field(default_factory=Details)
    details_changed: bool = False
    was_resumable: bool = False

    def draft(self) -> "Workflow":
        """A copy to try events out on."""
        return Workflow(self.header.copy(), self.book.copy(), self.details)

    def replace_task(self, task: Task) -> None:
        """Change a task in sight, and the counters with it."""
        self.header.count(self.book.tasks[task.task_id], -1)
        self.header.count(task, 1)
        self.book.put(task)

    def change_details(self, details: Details) -> None:
        """Keep other details."""
        self.details = details
        self.details_changed = True


def waits_for(header: Header) -> str:
    """What a workflow that does not run waits for, in words."""
    match header.status:
        case WorkflowStatus.IDLE:
            return "a plan"
        case WorkflowStatus.PLANNED:
            return _before(header, "execute")
        case WorkflowStatus.PAUSED:
            return _before(header, f"resume ({header.pause.cause})" if header.pause else "resume")
        case WorkflowStatus.BLOCKED:
            return f"unblock {_blockers(header) or 'all'}"
        case WorkflowStatus.FAILED:
            failed = header.counts[TaskStatus.FAILED]
            return f"retry or skip {header.current_task}".rstrip() if failed and not header.cancelled else "a new plan"
    return ""


def _before(header: Header, step: str) -> str:
    """The step that starts it, after what has to come first when that alone would start nothing."""
    if header.idle_hands and header.blocking:
        return f"unblock {_blockers(header)}, then {step}"
    if header.idle_hands and header.pause is not None and header.pause.cause is PauseCause.CONSTRAINTS and header.unmet:
        return f"verify or waive {', '.join(header.unmet)}"
    return step


def _blockers(header: Header) -> str:
    return ", ".join(sorted(header.blocking))


def warnings(header: Header) -> tuple[str, ...]:
    """What a caller should know but what stops nothing."""
    found = []
    if header.usage_percent > header.warning_threshold:
        over = "danger" if header.usage_percent > header.danger_threshold else "warning"
        limit = header.danger_threshold if over == "danger" else header.warning_threshold
        found.append(f"context usage {header.usage_percent:.0f} % is over the {over} threshold {limit} %")
    if header.subagents and header.consecutive_count >= header.max_consecutive_tasks:
        found.append(f"{header.consecutive_count} tasks in a row, the limit is {header.max_consecutive_tasks}")
    return tuple(found)
