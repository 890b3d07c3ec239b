"""The statements of a batch: entities and answers to load; journal rows, entities and answers to write."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, select

from pointsman.services.chassis.storage.bulk import insert_rows, update_rows, upsert_rows
from pointsman.services.chassis.storage.dialect import PreparedStatement, any_of
from pointsman.services.chassis.storage.store import Store

_UPDATED = (
    "run_id", "machine_version", "version", "status", "digest", "traceparent", "entered_at_us", "updated_at_us", "body",
)  # fmt: skip
VersionCheck = Callable[[], bool]
"""Whether every updated row still had the loaded version; called once the statements have completed."""


class EntityRow(NamedTuple):
    """The columns of an entity that a batch loads."""

    entity_id: str
    kind: str
    project: str
    machine_version: int
    version: int
    digest: str
    traceparent: str
    created_at_us: int
    entered_at_us: int
    body: str


class Statements:
    """The writing statements of a store, compiled once."""

    def __init__(self, store: Store) -> None:
        tables = store.tables
        self._store = store
        head = tables.head
        self._insert_journal = insert_rows(
            store.database,
            tables.journal,
            {"position": lambda value: select(head.c.position - value("behind")).scalar_subquery()},
        )
        self._move_head = PreparedStatement(
            store.database, head.update().values(position=head.c.position + bindparam("count"))
        )
        self._write_entities = _on_postgresql(store) if store.database.is_postgresql else _on_sqlite(store)
        self.insert_answer = insert_rows(store.database, tables.idempotency)

    def write_journal(self, connection: Connection, rows: list[dict[str, Any]], names: Sequence[str]) -> None:
        """Advance the head, append the rows, and notify other replicas.

        The head's row stays locked until the commit, so positions become visible in order.
        """
        self._move_head.start(connection, {"count": len(rows)})
        for behind, row in enumerate(reversed(rows)):
            row["behind"] = behind
        self._insert_journal.run(connection, rows)
        if self._store.notify_batcher is not None:
            self._store.notify_batcher.enqueue(connection, names)

    def write_entities(self, connection: Connection, rows: Sequence[dict[str, Any]]) -> VersionCheck:
        """Insert new entities, and update the others from the loaded version."""
        return self._write_entities(connection, rows)


def _on_sqlite(store: Store) -> Callable[[Connection, Sequence[dict[str, Any]]], VersionCheck]:
    """Upsert: SQLite locks the file before the first read, so no other writer can have changed an entity.

    SQLite rewrites the index of every column that a statement sets, changed or not: rows that keep their run have
    a statement without run_id.
    """
    key, without_run = ("entity_id",), [name for name in _UPDATED if name != "run_id"]
    write_entity = upsert_rows(store.database, store.tables.entities, key, without_run, "version")
    write_joined = upsert_rows(store.database, store.tables.entities, key, _UPDATED, "version")

    def write(connection: Connection, rows: Sequence[dict[str, Any]]) -> VersionCheck:
        joined = [row for row in rows if row["joined_run"]]
        others = [row for row in rows if not row["joined_run"]] if joined else rows
        written = write_entity.run(connection, others).rowcount
        written += write_joined.run(connection, joined).rowcount if joined else 0
        return lambda: written == len(rows)

    return write


def _on_postgresql(store: Store) -> Callable[[Connection, Sequence[dict[str, Any]]], VersionCheck]:
    entities = store.tables.entities
    insert_entity = insert_rows(store.database, entities)
    loaded = {"entity_id": "entity_id", "version": "of_version"}
    update_entity = update_rows(store.database, entities, loaded, _UPDATED)

    def write(connection: Connection, rows: Sequence[dict[str, Any]]) -> VersionCheck:
        new = [row for row in rows if row["of_version"] == 0]
        moved = [row for row in rows if row["of_version"] > 0]
        if new:
            insert_entity.run(connection, new)
        updated = update_entity.run(connection, moved) if moved else None
        return lambda: updated is None or updated.rowcount == len(moved)

    return write


def find_answers(store: Store) -> PreparedStatement:
    """The stored answers of request ids."""
    table = store.tables.idempotency
    columns = (table.c.project, table.c.principal, table.c.request_id, table.c.fingerprint, table.c.answer)
    return PreparedStatement(store.database, select(*columns).where(any_of(store.database, table.c.request_id)))


def entity_columns(store: Store) -> list[Any]:
    """The columns of EntityRow."""
    return [store.tables.entities.c[name] for name in EntityRow._fields]


def find_entities(store: Store) -> PreparedStatement:
    """The entities of a batch, locked for update on PostgreSQL."""
    table = store.tables.entities
    found = select(*entity_columns(store)).where(any_of(store.database, table.c.entity_id))
    if store.database.is_postgresql:
        found = found.order_by(table.c.entity_id).with_for_update()
    return PreparedStatement(store.database, found)
