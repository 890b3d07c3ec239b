"""The state of a workflow: a small header, the loaded tasks, and the details that few commands need."""

from dataclasses import dataclass, field
from datetime import datetime

from pointsman.services.workflow.domain.collaboration import Collaboration
from pointsman.services.workflow.domain.constraints import NO_CONSTRAINTS, ConstraintSet
from pointsman.services.workflow.domain.enums import (
    ExecutionMode,
    PauseCause,
    TaskStatus,
    WorkflowMode,
    WorkflowStatus,
)
from pointsman.services.workflow.domain.tasks import LoadedTasks, Task
from pointsman.services.workflow.domain.zero_decision_audit import Audit

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
    """A risk that a person accepted."""

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
    """The counters of a workflow without tasks."""
    return dict.fromkeys([TOTAL, READY, *TaskStatus], 0)


@dataclass(slots=True)
class Header:
    """The body of the entity's row; no field grows with the number of tasks."""

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
    """The run that owned it when it was cancelled."""
    failure_reason: str = ""
    pause: Pause | None = None
    counts: dict[str, int] = field(default_factory=no_counts)
    blocking: dict[str, int] = field(default_factory=dict)
    """How many blocked tasks wait for each dependency."""
    current_task: str = ""
    exclusive_task: str = ""
    """The quality gate or commit in progress; nothing else is handed out beside it."""
    flight_phase: str = ""
    """The phase of the tasks in progress, or of the last ones."""
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
        """A copy to apply events to; faster than `replace`, since every decision begins with one."""
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
        """Whether tasks run in subagents: as set, else when there are more than five."""
        return self.counts[TOTAL] > SUBAGENT_TASKS if self.use_subagent is None else self.use_subagent

    @property
    def nothing_to_do(self) -> bool:
        """Whether no task is in progress and none is ready."""
        return self.counts[TaskStatus.IN_PROGRESS] == 0 and self.counts[READY] == 0

    @property
    def resumable(self) -> bool:
        """Whether a run can continue it."""
        waiting = (WorkflowStatus.PLANNED, WorkflowStatus.PAUSED, WorkflowStatus.BLOCKED, WorkflowStatus.FAILED)
        worth = self.status in waiting or (self.status is WorkflowStatus.IDLE and bool(self.intake_excerpt))
        return worth and not self.owner_run_id and not self.cancelled

    @property
    def executable(self) -> bool:
        """Whether it can continue without another decision."""
        if self.status is WorkflowStatus.IDLE:
            return True
        if self.status not in (WorkflowStatus.PLANNED, WorkflowStatus.PAUSED):
            return False
        return self.counts[READY] > 0 or self.counts[TaskStatus.IN_PROGRESS] > 0

    def count(self, task: Task, by: int) -> None:
        """Adds a task to the counters (1) or removes it (-1)."""
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
    """What few commands need; it has its own row."""

    intake_text: str = ""
    constraints: ConstraintSet = NO_CONSTRAINTS
    audit: Audit | None = None
    risks: tuple[Risk, ...] = ()
    document: str = ""
    """The workflow-state.json that was imported, as text."""


@dataclass(slots=True)
class Workflow:
    """The state of the machine: header, loaded tasks, details."""

    header: Header
    tasks: LoadedTasks = field(default_factory=LoadedTasks)
    details: Details = field(default_factory=Details)
    details_changed: bool = False
    was_resumable: bool = False

    def copy(self) -> "Workflow":
        """A copy to apply events to."""
        return Workflow(self.header.copy(), self.tasks.copy(), self.details)

    def replace_task(self, task: Task) -> None:
        """Replaces a loaded task, and updates the counters."""
        self.header.count(self.tasks.by_id[task.task_id], -1)
        self.header.count(task, 1)
        self.tasks.update(task)

    def change_details(self, details: Details) -> None:
        """Replaces the details, and marks them as changed."""
        self.details = details
        self.details_changed = True
