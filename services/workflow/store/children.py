"""The rows of a workflow beyond its header: the slice a batch needs comes in, what changed goes out."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, select

from pointsman.services.chassis.clock import to_us
from pointsman.services.chassis.codec import from_text, to_text
from pointsman.services.chassis.db import Database
from pointsman.services.chassis.ledger import Change
from pointsman.services.chassis.rows import delete_rows, insert_rows, update_rows, upsert_rows
from pointsman.services.chassis.sql import Prepared, among, packed, pipelined
from pointsman.services.workflow.domain.needs import Need, needs
from pointsman.services.workflow.domain.states import TaskStatus
from pointsman.services.workflow.domain.tasks import Task, TaskSpec
from pointsman.services.workflow.domain.workflow import Details, Header, Workflow
from pointsman.services.workflow.store.tables import WorkflowTables

TASK_COLUMNS = (
    "task_id", "position", "status", "open_dependencies", "attempt", "retry_count", "reason", "worker", "stub", "spec",
)  # fmt: skip
_MOVING = ("status", "open_dependencies", "attempt", "retry_count", "reason", "worker")


class WorkflowChildren:
    """Loads and saves tasks, dependencies, details and the list of what can be resumed."""

    body_type: type = Header

    def __init__(self, database: Database, tables: WorkflowTables) -> None:
        self._database = database
        self._find = _Find(database, tables)
        self._keep = _Keep(database, tables)

    def body(self, state: Workflow) -> Header:
        """What the entity's row keeps."""
        return state.header

    def state(self, body: Header) -> Workflow:
        """A workflow of which only the header is in sight."""
        return Workflow(body, was_resumable=body.resumable)

    def load(
        self, connection: Connection, states: Mapping[str, Workflow], commands: Mapping[str, Sequence[Any]]
    ) -> None:
        """Bring into sight what the commands need, for all workflows of the batch in one round trip."""
        with pipelined(self._database, connection):
            started = [
                (state, self._find.start(connection, entity_id, needs(state.header, commands[entity_id])))
                for entity_id, state in states.items()
            ]
            for state, cursors in started:
                for show, cursor in cursors:
                    show(state, cursor.fetchall())

    def save(self, connection: Connection, changes: Sequence[Change[Workflow]]) -> None:
        """Write what changed, one statement per table."""
        with pipelined(self._database, connection):
            self._keep.run(connection, changes)

    def load_details(self, connection: Connection, entity_id: str, state: Workflow) -> Workflow:
        """Bring a workflow's details into sight, for reading."""
        return self._show(connection, entity_id, state, Need(ready=0, details=True))

    def load_whole(self, connection: Connection, entity_id: str, state: Workflow) -> Workflow:
        """Bring a whole workflow into sight, for reading."""
        return self._show(connection, entity_id, state, Need(every_task=True, details=True))

    def _show(self, connection: Connection, entity_id: str, state: Workflow, need: Need) -> Workflow:
        for show, cursor in self._find.start(connection, entity_id, need):
            show(state, cursor.fetchall())
        return state


def task_of(row: Sequence[Any]) -> Task:
    """A row of TASK_COLUMNS as the task it keeps."""
    return Task(
        from_text(row[9], TaskSpec), TaskStatus(row[2]), row[1], row[3], row[4], row[5], row[6], row[7], bool(row[8])
    )


def _show_tasks(state: Workflow, rows: Iterable[Sequence[Any]]) -> None:
    state.book.show(task_of(row) for row in rows)


def _show_dependants(state: Workflow, rows: Iterable[Sequence[Any]]) -> None:
    for row in rows:
        task = task_of(row)
        state.book.show((task,))
        state.book.link(row[10], task.task_id)


def _show_every_task(state: Workflow, rows: Iterable[Sequence[Any]]) -> None:
    for row in rows:
        task = task_of(row)
        state.book.show((task,))
        for dependency in task.spec.depends:
            state.book.link(dependency, task.task_id)


def _show_details(state: Workflow, rows: Iterable[Sequence[Any]]) -> None:
    for row in rows:
        state.details = from_text(row[0], Details)


class _Find:
    """The statements that bring rows into sight."""

    def __init__(self, database: Database, tables: WorkflowTables) -> None:
        tasks, edges = tables.tasks, tables.dependencies
        self._database = database
        columns = [tasks.c[name] for name in TASK_COLUMNS]
        of_entity = select(*columns).where(tasks.c.entity_id == bindparam("entity_id"))
        self._every = Prepared(database, of_entity)
        self._named = Prepared(database, of_entity.where(among(database, tasks.c.task_id)))
        self._in_status = Prepared(database, of_entity.where(among(database, tasks.c.status)))
        ready = of_entity.where(tasks.c.status == bindparam("status"), tasks.c.open_dependencies == bindparam("none"))
        self._ready = Prepared(
            database, ready.order_by(tasks.c.position).limit(bindparam("most")).offset(bindparam("none"))
        )
        joined = edges.join(tasks, (tasks.c.entity_id == edges.c.entity_id) & (tasks.c.task_id == edges.c.dependant_id))
        freed = select(*columns, edges.c.task_id.label("dependency")).select_from(joined)
        freed = freed.where(edges.c.entity_id == bindparam("entity_id"), among(database, edges.c.task_id))
        self._dependants = Prepared(database, freed)
        details = select(tables.details.c.body).where(tables.details.c.entity_id == bindparam("entity_id"))
        self._details = Prepared(database, details)

    def start(self, connection: Connection, entity_id: str, need: Need) -> list[tuple[Any, Any]]:
        """Ask for what is needed; how each answer is to be shown, and the cursor that will have it."""
        of = {"entity_id": entity_id}
        started: list[tuple[Any, Any]] = []
        if need.details:
            started.append((_show_details, self._details.start(connection, of)))
        if need.every_task:
            started.append((_show_every_task, self._every.start(connection, of)))
            return started
        turn = {**of, "status": TaskStatus.PENDING.value, "none": 0, "most": need.ready}
        started.append((_show_tasks, self._ready.start(connection, turn)))
        for statement, show, values in (
            (self._named, _show_tasks, need.task_ids),
            (self._in_status, _show_tasks, need.statuses),
            (self._dependants, _show_dependants, need.dependants_of),
        ):
            if values:
                bound = {**of, "values": packed(self._database, [str(value) for value in values])}
                started.append((show, statement.start(connection, bound)))
        return started


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
        "reason": task.reason, "worker": task.worker, "stub": int(task.stub), "spec": to_text(task.spec),
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
    return {"entity_id": change.entity_id, "body": to_text(state.details)}


def _listed_row(change: Change[Workflow], state: Workflow) -> dict[str, Any]:
    header = state.header
    return {
        "entity_id": change.entity_id, "project": change.project, "waits": int(not header.executable),
        "priority": header.priority, "updated_at_us": -to_us(change.at),
    }  # fmt: skip


def _leaves_list(state: Workflow) -> bool:
    return state.was_resumable and not state.header.resumable
