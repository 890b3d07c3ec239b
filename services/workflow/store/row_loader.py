"""Loads the child rows of a batch's workflows: one statement for each kind of row, however many workflows."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, text

from pointsman.services.chassis.core.codec import from_json
from pointsman.services.chassis.engine.changes import AttachChildren
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.dialect import PreparedStatement, pipeline
from pointsman.services.workflow.domain.enums import TaskStatus
from pointsman.services.workflow.domain.model import Details, Workflow
from pointsman.services.workflow.domain.row_selection import RowSelection
from pointsman.services.workflow.domain.tasks import Task, TaskSpec

TASK_COLUMNS = (
    "task_id", "position", "status", "open_dependencies", "attempt", "retry_count", "reason", "worker", "stub", "spec",
)  # fmt: skip

_ENTITY_ID = len(TASK_COLUMNS)
_DEPENDENCY = _ENTITY_ID + 1
"""The positions of the columns that follow the task's own."""

_TASK = ", ".join(f"t.{name}" for name in TASK_COLUMNS)
_NAMED = "SELECT {task}, t.entity_id FROM {wanted} JOIN tasks AS t ON t.entity_id = w.value ->> 0 AND t.task_id = w.value ->> 1"
_IN_STATUS = "SELECT {task}, t.entity_id FROM {wanted} JOIN tasks AS t ON t.entity_id = w.value ->> 0 AND t.status = w.value ->> 1"
_EVERY = "SELECT {task}, t.entity_id FROM {wanted} JOIN tasks AS t ON t.entity_id = w.value ->> 0"
_DEPENDANTS = (
    "SELECT {task}, t.entity_id, d.task_id FROM {wanted} "
    "JOIN dependencies AS d ON d.entity_id = w.value ->> 0 AND d.task_id = w.value ->> 1 "
    "JOIN tasks AS t ON t.entity_id = d.entity_id AND t.task_id = d.dependant_id"
)
_DETAILS = "SELECT d.body, d.entity_id FROM {wanted} JOIN details AS d ON d.entity_id = w.value ->> 0"
_TURN = (
    "FROM tasks AS r WHERE r.entity_id = w.value ->> 0 AND r.status = 'pending' AND r.open_dependencies = 0 "
    "ORDER BY r.position LIMIT :most"
)
_READY_ON_SQLITE = (
    "SELECT {task}, t.entity_id FROM {wanted} "  # noqa: S608 - nothing in it comes from outside
    f"JOIN tasks AS t ON t.entity_id = w.value ->> 0 AND t.position IN (SELECT r.position {_TURN})"
)
_READY_ON_POSTGRESQL = "SELECT {task}, t.entity_id FROM {wanted} CROSS JOIN LATERAL (SELECT r.* " + _TURN + ") AS t"  # noqa: S608 - the same

Wanted = list[tuple[str, str]]
Add = Callable[[Workflow, Sequence[Any]], None]


def task_of(row: Sequence[Any]) -> Task:
    """The task of a row of TASK_COLUMNS."""
    return Task(
        from_json(row[9], TaskSpec), TaskStatus(row[2]), row[1], row[3], row[4], row[5], row[6], row[7], bool(row[8])
    )


class RowLoader:
    """Loads the selected rows of workflows and adds them to their states."""

    def __init__(self, database: Database) -> None:
        self._database = database
        ready = _READY_ON_POSTGRESQL if database.is_postgresql else _READY_ON_SQLITE
        self._ready = self._prepared(ready)
        self._named = self._prepared(_NAMED)
        self._in_status = self._prepared(_IN_STATUS)
        self._dependants = self._prepared(_DEPENDANTS)
        self._every = self._prepared(_EVERY)
        self._details = self._prepared(_DETAILS)

    def _prepared(self, statement: str) -> PreparedStatement:
        wanted = "json_array_elements(CAST(:wanted AS json))" if self._database.is_postgresql else "json_each(:wanted)"
        return PreparedStatement(self._database, text(statement.format(task=_TASK, wanted=f"{wanted} AS w")))

    def load(self, connection: Connection, states: Mapping[str, Workflow], wanted: Mapping[str, RowSelection]) -> None:
        """Loads the selected rows into the states, in one round trip."""
        with pipeline(self._database, connection):
            attach = self.start(connection, wanted)
        attach(states)

    def start(self, connection: Connection, wanted: Mapping[str, RowSelection]) -> AttachChildren[Workflow]:
        """Sends the queries for the selected rows; the answer adds the rows to the states once those are loaded."""
        started = [
            (add, statement.start(connection, {"wanted": msgspec.json.encode(keys).decode(), **more}))
            for statement, add, keys, more in self._statements(wanted)
            if keys
        ]

        def attach(states: Mapping[str, Workflow]) -> None:
            for add, cursor in started:
                for row in cursor.fetchall():
                    entity_id = row[1] if add is _add_details else row[_ENTITY_ID]
                    add(states[entity_id], row)

        return attach

    def _statements(
        self, wanted: Mapping[str, RowSelection]
    ) -> Iterable[tuple[PreparedStatement, Add, Wanted, dict[str, int]]]:
        whole = [(entity_id, "") for entity_id, rows in wanted.items() if rows.every_task]
        partial = {entity_id: rows for entity_id, rows in wanted.items() if not rows.every_task}
        most = max((rows.ready for rows in partial.values()), default=0)
        with_ready = [(entity_id, "") for entity_id, rows in partial.items() if rows.ready]
        return (
            (self._details, _add_details, [(entity_id, "") for entity_id, rows in wanted.items() if rows.details], {}),
            (self._every, _add_task_with_dependencies, whole, {}),
            (self._ready, _add_task, with_ready, {"most": most}),
            (self._named, _add_task, _keys(partial, lambda rows: rows.task_ids), {}),
            (self._in_status, _add_task, _keys(partial, lambda rows: rows.statuses), {}),
            (self._dependants, _add_dependant, _keys(partial, lambda rows: rows.dependants_of), {}),
        )


def _keys(wanted: Mapping[str, RowSelection], values: Callable[[RowSelection], Iterable[str]]) -> Wanted:
    return [(entity_id, str(value)) for entity_id, rows in wanted.items() for value in values(rows)]


def _add_task(state: Workflow, row: Sequence[Any]) -> None:
    state.tasks.load((task_of(row),))


def _add_dependant(state: Workflow, row: Sequence[Any]) -> None:
    state.tasks.load((task_of(row),))
    state.tasks.add_dependant(row[_DEPENDENCY], row[0])


def _add_task_with_dependencies(state: Workflow, row: Sequence[Any]) -> None:
    task = task_of(row)
    state.tasks.load((task,))
    for dependency in task.spec.depends:
        state.tasks.add_dependant(dependency, task.task_id)


def _add_details(state: Workflow, row: Sequence[Any]) -> None:
    state.details = from_json(row[0], Details)
