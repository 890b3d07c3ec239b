"""The child rows of workflows: loads those that a batch needs, saves those that changed."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from pointsman.services.chassis.core.clock import to_us
from pointsman.services.chassis.core.codec import to_json
from pointsman.services.chassis.engine.changes import AttachChildren, Change
from pointsman.services.chassis.storage.bulk import delete_rows, insert_rows, update_rows, upsert_rows
from pointsman.services.chassis.storage.database import Database
from pointsman.services.workflow.domain.model import Header, Workflow
from pointsman.services.workflow.domain.row_selection import RowSelection, needs_audit, rows_for
from pointsman.services.workflow.domain.tasks import Task
from pointsman.services.workflow.store.row_loader import RowLoader
from pointsman.services.workflow.store.tables import WorkflowTables

_UPDATED_COLUMNS = ("status", "open_dependencies", "attempt", "retry_count", "reason", "worker")


class WorkflowChildren:
    """Loads and saves tasks, dependencies, details and the index of resumable workflows."""

    body_type: type = Header

    def __init__(self, database: Database, tables: WorkflowTables) -> None:
        self._loader = RowLoader(database)
        self._writer = _RowWriter(database, tables)

    def body(self, state: Workflow) -> Header:
        """The body of the entity's row."""
        return state.header

    def state(self, body: Header) -> Workflow:
        """A workflow of which only the header is loaded."""
        return Workflow(body, was_resumable=body.resumable)

    def load(self, connection: Connection, commands: Mapping[str, Sequence[Any]]) -> AttachChildren[Workflow]:
        """Loads the rows that the commands need, with one statement per kind of row for the whole batch."""
        attach_rows = self._loader.start(connection, {key: rows_for(group) for key, group in commands.items()})

        def attach(states: Mapping[str, Workflow]) -> None:
            attach_rows(states)
            audited = [key for key, state in states.items() if needs_audit(state.header, commands[key])]
            if audited:
                self._loader.load(
                    connection, states, dict.fromkeys(audited, RowSelection(every_task=True, details=True))
                )

        return attach

    def save(self, connection: Connection, changes: Sequence[Change[Workflow]]) -> None:
        """Writes what changed, with one statement per table."""
        self._writer.run(connection, changes)

    def load_details(self, connection: Connection, entity_id: str, state: Workflow) -> Workflow:
        """Loads the details of a workflow, for reading."""
        self._loader.load(connection, {entity_id: state}, {entity_id: RowSelection(ready=0, details=True)})
        return state

    def load_whole(self, connection: Connection, entity_id: str, state: Workflow) -> Workflow:
        """Loads all rows of a workflow, for reading."""
        self._loader.load(connection, {entity_id: state}, {entity_id: RowSelection(every_task=True, details=True)})
        return state


class _RowWriter:
    """The statements that write changed rows."""

    def __init__(self, database: Database, tables: WorkflowTables) -> None:
        tasks, of_entity = tables.tasks, {"entity_id": "of_entity"}
        self._delete_tasks = delete_rows(database, tasks, of_entity)
        self._delete_edges = delete_rows(database, tables.dependencies, of_entity)
        self._add_task = insert_rows(database, tasks)
        self._add_edge = insert_rows(database, tables.dependencies)
        self._update_task = update_rows(database, tasks, of_entity | {"task_id": "of_task"}, _UPDATED_COLUMNS)
        self._save_details = upsert_rows(database, tables.details, ("entity_id",))
        self._save_resumable = upsert_rows(database, tables.resumable, ("entity_id",))
        self._delete_resumable = delete_rows(database, tables.resumable, of_entity)

    def run(self, connection: Connection, changes: Sequence[Change[Workflow]]) -> None:
        """Writes the rows of all changes."""
        states = [(change, change.state) for change in changes if change.state is not None]
        new = [(change.entity_id, task) for change, state in states for task in _new_tasks(state)]
        updated = [_update_row(change.entity_id, task) for change, state in states for task in _updated_tasks(state)]
        edges = [_edge_row(entity_id, task, dependency) for entity_id, task in new for dependency in task.spec.depends]
        replaced = [{"of_entity": change.entity_id} for change, state in states if _replaces_rows(change, state)]
        rows = (
            (self._delete_tasks, replaced),
            (self._delete_edges, replaced),
            (self._update_task, updated),
            (self._add_task, [_task_row(entity_id, task) for entity_id, task in new]),
            (self._add_edge, edges),
            (self._save_details, [_details_row(change, state) for change, state in states if state.details_changed]),
            (
                self._save_resumable,
                [_resumable_row(change, state) for change, state in states if state.header.resumable],
            ),
            (
                self._delete_resumable,
                [{"of_entity": change.entity_id} for change, state in states if _left_resumable(state)],
            ),
        )
        for statement, parameters in rows:
            if parameters:
                statement.run(connection, parameters)


def _replaces_rows(change: Change[Workflow], state: Workflow) -> bool:
    return state.tasks.replaced and not change.is_new


def _new_tasks(state: Workflow) -> list[Task]:
    loaded = state.tasks
    return list(loaded.by_id.values()) if loaded.replaced else [loaded.by_id[task_id] for task_id in loaded.added]


def _updated_tasks(state: Workflow) -> list[Task]:
    loaded = state.tasks
    return [] if loaded.replaced else [loaded.by_id[task_id] for task_id in sorted(loaded.updated - loaded.added)]


def _task_row(entity_id: str, task: Task) -> dict[str, Any]:
    return {
        "entity_id": entity_id, "task_id": task.task_id, "position": task.position, "stub": int(task.stub),
        "spec": to_json(task.spec), **_updated_columns(task),
    }  # fmt: skip


def _update_row(entity_id: str, task: Task) -> dict[str, Any]:
    return {"of_entity": entity_id, "of_task": task.task_id, **_updated_columns(task)}


def _updated_columns(task: Task) -> dict[str, Any]:
    """The values of _UPDATED_COLUMNS."""
    return {
        "status": task.status.value, "open_dependencies": task.open_dependencies, "attempt": task.attempt,
        "retry_count": task.retry_count, "reason": task.reason, "worker": task.worker,
    }  # fmt: skip


def _edge_row(entity_id: str, task: Task, dependency: str) -> dict[str, Any]:
    return {"entity_id": entity_id, "task_id": dependency, "dependant_id": task.task_id}


def _details_row(change: Change[Workflow], state: Workflow) -> dict[str, Any]:
    return {"entity_id": change.entity_id, "body": to_json(state.details)}


def _resumable_row(change: Change[Workflow], state: Workflow) -> dict[str, Any]:
    header = state.header
    return {
        "entity_id": change.entity_id, "project": change.project, "waits": int(not header.executable),
        "priority": header.priority, "updated_at_us": -to_us(change.at),
    }  # fmt: skip


def _left_resumable(state: Workflow) -> bool:
    return state.was_resumable and not state.header.resumable
