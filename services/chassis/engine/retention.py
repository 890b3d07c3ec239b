"""Forgets whole entities: all their rows in all tables of a store, or none; and answers what is no command twice alike."""

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Connection, Row, select

from pointsman.services.chassis.core.caller import Caller
from pointsman.services.chassis.core.clock import to_us
from pointsman.services.chassis.core.codec import from_json, to_json
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.storage.store import Store

CHUNK = 500

MayDelete = Callable[[Row[Any]], bool]
"""Whether an entity, given as its row, may be forgotten; asked inside the deleting transaction."""


async def forget_run(store: Store, caller: Caller, run_id: str, may_go: MayDelete) -> int:
    """Forget the run's entities that may go; how many there were, the same when asked again with the same request_id."""

    def job(connection: Connection) -> int | Refusal:
        before: int | Refusal | None = find_answer(connection, store, caller, int)
        if before is not None:
            return before
        entities = store.tables.entities
        found = select(entities).where(entities.c.run_id == run_id, entities.c.project == caller.project)
        rows = connection.execute(found.order_by(entities.c.entity_id).with_for_update()).all()
        gone = [row.entity_id for row in rows if may_go(row)]
        delete_entities(connection, store, gone)
        store_answer(connection, store, caller, "forget_run", len(gone))
        return len(gone)

    outcome = await store.write(job)
    if isinstance(outcome, Refusal):
        raise outcome
    return outcome


def delete_entities(connection: Connection, store: Store, entity_ids: Sequence[str]) -> None:
    """Delete every row of the entities, the context's own tables included: each has `entity_id` as its first key."""
    for table in store.metadata.sorted_tables:
        if "entity_id" in table.c:
            for first in range(0, len(entity_ids), CHUNK):
                some = entity_ids[first : first + CHUNK]
                connection.execute(table.delete().where(table.c.entity_id.in_(some)))


def find_answer(connection: Connection, store: Store, caller: Caller, expected: Any) -> Any:
    """What this request was answered before; a refusal if its id was used for another one, None if it is new."""
    table = store.tables.idempotency
    mine = (
        table.c.request_id == caller.request_id,
        table.c.project == caller.project,
        table.c.principal == caller.principal,
    )
    row = connection.execute(select(table.c.fingerprint, table.c.answer).where(*mine)).first()
    if row is None:
        return None
    if row.fingerprint != caller.fingerprint:
        return Refusal(
            Reason.REQUEST_ID_REUSED,
            "this request_id was used with another body; use a new one",
            metadata={"request_id": caller.request_id},
        )
    return from_json(row.answer, expected)


def store_answer(connection: Connection, store: Store, caller: Caller, command: str, answer: Any) -> None:
    """Keep what a request was answered, so that its repetition is answered alike."""
    row = {
        "request_id": caller.request_id, "project": caller.project, "fingerprint": caller.fingerprint,
        "entity_id": "", "command": command, "answer": to_json(answer),
        "at_us": to_us(store.database.clock.now()), "principal": caller.principal,
    }  # fmt: skip
    connection.execute(store.tables.idempotency.insert(), row)
