"""The statements that bring a slice of a batch's workflows into sight: one per kind of row, however many workflows."""

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
from pointsman.services.workflow.domain.row_selection import Need
from pointsman.services.workflow.domain.tasks import Task, TaskSpec

TASK_COLUMNS = (
    "task_id", "position", "status", "open_dependencies", "attempt", "retry_count", "reason", "worker", "stub", "spec",
)  # fmt: skip

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
Put = Callable[[Workflow, Sequence[Any]], None]


def task_of(row: Sequence[Any]) -> Task:
    """A row of TASK_COLUMNS as the task it keeps."""
    return Task(
        from_json(row[9], TaskSpec), TaskStatus(row[2]), row[1], row[3], row[4], row[5], row[6], row[7], bool(row[8])
    )


class Slices:
    """Shows workflows the rows that they need."""

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

    def show(self, connection: Connection, states: Mapping[str, Workflow], wanted: Mapping[str, Need]) -> None:
        """Bring what is needed into sight, in one round trip."""
        with pipeline(self._database, connection):
            show = self.ask(connection, wanted)
        show(states)

    def ask(self, connection: Connection, wanted: Mapping[str, Need]) -> AttachChildren[Workflow]:
        """Ask for what is needed of workflows; what brings it into their sight once they are there."""
        started = [
            (put, statement.start(connection, {"wanted": msgspec.json.encode(keys).decode(), **more}))
            for statement, put, keys, more in self._questions(wanted)
            if keys
        ]

        def show(states: Mapping[str, Workflow]) -> None:
            for put, cursor in started:
                for row in cursor.fetchall():
                    put(states[row[1] if put is _show_details else row[10]], row)

        return show

    def _questions(self, wanted: Mapping[str, Need]) -> Iterable[tuple[PreparedStatement, Put, Wanted, dict[str, int]]]:
        whole = [(entity_id, "") for entity_id, need in wanted.items() if need.every_task]
        sliced = {entity_id: need for entity_id, need in wanted.items() if not need.every_task}
        most = max((need.ready for need in sliced.values()), default=0)
        turns = [(entity_id, "") for entity_id, need in sliced.items() if need.ready]
        return (
            (self._details, _show_details, [(entity_id, "") for entity_id, need in wanted.items() if need.details], {}),
            (self._every, _show_with_dependencies, whole, {}),
            (self._ready, _show_task, turns, {"most": most}),
            (self._named, _show_task, _keys(sliced, lambda need: need.task_ids), {}),
            (self._in_status, _show_task, _keys(sliced, lambda need: need.statuses), {}),
            (self._dependants, _show_dependant, _keys(sliced, lambda need: need.dependants_of), {}),
        )


def _keys(wanted: Mapping[str, Need], values: Callable[[Need], Iterable[str]]) -> Wanted:
    return [(entity_id, str(value)) for entity_id, need in wanted.items() for value in values(need)]


def _show_task(state: Workflow, row: Sequence[Any]) -> None:
    state.book.show((task_of(row),))


def _show_dependant(state: Workflow, row: Sequence[Any]) -> None:
    state.book.show((task_of(row),))
    state.book.link(row[11], row[0])


def _show_with_dependencies(state: Workflow, row: Sequence[Any]) -> None:
    task = task_of(row)
    state.book.show((task,))
    for dependency in task.spec.depends:
        state.book.link(dependency, task.task_id)


def _show_details(state: Workflow, row: Sequence[Any]) -> None:
    state.details = from_json(row[0], Details)
