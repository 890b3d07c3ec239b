"""What can happen to a workflow: one payload for each event that its journal holds."""

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
    """What of a workflow's own fields is set anew; None leaves what is stored."""

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
    """A workflow came to be."""

    workflow_id: str


@dataclass(frozen=True, slots=True)
class Imported:
    """A whole workflow was read from a workflow-state.json."""

    header: Header
    details: Details
    tasks: tuple[Task, ...]


@dataclass(frozen=True, slots=True)
class FieldsChanged:
    """The workflow's own fields were set."""

    fields: Fields


@dataclass(frozen=True, slots=True)
class PlanStored:
    """Tasks were added behind the others, or replaced all that were not settled."""

    tasks: tuple[Task, ...]
    append: bool = False


@dataclass(frozen=True, slots=True)
class Executed:
    """A person said go."""

    settings: Settings = NO_SETTINGS
    accepted_findings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Claimed:
    """Tasks were handed out to one caller."""

    task_ids: tuple[str, ...]
    worker: str = ""


@dataclass(frozen=True, slots=True)
class Released:
    """Tasks in progress went back to pending."""

    task_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OwnerReleased:
    """The run that owned the workflow let it go."""

    owner_run_id: str


@dataclass(frozen=True, slots=True)
class TaskResult:
    """Why a task's result was not taken."""

    task_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class TasksSettled:
    """Results of tasks in progress were recorded."""

    completed: tuple[str, ...] = ()
    failed: tuple[TaskResult, ...] = ()
    retried: tuple[TaskResult, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskRetried:
    """A failed task waits for its turn again."""

    task_id: str


@dataclass(frozen=True, slots=True)
class TaskSkipped:
    """A person left a task out."""

    task_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Paused:
    """A rule or a person stopped the workflow."""

    cause: PauseCause
    message: str
    constraint_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Resumed:
    """A person let the workflow run on."""

    settings: Settings = NO_SETTINGS
    approves_commit: bool = False


@dataclass(frozen=True, slots=True)
class Reopened:
    """The workflow passes through running on its way to another state."""

    why: str


@dataclass(frozen=True, slots=True)
class Unblocked:
    """Outside dependencies are there now."""

    dependencies: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Blocked:
    """Only tasks that wait for outside dependencies are left."""

    dependencies: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """The workflow hands out nothing until a person has dealt with the failure."""

    reason: str


@dataclass(frozen=True, slots=True)
class Completed:
    """Everything is done."""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """A person ended the plan."""


@dataclass(frozen=True, slots=True)
class ConstraintsMerged:
    """What the workflow holds now, and what the merge left out."""

    constraints: ConstraintSet
    dropped: ConstraintSet


@dataclass(frozen=True, slots=True)
class ConstraintsVerified:
    """Results of checks were recorded."""

    results: tuple[CheckResult, ...]


@dataclass(frozen=True, slots=True)
class ConstraintWaived:
    """A person took a constraint out of the way."""

    constraint_id: str
    reason: str
    by: str


@dataclass(frozen=True, slots=True)
class UsageRecorded:
    """Context was used; the estimate is the new one."""

    task_id: str
    tokens: int
    estimated_tokens: int


@dataclass(frozen=True, slots=True)
class Audited:
    """The zero-decision audit was made."""

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
