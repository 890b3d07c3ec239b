"""The statements that write a batch: the journal behind its head, the entities, the answers."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, func, select

from pointsman.services.chassis.rows import insert_rows, update_rows
from pointsman.services.chassis.sql import Prepared
from pointsman.services.chassis.store import Store
from pointsman.services.chassis.watch import channel, pack

_UPDATED = (
    "run_id", "machine_version", "version", "status", "digest", "traceparent", "entered_at_us", "updated_at_us", "body",
)  # fmt: skip


class Statements:
    """The writing statements of a store, built once."""

    def __init__(self, store: Store) -> None:
        tables = store.tables
        entities = tables.entities
        self._store = store
        head = tables.head
        self._insert_journal = insert_rows(
            store.database,
            tables.journal,
            {"position": lambda value: select(head.c.position - value("behind")).scalar_subquery()},
        )
        self._move_head = Prepared(store.database, head.update().values(position=head.c.position + bindparam("count")))
        self._notify = Prepared(store.database, select(func.pg_notify(bindparam("channel"), bindparam("news"))))
        self._insert_entity = insert_rows(store.database, entities)
        loaded = {"entity_id": "of_entity", "version": "of_version"}
        self._update_entity = update_rows(store.database, entities, loaded, _UPDATED)
        self.insert_answer = insert_rows(store.database, tables.idempotency)

    def write_journal(self, connection: Connection, rows: list[dict[str, Any]], names: Sequence[str]) -> None:
        """Move the head on, append the rows behind it, and tell the other replicas.

        The head's row stays locked until the commit, so positions become visible in their own order.
        """
        self._move_head.start(connection, {"count": len(rows)})
        for behind, row in enumerate(reversed(rows)):
            row["behind"] = behind
        self._insert_journal.run(connection, rows)
        if self._store.database.is_postgresql:
            self._notify.start(connection, {"channel": channel(self._store.database), "news": pack(names)})

    def write_entities(self, connection: Connection, rows: Sequence[dict[str, Any]]) -> Any:
        """Insert the new ones, move the others on from the version that was loaded; the cursor that moved them."""
        new = [{**row, "entity_id": row["of_entity"]} for row in rows if row["of_version"] == 0]
        moved = [row for row in rows if row["of_version"] > 0]
        if new:
            self._insert_entity.run(connection, new)
        return self._update_entity.run(connection, moved) if moved else None
