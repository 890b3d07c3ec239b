"""Which child rows the commands of a batch need, so that no command loads a whole plan without need."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from pointsman.services.workflow.domain.commands import (
    CompleteTask,
    Execute,
    FailTask,
    MergeConstraints,
    NextTasks,
    RecordVerification,
    ReleaseTask,
    RetryTask,
    RunAudit,
    SettleTasks,
    SkipTask,
    Unblock,
    UpsertPlan,
    WaiveConstraint,
)
from pointsman.services.workflow.domain.enums import TaskStatus
from pointsman.services.workflow.domain.model import Header
from pointsman.services.workflow.domain.pause_rules import SCANNED


@dataclass(slots=True)
class RowSelection:
    """The rows of one workflow that a batch loads."""

    every_task: bool = False
    statuses: set[TaskStatus] = field(default_factory=set)
    task_ids: set[str] = field(default_factory=set)
    dependants_of: set[str] = field(default_factory=set)
    ready: int = 1
    """How many of the first ready tasks: as many as the batch may hand out or finish, and the one that is next then."""
    details: bool = False

    def add_finished(self, task_ids: Iterable[str]) -> None:
        """Adds tasks that may finish, with their dependants, which may become ready."""
        named = set(task_ids)
        self.task_ids |= named
        self.dependants_of |= named
        self.ready += len(named)


def rows_for(commands: Iterable[object]) -> RowSelection:
    """The rows that the commands of one workflow need, decided one after the other."""
    rows = RowSelection()
    for command in commands:
        _add(rows, command)
    return rows


def needs_audit(header: Header, commands: Iterable[object]) -> bool:
    """Whether the batch executes a workflow that requires an audit, now or after an earlier command of the batch."""
    wants_audit = header.require_audit
    for command in commands:
        if isinstance(command, Execute) and wants_audit:
            return True
        if isinstance(command, UpsertPlan):
            wants_audit = wants_audit or bool(command.fields.settings.require_audit)
    return False


def _add(rows: RowSelection, command: object) -> None:
    match command:
        case NextTasks():
            rows.ready += SCANNED * command.limit
            rows.statuses.add(TaskStatus.IN_PROGRESS)
        case CompleteTask() | FailTask():
            rows.add_finished((command.task_id,))
        case SettleTasks():
            rows.add_finished((*command.completed, *(one.task_id for one in command.rejected)))
        case SkipTask():
            rows.add_finished((command.task_id,))
            rows.details = True
        case RetryTask():
            rows.task_ids.add(command.task_id)
        case ReleaseTask():
            rows.task_ids.update(command.task_ids)
            if command.every or command.release_owner:
                rows.statuses.add(TaskStatus.IN_PROGRESS)
        case _:
            _add_for_plan(rows, command)


def _add_for_plan(rows: RowSelection, command: object) -> None:
    match command:
        case UpsertPlan():
            rows.details = rows.details or command.fields.intake_text is not None
            _add_for_tasks(rows, command)
        case Execute():
            wants_audit = bool(command.settings.require_audit)
            rows.every_task = rows.every_task or wants_audit
            rows.details = rows.details or wants_audit
        case RunAudit():
            rows.every_task = rows.details = True
        case Unblock():
            rows.statuses.add(TaskStatus.BLOCKED)
        case MergeConstraints() | RecordVerification() | WaiveConstraint():
            rows.details = True


def _add_for_tasks(rows: RowSelection, command: UpsertPlan) -> None:
    if command.append:
        for planned in command.tasks:
            rows.task_ids.add(planned.spec.task_id)
            rows.task_ids.update(planned.spec.depends)
    elif command.tasks:
        rows.every_task = True
