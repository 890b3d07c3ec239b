"""Invariants of workflows: allowed transitions, tasks claimed once and after their dependencies, honest completion."""

from collections.abc import Iterable, Iterator
from typing import Any

from sqlalchemy import Connection, select

from pointsman.services.chassis.engine.audit import History, Violation
from pointsman.services.chassis.storage.store import Store
from pointsman.services.workflow.domain import events
from pointsman.services.workflow.domain.enums import SETTLED_TASKS, EventName, TaskStatus, WorkflowStatus
from pointsman.services.workflow.domain.model import Workflow
from pointsman.services.workflow.domain.tasks import Task
from pointsman.services.workflow.domain.transitions import allows


class WorkflowProof:
    """Checks workflows one by one, and collects them for the comparison with the other stores."""

    def __init__(self, store: Store) -> None:
        self._tasks = store.metadata.tables["tasks"]
        self.workflows: dict[str, Workflow] = {}

    def __call__(self, connection: Connection, history: History) -> Iterator[Violation]:
        """Every violation of one workflow."""
        workflow: Workflow = history.state
        self.workflows[str(history.row.entity_id)] = workflow
        yield from _table(history)
        yield from _TaskReplay(history).violations()
        table = self._tasks
        rows = connection.execute(
            select(table.c.task_id, table.c.status, table.c.attempt).where(table.c.entity_id == history.row.entity_id)
        )
        stored = {row.task_id: (row.status, row.attempt) for row in rows}
        folded = {task.task_id: (str(task.status), task.attempt) for task in workflow.tasks.by_id.values()}
        for task_id in sorted(stored.keys() | folded.keys()):
            if stored.get(task_id) != folded.get(task_id):
                detail = f"task {task_id} is {stored.get(task_id)}, its journal says {folded.get(task_id)}"
                yield history.violation("fold", history.row.version, detail)


def _table(history: History) -> Iterator[Violation]:
    for step in history.steps:
        if step.source in ("", step.target) or step.event == EventName.IMPORTED:
            continue
        if not allows(WorkflowStatus(step.source), WorkflowStatus(step.target)):
            yield history.violation("table", step.seq, f"{step.source} {step.event} {step.target} is not in the table")


class _TaskReplay:
    """The tasks of one workflow, rebuilt from events alone, independently of the domain code."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._status: dict[str, TaskStatus] = {}
        self._depends: dict[str, tuple[str, ...]] = {}

    def violations(self) -> Iterator[Violation]:
        """Every violation, with its place in the journal."""
        for step, event, workflow in self._history.walk():
            for invariant, detail in self._check(event.data, workflow):
                yield self._history.violation(invariant, step.seq, detail)
            self._apply(event.data, workflow)

    def _check(self, data: Any, workflow: Workflow) -> Iterator[tuple[str, str]]:
        if isinstance(data, events.Claimed):
            yield from self._claimed(data)
        elif isinstance(data, events.TasksSettled):
            for task_id in (*data.completed, *(result.task_id for result in (*data.failed, *data.retried))):
                if self._status.get(task_id) is not TaskStatus.IN_PROGRESS:
                    yield "hand-out", f"{task_id} was settled, but nobody was at work on it"
        elif isinstance(data, events.Completed):
            yield from self._completed(workflow)

    def _claimed(self, data: events.Claimed) -> Iterator[tuple[str, str]]:
        for task_id in data.task_ids:
            if self._status.get(task_id) is not TaskStatus.PENDING:
                yield "hand-out", f"{task_id} was handed out while it was {self._status.get(task_id)}"
            early = [one for one in self._depends.get(task_id, ()) if self._status.get(one) not in SETTLED_TASKS]
            if early:
                yield "dependency", f"{task_id} was handed out before {', '.join(early)}"

    def _completed(self, workflow: Workflow) -> Iterator[tuple[str, str]]:
        left = sorted(task_id for task_id, status in self._status.items() if status not in SETTLED_TASKS)
        if left:
            yield "completion", f"completed with {', '.join(left)} not done"
        if workflow.header.unmet:
            yield "completion", f"completed with unverified constraints {', '.join(workflow.header.unmet)}"

    def _apply(self, data: Any, workflow: Workflow) -> None:
        if isinstance(data, events.Imported | events.PlanStored):
            self._status.clear()
            self._load(workflow.tasks.by_id.values())
        elif isinstance(data, events.Claimed):
            self._set(data.task_ids, TaskStatus.IN_PROGRESS)
        elif isinstance(data, events.Released):
            self._set(data.task_ids, TaskStatus.PENDING)
        elif isinstance(data, events.TasksSettled):
            self._set(data.completed, TaskStatus.COMPLETED)
            self._set((result.task_id for result in data.failed), TaskStatus.FAILED)
            self._set((result.task_id for result in data.retried), TaskStatus.PENDING)
        elif isinstance(data, events.TaskRetried):
            self._set((data.task_id,), TaskStatus.PENDING)
        elif isinstance(data, events.TaskSkipped):
            self._set((data.task_id,), TaskStatus.SKIPPED)
        elif isinstance(data, events.Unblocked):
            blocked = [key for key, status in self._status.items() if status is TaskStatus.BLOCKED]
            self._load(workflow.tasks.by_id[key] for key in blocked)

    def _load(self, tasks: Iterable[Task]) -> None:
        """Stores status and dependencies of tasks."""
        for task in tasks:
            self._status[task.task_id] = task.status
            self._depends[task.task_id] = task.spec.depends

    def _set(self, task_ids: Iterable[str], status: TaskStatus) -> None:
        self._status.update(dict.fromkeys(task_ids, status))
