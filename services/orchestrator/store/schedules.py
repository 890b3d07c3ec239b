"""Schedules: their ledger, their index, how many a project has, and what retention removes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, MetaData, bindparam, func, select

from pointsman.services.chassis.core.clock import to_us
from pointsman.services.chassis.engine.changes import Change
from pointsman.services.chassis.engine.ledger import Ledger
from pointsman.services.chassis.engine.retention import delete_entities
from pointsman.services.chassis.storage.bulk import upsert_rows
from pointsman.services.chassis.storage.store import Store
from pointsman.services.orchestrator.domain.schedules.commands import Create
from pointsman.services.orchestrator.domain.schedules.enums import ScheduleState
from pointsman.services.orchestrator.domain.schedules.machine import MACHINE
from pointsman.services.orchestrator.domain.schedules.model import Schedule
from pointsman.services.orchestrator.domain.views import ScheduleView
from pointsman.services.orchestrator.store import tables

DELETED = str(ScheduleState.DELETED)
FORGET_ROWS = 100


class ScheduleChildren:
    """One row of the index for each schedule."""

    body_type: type = Schedule

    def __init__(self, store: Store, metadata: MetaData) -> None:
        self.index = tables.schedule_index(metadata)
        self._save = upsert_rows(store.database, self.index, ("entity_id",))

    def body(self, state: Schedule) -> Schedule:
        """The whole state is the body."""
        return state

    def state(self, body: Any) -> Schedule:
        """The body is the whole state."""
        schedule: Schedule = body
        return schedule

    def load(self, connection: Connection, commands: Mapping[str, Sequence[Any]]) -> None:
        """Loads nothing: commands need only the body."""

    def save(self, connection: Connection, changes: Sequence[Change[Schedule]]) -> None:
        """Writes the index rows of changed schedules."""
        self._save.run(connection, [_index_row(change) for change in changes])


def _index_row(change: Change[Schedule]) -> dict[str, Any]:
    schedule = change.state
    assert schedule is not None
    is_deleted = schedule.status is ScheduleState.DELETED
    return {
        "entity_id": change.entity_id, "project": change.project, "status": str(schedule.status),
        "created_at_us": to_us(schedule.created_at), "deleted_at_us": to_us(change.at) if is_deleted else 0,
    }  # fmt: skip


class Schedules:
    """The schedules of all projects."""

    def __init__(self, store: Store, metadata: MetaData) -> None:
        self._store = store
        children = ScheduleChildren(store, metadata)
        self.ledger: Ledger[Schedule] = Ledger(store, MACHINE, children, premises=self._count)
        entities, index = store.tables.entities.c, children.index.c
        self._times = select(entities.version, entities.created_at_us, entities.updated_at_us).where(
            entities.entity_id == bindparam("entity_id")
        )
        earlier = (index.created_at_us < bindparam("before_us")) | (index.entity_id < bindparam("before_id"))
        self._page = (
            select(index.entity_id)
            .where(index.project == bindparam("project"), index.created_at_us <= bindparam("before_us"), earlier)
            .where(index.status.in_(bindparam("states", expanding=True)))
            .order_by(index.created_at_us.desc(), index.entity_id.desc())
            .limit(bindparam("limit"))
        )
        self._present = (
            select(func.count())
            .select_from(children.index)
            .where(index.project == bindparam("project"), index.status != DELETED)
        )
        self._old = select(index.entity_id).where(
            index.deleted_at_us > 0, index.deleted_at_us < bindparam("before")
        ).limit(FORGET_ROWS)  # fmt: skip

    async def view(self, project: str, schedule_id: str) -> ScheduleView:
        """A schedule as it is now, or not found."""
        return await self._store.database.read(lambda connection: self._view(connection, project, schedule_id))

    def _view(self, connection: Connection, project: str, schedule_id: str) -> ScheduleView:
        schedule = self.ledger.load(connection, project, schedule_id)
        return ScheduleView(schedule, *connection.execute(self._times, {"entity_id": schedule_id}).one())

    async def page(
        self, project: str, states: Sequence[str], before: tuple[int, str], limit: int
    ) -> list[ScheduleView]:
        """Schedules, newest first, before a place."""
        place = {"before_us": before[0], "before_id": before[1], "limit": limit}

        def query(connection: Connection) -> list[ScheduleView]:
            ids = connection.scalars(self._page, {**place, "project": project, "states": list(states)}).all()
            return [self._view(connection, project, schedule_id) for schedule_id in ids]

        return await self._store.database.read(query)

    def forget_deleted(self, connection: Connection, before_us: int) -> int:
        """Removes schedules that were deleted before a time; how many."""
        old = connection.scalars(self._old, {"before": before_us}).all()
        delete_entities(connection, self._store, old)
        return len(old)

    def _count(self, connection: Connection, commands: Sequence[Any]) -> "ScheduleCounts | None":
        """How many schedules the projects have, where a batch makes one."""
        if not any(isinstance(command, Create) for command in commands):
            return None
        return ScheduleCounts(connection, self._present)


class ScheduleCounts:
    """How many schedules a project has: those that were there before a batch, and those that it makes."""

    def __init__(self, connection: Connection, stored: Any) -> None:
        self._connection = connection
        self._present = stored

    def complete(self, command: Any, changes: Mapping[str, Change[Schedule]]) -> Any:
        """A Create with how many others there are; any other command as it is."""
        if not isinstance(command, Create):
            return command
        before = self._connection.execute(self._present, {"project": command.project}).scalar_one()
        new = sum(change.is_new and change.project == command.project for change in changes.values())
        return replace(command, others=before + new)

    def confirm(self, connection: Connection) -> Callable[[], bool]:  # noqa: ARG002
        """Always: replicas that make schedules at the same moment may exceed the limit by one each, which harms nobody."""
        return lambda: True
