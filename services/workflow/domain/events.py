"""The payloads of a workflow's events, as the journal stores them."""

from collections.abc import Mapping
from dataclasses import dataclass

from pointsman.services.workflow.domain.collaboration import Collaboration
from pointsman.services.workflow.domain.constraints import CheckResult, ConstraintSet
from pointsman.services.workflow.domain.enums import EventName, PauseCause, WorkflowMode
from pointsman.services.workflow.domain.model import NO_SETTINGS, Details, Header, Settings
from pointsman.services.workflow.domain.tasks import Task
from pointsman.services.workflow.domain.zero_decision_audit import Audit


@dataclass(frozen=True, slots=True)
class Fields:
    """Fields of a workflow to set; None leaves the stored value."""

    title: str | None = None
    intake_text: str | None = None
    priority: int | None = None
    owner_run_id: str | None = None
    settings: Settings = NO_SETTINGS
    mode: WorkflowMode | None = None
    window_tokens: int | None = None
    warning_threshold: int | None = None
    danger_threshold: int | None = None
    sessions: tuple[tuple[str, str], ...] = ()
    collaboration: Collaboration | None = None
    tech_design: str | None = None
    tasks_file: str | None = None


NO_FIELDS = Fields()


@dataclass(frozen=True, slots=True)
class Created:
    """A workflow was created."""

    workflow_id: str


@dataclass(frozen=True, slots=True)
class Imported:
    """A workflow was imported from a workflow-state.json."""

    header: Header
    details: Details
    tasks: tuple[Task, ...]


@dataclass(frozen=True, slots=True)
class FieldsChanged:
    """Fields of the workflow were set."""

    fields: Fields


@dataclass(frozen=True, slots=True)
class PlanStored:
    """Tasks were appended, or replaced all tasks that were not settled."""

    tasks: tuple[Task, ...]
    append: bool = False


@dataclass(frozen=True, slots=True)
class Executed:
    """The workflow was started."""

    settings: Settings = NO_SETTINGS
    accepted_findings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Claimed:
    """Tasks were handed out to one worker."""

    task_ids: tuple[str, ...]
    worker: str = ""


@dataclass(frozen=True, slots=True)
class Released:
    """Tasks in progress returned to pending."""

    task_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OwnerReleased:
    """The owning run released the workflow."""

    owner_run_id: str


@dataclass(frozen=True, slots=True)
class TaskResult:
    """Why the result of a task was rejected."""

    task_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class TasksSettled:
    """The results of tasks in progress were recorded."""

    completed: tuple[str, ...] = ()
    failed: tuple[TaskResult, ...] = ()
    retried: tuple[TaskResult, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskRetried:
    """A failed task returned to pending."""

    task_id: str


@dataclass(frozen=True, slots=True)
class TaskSkipped:
    """A person skipped a task."""

    task_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Paused:
    """A rule or a person paused the workflow."""

    cause: PauseCause
    message: str
    constraint_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Resumed:
    """A person resumed the workflow."""

    settings: Settings = NO_SETTINGS
    approves_commit: bool = False


@dataclass(frozen=True, slots=True)
class Reopened:
    """The workflow returned to running, on its way to another state."""

    why: str


@dataclass(frozen=True, slots=True)
class Unblocked:
    """External dependencies became available."""

    dependencies: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Blocked:
    """Only tasks that wait for external dependencies are left."""

    dependencies: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """The workflow failed; it hands out nothing until a person acts."""

    reason: str


@dataclass(frozen=True, slots=True)
class Completed:
    """All tasks are settled and all hard constraints met."""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The plan was cancelled."""


@dataclass(frozen=True, slots=True)
class ConstraintsMerged:
    """Constraints were merged; `dropped` is what the merge left out."""

    constraints: ConstraintSet
    dropped: ConstraintSet


@dataclass(frozen=True, slots=True)
class ConstraintsVerified:
    """Results of checks were recorded."""

    results: tuple[CheckResult, ...]


@dataclass(frozen=True, slots=True)
class ConstraintWaived:
    """A person waived a constraint."""

    constraint_id: str
    reason: str
    by: str


@dataclass(frozen=True, slots=True)
class UsageRecorded:
    """Context usage was recorded; `estimated_tokens` is the new total."""

    task_id: str
    tokens: int
    estimated_tokens: int


@dataclass(frozen=True, slots=True)
class Audited:
    """The zero-decision audit was run."""

    audit: Audit


EVENTS: Mapping[str, type] = {
    EventName.CREATED: Created,
    EventName.IMPORTED: Imported,
    EventName.FIELDS_CHANGED: FieldsChanged,
    EventName.PLAN_STORED: PlanStored,
    EventName.EXECUTED: Executed,
    EventName.CLAIMED: Claimed,
    EventName.RELEASED: Released,
    EventName.OWNER_RELEASED: OwnerReleased,
    EventName.TASKS_SETTLED: TasksSettled,
    EventName.TASK_RETRIED: TaskRetried,
    EventName.TASK_SKIPPED: TaskSkipped,
    EventName.PAUSED: Paused,
    EventName.RESUMED: Resumed,
    EventName.REOPENED: Reopened,
    EventName.UNBLOCKED: Unblocked,
    EventName.BLOCKED: Blocked,
    EventName.FAILED: Failed,
    EventName.COMPLETED: Completed,
    EventName.CANCELLED: Cancelled,
    EventName.CONSTRAINTS_MERGED: ConstraintsMerged,
    EventName.CONSTRAINTS_VERIFIED: ConstraintsVerified,
    EventName.CONSTRAINT_WAIVED: ConstraintWaived,
    EventName.USAGE_RECORDED: UsageRecorded,
    EventName.AUDITED: Audited,
}
