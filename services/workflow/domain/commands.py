"""The commands of a workflow, and their answers."""

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
    """A task of a new plan; with a status only from a tasks.md."""

    spec: TaskSpec
    status: TaskStatus | None = None


@dataclass(frozen=True, slots=True)
class UpsertPlan:
    """Creates a workflow, sets its fields, stores its plan."""

    entity_id: str
    fields: Fields = NO_FIELDS
    tasks: tuple[PlannedTask, ...] = ()
    append: bool = False
    places: tuple[str, ...] = ()
    """The origin of each task, for messages; `tasks[i]` if not given."""
    unreadable: tuple[Violation, ...] = ()
    """Problems of the tasks.md of the plan, refused together with those of the plan itself."""


@dataclass(frozen=True, slots=True)
class ImportState:
    """Stores a workflow read from a workflow-state.json, with the plan of its tasks.md."""

    entity_id: str
    imported: Imported
    replace: bool = False
    plan: UpsertPlan | None = None


@dataclass(frozen=True, slots=True)
class Execute:
    """Starts a planned workflow."""

    entity_id: str
    settings: Settings = NO_SETTINGS
    accepted_findings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NextTasks:
    """Hands out ready tasks to a worker."""

    entity_id: str
    limit: int = 1
    worker: str = ""


@dataclass(frozen=True, slots=True)
class ReleaseTask:
    """Releases tasks in progress, or all of them, or the workflow itself."""

    entity_id: str
    task_ids: tuple[str, ...] = ()
    every: bool = False
    release_owner: bool = False


@dataclass(frozen=True, slots=True)
class CompleteTask:
    """Completes a task in progress."""

    entity_id: str
    task_id: str
    attempt: int = 0
    used_characters: int = 0


@dataclass(frozen=True, slots=True)
class FailTask:
    """Fails a task in progress."""

    entity_id: str
    task_id: str
    reason: str
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class Rejected:
    """A rejected result."""

    task_id: str
    reason: str
    retry: bool = False


@dataclass(frozen=True, slots=True)
class SettleTasks:
    """Records the results of a whole wave."""

    entity_id: str
    completed: tuple[str, ...] = ()
    rejected: tuple[Rejected, ...] = ()


@dataclass(frozen=True, slots=True)
class RetryTask:
    """Returns a failed task to pending."""

    entity_id: str
    task_id: str


@dataclass(frozen=True, slots=True)
class SkipTask:
    """Skips a task."""

    entity_id: str
    task_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class PauseWorkflow:
    """Pauses a running workflow."""

    entity_id: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Resume:
    """Resumes a paused workflow."""

    entity_id: str
    settings: Settings = NO_SETTINGS


@dataclass(frozen=True, slots=True)
class Unblock:
    """Marks an external dependency, or `all` of them, as available."""

    entity_id: str
    dependency: str


@dataclass(frozen=True, slots=True)
class CancelPlan:
    """Cancels the plan."""

    entity_id: str


@dataclass(frozen=True, slots=True)
class MergeConstraints:
    """Merges the constraint sets of several models into those of the workflow."""

    entity_id: str
    sets: tuple[ConstraintSet, ...]


@dataclass(frozen=True, slots=True)
class RecordVerification:
    """Records results of checks that the client ran."""

    entity_id: str
    results: tuple[CheckResult, ...]


@dataclass(frozen=True, slots=True)
class WaiveConstraint:
    """Waives one constraint, by name."""

    entity_id: str
    constraint_id: str
    reason: str
    by: str


@dataclass(frozen=True, slots=True)
class RecordUsage:
    """Records context usage: characters added, or the tokens of the whole context."""

    entity_id: str
    task_id: str = ""
    characters: int | None = None
    context_tokens: int = 0


@dataclass(frozen=True, slots=True)
class RunAudit:
    """Runs the zero-decision audit."""

    entity_id: str


@dataclass(frozen=True, slots=True)
class PlanAnswer:
    """The answer to UpsertPlan."""

    progress: Progress
    collaboration: Collaboration | None
    created: bool


@dataclass(frozen=True, slots=True)
class HandedOut:
    """The answer to NextTasks: the claimed tasks."""

    tasks: tuple[Task, ...]
    progress: Progress


@dataclass(frozen=True, slots=True)
class Counted:
    """An answer with a number: tasks released or unblocked, or retries of a task."""

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
    """The progress, and the hard constraints that are not met."""

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
