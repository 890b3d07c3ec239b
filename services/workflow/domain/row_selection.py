"""Which child rows the commands of a batch have to see, so that no command reads a whole plan without need."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from pointsman.services.workflow.domain import commands as asked
from pointsman.services.workflow.domain.enums import TaskStatus
from pointsman.services.workflow.domain.model import Header


@dataclass(slots=True)
class Need:
    """A slice of a workflow's rows."""

    every_task: bool = False
    statuses: set[TaskStatus] = field(default_factory=set)
    task_ids: set[str] = field(default_factory=set)
    dependants_of: set[str] = field(default_factory=set)
    ready: int = 1
    """How many of the first ready tasks: as many as the batch may take away, and the one that is then next."""
    details: bool = False

    def settle(self, task_ids: Iterable[str]) -> None:
        """Tasks that may land: with their dependants, which they may free."""
        named = set(task_ids)
        self.task_ids |= named
        self.dependants_of |= named
        self.ready += len(named)


def needs(commands: Iterable[object]) -> Need:
    """What the commands, decided one after the other, have to see of their workflow, whatever it is."""
    need = Need()
    for command in commands:
        _add(need, command)
    return need


def is_audited(header: Header, commands: Iterable[object]) -> bool:
    """Whether all of this workflow has to be seen, for an audit that it wants, or is told to want, before it runs."""
    wants_audit = header.require_audit
    for command in commands:
        if isinstance(command, asked.Execute) and wants_audit:
            return True
        if isinstance(command, asked.UpsertPlan):
            wants_audit = wants_audit or bool(command.fields.settings.require_audit)
    return False


def _add(need: Need, command: object) -> None:
    match command:
        case asked.NextTasks():
            need.ready += command.limit
        case asked.CompleteTask() | asked.FailTask():
            need.settle((command.task_id,))
        case asked.SettleTasks():
            need.settle((*command.completed, *(one.task_id for one in command.rejected)))
        case asked.SkipTask():
            need.settle((command.task_id,))
            need.details = True
        case asked.RetryTask():
            need.task_ids.add(command.task_id)
        case asked.ReleaseTask():
            need.task_ids.update(command.task_ids)
            if command.every or command.release_owner:
                need.statuses.add(TaskStatus.IN_PROGRESS)
        case _:
            _add_for_plan(need, command)


def _add_for_plan(need: Need, command: object) -> None:
    match command:
        case asked.UpsertPlan():
            need.details = need.details or command.fields.intake_text is not None
            _add_for_tasks(need, command)
        case asked.Execute():
            wants_audit = bool(command.settings.require_audit)
            need.every_task = need.every_task or wants_audit
            need.details = need.details or wants_audit
        case asked.RunAudit():
            need.every_task = need.details = True
        case asked.Unblock():
            need.statuses.add(TaskStatus.BLOCKED)
        case asked.MergeConstraints() | asked.RecordVerification() | asked.WaiveConstraint():
            need.details = True


def _add_for_tasks(need: Need, command: asked.UpsertPlan) -> None:
    if command.append:
        for planned in command.tasks:
            need.task_ids.add(planned.spec.task_id)
            need.task_ids.update(planned.spec.depends)
    elif command.tasks:
        need.every_task = True
