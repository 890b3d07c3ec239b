"""What somebody may ask of a workflow, and what each command is answered with."""

from collections.abc import Mapping
from dataclasses import dataclass

from pointsman.services.chassis.core.errors import Violation
from pointsman.services.workflow.domain.collaboration import Collaboration
from pointsman.services.workflow.domain.constraints import CheckResult, ConstraintSet
from pointsman.services.workflow.domain.enums import TaskStatus
from pointsman.services.workflow.domain.events import NO_FIELDS, Fields, Imported
from pointsman.services.workflow.domain.model import NO_SETTINGS, Settings
from pointsman.services.workflow.domain.tasks import Task, TaskSpec
from pointsman.services.workflow.domain.views import Progress
from pointsman.services.workflow.domain.zero_decision_audit import Audit


@dataclass(frozen=True, slots=True)
class PlannedTask:
    """A task of a new plan; a status only when a tasks.md gives one."""

    spec: TaskSpec
    status: TaskStatus | None = None


@dataclass(frozen=True, slots=True)
class UpsertPlan:
    """Create a workflow, set its fields, store its plan."""

    entity_id: str
    fields: Fields = NO_FIELDS
    tasks: tuple[PlannedTask, ...] = ()
    append: bool = False
    places: tuple[str, ...] = ()
    """Where each task comes from, for messages; `tasks[i]` where not given."""
    unreadable: tuple[Violation, ...] = ()
    """What could not be read of the file that the plan comes from: told together with the plan's own problems."""


@dataclass(frozen=True, slots=True)
class ImportState:
    """Store a whole workflow as read from a workflow-state.json, with the plan of the tasks.md beside it."""

    entity_id: str
    imported: Imported
    replace: bool = False
    plan: UpsertPlan | None = None


@dataclass(frozen=True, slots=True)
class Execute:
    """Start a planned workflow."""

    entity_id: str
    settings: Settings = NO_SETTINGS
    accepted_findings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NextTasks:
    """Hand out ready tasks."""

    entity_id: str
    limit: int = 1
    worker: str = ""


@dataclass(frozen=True, slots=True)
class ReleaseTask:
    """Give tasks back, or all of them, or the whole workflow."""

    entity_id: str
    task_ids: tuple[str, ...] = ()
    every: bool = False
    release_owner: bool = False


@dataclass(frozen=True, slots=True)
class CompleteTask:
    """A task in progress is done."""

    entity_id: str
    task_id: str
    attempt: int = 0
    used_characters: int = 0


@dataclass(frozen=True, slots=True)
class FailTask:
    """A task in progress failed."""

    entity_id: str
    task_id: str
    reason: str
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class Rejected:
    """A result that was not accepted."""

    task_id: str
    reason: str
    retry: bool = False


@dataclass(frozen=True, slots=True)
class SettleTasks:
    """Record the results of a whole wave."""

    entity_id: str
    completed: tuple[str, ...] = ()
    rejected: tuple[Rejected, ...] = ()


@dataclass(frozen=True, slots=True)
class RetryTask:
    """Let a failed task wait for its turn again."""

    entity_id: str
    task_id: str


@dataclass(frozen=True, slots=True)
class SkipTask:
    """Leave a task out."""

    entity_id: str
    task_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class PauseWorkflow:
    """Stop a running workflow."""

    entity_id: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Resume:
    """Let a paused workflow run on."""

    entity_id: str
    settings: Settings = NO_SETTINGS


@dataclass(frozen=True, slots=True)
class Unblock:
    """An outside dependency, or `all` of them, is there."""

    entity_id: str
    dependency: str


@dataclass(frozen=True, slots=True)
class CancelPlan:
    """End the plan."""

    entity_id: str


@dataclass(frozen=True, slots=True)
class MergeConstraints:
    """Merge what several models hold into the workflow's constraints."""

    entity_id: str
    sets: tuple[ConstraintSet, ...]


@dataclass(frozen=True, slots=True)
class RecordVerification:
    """Record results of checks that the client ran."""

    entity_id: str
    results: tuple[CheckResult, ...]


@dataclass(frozen=True, slots=True)
class WaiveConstraint:
    """Take one constraint out of the way, by name."""

    entity_id: str
    constraint_id: str
    reason: str
    by: str


@dataclass(frozen=True, slots=True)
class RecordUsage:
    """Record context usage: characters added, or the whole context's tokens."""

    entity_id: str
    task_id: str = ""
    characters: int | None = None
    context_tokens: int = 0


@dataclass(frozen=True, slots=True)
class RunAudit:
    """Look for decisions that nobody has made."""

    entity_id: str


@dataclass(frozen=True, slots=True)
class PlanAnswer:
    """The answer to UpsertPlan."""

    progress: Progress
    collaboration: Collaboration | None
    created: bool


@dataclass(frozen=True, slots=True)
class HandedOut:
    """The answer to NextTasks: tasks that belong to the caller now."""

    tasks: tuple[Task, ...]
    progress: Progress


@dataclass(frozen=True, slots=True)
class Counted:
    """An answer with a number: tasks released or freed, or a task's retries."""

    progress: Progress
    count: int


@dataclass(frozen=True, slots=True)
class MergeAnswer:
    """The answer to MergeConstraints."""

    progress: Progress
    constraints: ConstraintSet
    dropped: ConstraintSet


@dataclass(frozen=True, slots=True)
class UnmetAnswer:
    """Where the workflow stands, and what still keeps it from completing."""

    progress: Progress
    unmet: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class UsageAnswer:
    """The answer to RecordUsage."""

    progress: Progress
    usage_percent: float


Command = (
    UpsertPlan | ImportState | Execute | NextTasks | ReleaseTask | CompleteTask | FailTask | SettleTasks | RetryTask
    | SkipTask | PauseWorkflow | Resume | Unblock | CancelPlan | MergeConstraints | RecordVerification
    | WaiveConstraint | RecordUsage | RunAudit
)  # fmt: skip

ANSWERS: Mapping[type, type] = {
    UpsertPlan: PlanAnswer,
    ImportState: Progress,
    Execute: Progress,
    NextTasks: HandedOut,
    ReleaseTask: Counted,
    CompleteTask: Progress,
    FailTask: Progress,
    SettleTasks: Progress,
    RetryTask: Counted,
    SkipTask: Progress,
    PauseWorkflow: Progress,
    Resume: Progress,
    Unblock: Counted,
    CancelPlan: Progress,
    MergeConstraints: MergeAnswer,
    RecordVerification: UnmetAnswer,
    WaiveConstraint: UnmetAnswer,
    RecordUsage: UsageAnswer,
    RunAudit: Audit,
}
