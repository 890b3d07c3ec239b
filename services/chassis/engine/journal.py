"""Reads the journal: page by page, as a tail that goes on live, and as a chain that can be verified."""

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from sqlalchemy import Connection, bindparam, select

from pointsman.services.chassis.core.codec import DIGEST_COLUMNS, chained_digest
from pointsman.services.chassis.core.errors import not_found
from pointsman.services.chassis.engine.waiting import wait_for_notification
from pointsman.services.chassis.storage.dialect import PreparedStatement
from pointsman.services.chassis.storage.notifications import ANY
from pointsman.services.chassis.storage.store import Store

PAGE_ROWS = 200
SAFETY_POLL_SECONDS = 5.0
_digested = attrgetter(*DIGEST_COLUMNS)


@dataclass(frozen=True, slots=True)
class Transition:
    """One row of the journal."""

    entity_id: str
    kind: str
    seq: int
    position: int
    at_us: int
    event: str
    source: str
    target: str
    payload: str
    actor: str
    run_id: str
    traceparent: str
    digest: str
    project: str
    machine_version: int


class Journal:
    """A store's journal, for reading."""

    def __init__(self, store: Store) -> None:
        self._store = store
        table = store.tables.journal
        columns = [table.c[name] for name in Transition.__slots__]
        of_entity = (
            select(*columns)
            .where(table.c.entity_id == bindparam("entity_id"), table.c.seq > bindparam("after"))
            .order_by(table.c.seq)
            .limit(bindparam("limit"))
        )
        self._of_entity = PreparedStatement(store.database, of_entity)
        self._of_store = (
            select(*columns)
            .where(table.c.position > bindparam("after"))
            .order_by(table.c.position)
            .limit(bindparam("limit"))
        )
        self._of_project = self._of_store.where(table.c.project == bindparam("project"))
        self._owner = select(store.tables.entities.c.kind, store.tables.entities.c.project).where(
            store.tables.entities.c.entity_id == bindparam("entity_id")
        )

    async def page(self, project: str, entity: tuple[str, str], after_seq: int, limit: int) -> list[Transition]:
        """Up to `limit` transitions of an entity, given as (kind, id), after a seq."""

        def query(connection: Connection) -> list[Transition]:
            rows = self.rows(connection, entity[1], after_seq, limit)
            if not rows or (rows[0].kind, rows[0].project) != (entity[0], project):
                self._require(connection, project, entity)
            return rows

        return await self._store.database.read(query)

    def rows(self, connection: Connection, entity_id: str, after_seq: int, limit: int) -> list[Transition]:
        """The same, on a connection that is open already, without asking whose it is."""
        parameters = {"entity_id": entity_id, "after": after_seq, "limit": limit}
        return [Transition(*row) for row in self._of_entity.fetch(connection, parameters)]

    async def tail(
        self, project: str, entity: tuple[str, str], after_seq: int, most: int = 1
    ) -> AsyncIterator[list[Transition]]:
        """Every transition of an entity after a seq, without gap or repeat, then each new one; up to `most` that are there at once."""
        with self._store.hub.subscribed(entity[1]) as news:
            while True:
                news.clear()
                rows = await self.page(project, entity, after_seq, PAGE_ROWS)
                for batch in _batches(rows, most):
                    yield batch
                    after_seq = batch[-1].seq
                if len(rows) < PAGE_ROWS:
                    await wait_for_notification(news, SAFETY_POLL_SECONDS)

    async def changes(self, project: str | None, after_position: int, most: int = 1) -> AsyncIterator[list[Transition]]:
        """Every transition of the store (of one project, if named) after a position, then each new one; batches as `tail`."""
        statement = self._of_store if project is None else self._of_project
        with self._store.hub.subscribed(ANY) as news:
            while True:
                news.clear()
                parameters: dict[str, Any] = {"after": after_position, "limit": PAGE_ROWS}
                if project is not None:
                    parameters["project"] = project
                rows = await self._store.database.read(
                    lambda connection: [Transition(*row) for row in connection.execute(statement, parameters)]  # noqa: B023
                )
                for batch in _batches(rows, most):
                    yield batch
                    after_position = batch[-1].position
                if len(rows) < PAGE_ROWS:
                    await wait_for_notification(news, SAFETY_POLL_SECONDS)

    def _require(self, connection: Connection, project: str, entity: tuple[str, str]) -> None:
        row = connection.execute(self._owner, {"entity_id": entity[1]}).first()
        if row is None or (row.kind, row.project) != (entity[0], project):
            raise not_found(*entity)


async def until(
    batches: AsyncIterator[list[Transition]], is_last: Callable[[Transition], bool]
) -> AsyncIterator[list[Transition]]:
    """The batches of a tail up to the first transition that is the last one, and with it."""
    async for rows in batches:
        for count, row in enumerate(rows, 1):
            if is_last(row):
                yield rows[:count]
                return
        yield rows


def _batches(rows: list[Transition], most: int) -> Iterator[list[Transition]]:
    size = max(1, most)
    return (rows[first : first + size] for first in range(0, len(rows), size))


def broken_links(rows: Iterator[Transition] | list[Transition]) -> list[int]:
    """The seqs of an entity's transitions at which the numbering or the chain of digests does not hold."""
    broken: list[int] = []
    previous, expected_seq = "", 1
    for row in rows:
        digest = chained_digest(previous, _digested(row))
        if row.seq != expected_seq or row.digest != digest:
            broken.append(row.seq)
        previous, expected_seq = row.digest, row.seq + 1
    return broken
