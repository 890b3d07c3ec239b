"""Fills in rows of the index of runs that a replica of the version before has written, during a rolling update or before it."""

from typing import Any

from sqlalchemy import Connection, and_, bindparam, literal_column, or_, select, update

from pointsman.services.chassis.core.clock import to_us
from pointsman.services.chassis.core.codec import from_json
from pointsman.services.chassis.storage.dialect import text_of
from pointsman.services.chassis.storage.store import Store
from pointsman.services.orchestrator.domain.run import Run
from pointsman.services.orchestrator.store.attention import LIVE
from pointsman.services.orchestrator.store.children import RunChildren, words
from pointsman.services.orchestrator.store.run_queries import UNKNOWN

BATCH = 200
ASKING = '%"question":{"question_id"%'
"""In the body of a run with an open question, and nowhere else: quotes inside its texts are escaped."""


class RunIndex:
    """Compares rows of the index with their runs."""

    def __init__(self, store: Store, children: RunChildren) -> None:
        self._store = store
        index, entities = children.index, store.tables.entities
        lives = index.c.outcome == literal_column(f"'{LIVE}'")
        asks, noted = text_of(store.database, entities.c.body).like(ASKING), index.c.asked_at_us > literal_column("0")
        behind = or_(
            index.c.outcome == literal_column(f"'{UNKNOWN}'"),
            and_(lives, or_(index.c.ended_at_us > literal_column("0"), asks != noted)),
        )
        self._behind = (
            select(entities.c.entity_id, entities.c.body)
            .join_from(index, entities, index.c.entity_id == entities.c.entity_id)
            .where(behind)
            .limit(BATCH)
        )
        self._bodies = select(entities.c.body).where(entities.c.entity_id == bindparam("of_entity"))
        self._fill = update(index).where(index.c.entity_id == bindparam("of_entity"))

    async def fill(self) -> bool:
        """Fill in some rows that are behind; whether there may be more."""
        rows = await self._store.database.read(lambda connection: connection.execute(self._behind).all())
        if rows:
            await self._store.write(lambda connection: self._fill_in(connection, [row.entity_id for row in rows]))
        return len(rows) == BATCH

    def _fill_in(self, connection: Connection, run_ids: list[str]) -> None:
        """Read again where nobody else writes, so that what is filled in is what is so."""
        for run_id in run_ids:
            body = connection.execute(self._bodies, {"of_entity": run_id}).scalar_one_or_none()
            if body is not None:
                connection.execute(self._fill.values(_row(from_json(body, Run))), {"of_entity": run_id})


def _row(run: Run) -> dict[str, Any]:
    asked = to_us(run.question.asked_at) if run.question is not None and not run.ended else 0
    outcome = str(run.status) if run.ended else LIVE
    return {"outcome": outcome, "asked_at_us": asked, "words": words(run.run_id, run.intent, run.order)}
