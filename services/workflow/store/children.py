"""The rows of a workflow beyond its header: the slice a batch needs comes in, what changed goes out."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from pointsman.services.chassis.core.clock import to_us
from pointsman.services.chassis.core.codec import to_json
from pointsman.services.chassis.engine.changes import AttachChildren, Change
from pointsman.services.chassis.storage.bulk import delete_rows, insert_rows, update_rows, upsert_rows
from pointsman.services.chassis.storage.database import Database
from pointsman.services.workflow.domain.model import Header, Workflow
from pointsman.services.workflow.domain.row_selection import Need, is_audited, needs
from pointsman.services.workflow.domain.tasks import Task
from pointsman.services.workflow.store.slices import Slices
from pointsman.services.workflow.store.tables import WorkflowTables

_MOVING = ("status", "open_dependencies", "attempt", "retry_count", "reason", "worker")


class WorkflowChildren:
    """Loads and saves tasks, dependencies, details and the list of what can be resumed."""

    body_type: type = Header

    def __init__(self, database: Database, tables: WorkflowTables) -> None:
        self._slices = Slices(database)
        self._keep = _Keep(database, tables)

    def body(self, state: Workflow) -> Header:
        """What the entity's row keeps."""
        return state.header

    def state(self, body: Header) -> Workflow:
        """A workflow of which only the header is in sight."""
        return Workflow(body, was_resumable=body.resumable)

    def load(self, connection: Connection, commands: Mapping[str, Sequence[Any]]) -> AttachChildren[Workflow]:
        """Bring into sight what the commands need, one statement per kind of row for the whole batch."""
        show_named = self._slices.ask(connection, {key: needs(group) for key, group in commands.items()})

        def show(states: Mapping[str, Workflow]) -> None:
            show_named(states)
            audited = [key for key, state in states.items() if is_audited(state.header, commands[key])]
            if audited:
                self._slices.show(connection, states, dict.fromkeys(audited, Need(every_task=True, details=True)))

        return show

    def save(self, connection: Connection, changes: Sequence[Change[Workflow]]) -> None:
        """Write what changed, one statement per table."""
        self._keep.run(connection, changes)

    def load_details(self, connection: Connection, entity_id: str, state: Workflow) -> Workflow:
        """Bring a workflow's details into sight, for reading."""
        self._slices.show(connection, {entity_id: state}, {entity_id: Need(ready=0, details=True)})
        return state

    def load_whole(self, connection: Connection, entity_id: str, state: Workflow) -> Workflow:
        """Bring a whole workflow into sight, for reading."""
        self._slices.show(connection, {entity_id: state}, {entity_id: Need(every_task=True, details=True)})
        return state


class _Keep:
    """The statements that write what changed."""

    def __init__(self, database: Database, tables: WorkflowTables) -> None:
        tasks, of_entity = tables.tasks, {"entity_id": "of_entity"}
        self._forget_tasks = delete_rows(database, tasks, of_entity)
        self._forget_edges = delete_rows(database, tables.dependencies, of_entity)
        self._add_task = insert_rows(database, tasks)
        self._add_edge = insert_rows(database, tables.dependencies)
        self._move_task = update_rows(database, tasks, of_entity | {"task_id": "of_task"}, _MOVING)
        self._keep_details = upsert_rows(database, tables.details, ("entity_id",))
        self._list = upsert_rows(database, tables.resumable, ("entity_id",))
        self._unlist = delete_rows(database, tables.resumable, of_entity)

    def run(self, connection: Connection, changes: Sequence[Change[Workflow]]) -> None:
        """Write the rows of all changes."""
        states = [(change, change.state) for change in changes if change.state is not None]
        new = [(change.entity_id, task) for change, state in states for task in _new_tasks(state)]
        moved = [_moved_row(change.entity_id, task) for change, state in states for task in _moved_tasks(state)]
        edges = [_edge_row(entity_id, task, dependency) for entity_id, task in new for dependency in task.spec.depends]
        rewritten = [{"of_entity": change.entity_id} for change, state in states if _replaces_rows(change, state)]
        rows = (
            (self._forget_tasks, rewritten),
            (self._forget_edges, rewritten),
            (self._move_task, moved),
            (self._add_task, [_task_row(entity_id, task) for entity_id, task in new]),
            (self._add_edge, edges),
            (self._keep_details, [_details_row(change, state) for change, state in states if state.details_changed]),
            (self._list, [_listed_row(change, state) for change, state in states if state.header.resumable]),
            (self._unlist, [{"of_entity": change.entity_id} for change, state in states if _leaves_list(state)]),
        )
        for statement, parameters in rows:
            if parameters:
                statement.run(connection, parameters)


def _replaces_rows(change: Change[Workflow], state: Workflow) -> bool:
    return state.book.rewritten and not change.is_new


def _new_tasks(state: Workflow) -> list[Task]:
    book = state.book
    return list(book.tasks.values()) if book.rewritten else [book.tasks[task_id] for task_id in book.added]


def _moved_tasks(state: Workflow) -> list[Task]:
    book = state.book
    return [] if book.rewritten else [book.tasks[task_id] for task_id in sorted(book.touched - book.added)]


def _task_row(entity_id: str, task: Task) -> dict[str, Any]:
    return {
        "entity_id": entity_id, "task_id": task.task_id, "position": task.position, "status": task.status.value,
        "open_dependencies": task.open_dependencies, "attempt": task.attempt, "retry_count": task.retry_count,
        "reason": task.reason, "worker": task.worker, "stub": int(task.stub), "spec": to_json(task.spec),
    }  # fmt: skip


def _moved_row(entity_id: str, task: Task) -> dict[str, Any]:
    return {
        "of_entity": entity_id, "of_task": task.task_id, "status": task.status.value,
        "open_dependencies": task.open_dependencies, "attempt": task.attempt, "retry_count": task.retry_count,
        "reason": task.reason, "worker": task.worker,
    }  # fmt: skip


def _edge_row(entity_id: str, task: Task, dependency: str) -> dict[str, Any]:
    return {"entity_id": entity_id, "task_id": dependency, "dependant_id": task.task_id}


def _details_row(change: Change[Workflow], state: Workflow) -> dict[str, Any]:
    return {"entity_id": change.entity_id, "body": to_json(state.details)}


def _listed_row(change: Change[Workflow], state: Workflow) -> dict[str, Any]:
    header = state.header
    return {
        "entity_id": change.entity_id, "project": change.project, "waits": int(not header.executable),
        "priority": header.priority, "updated_at_us": -to_us(change.at),
    }  # fmt: skip


def _leaves_list(state: Workflow) -> bool:
    return state.was_resumable and not state.header.resumable
