"""Stores that were tampered with by somebody who knows how: digests, fold and versions are made to fit what was changed."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pointsman.services.chassis.core.clock import from_us
from pointsman.services.chassis.core.codec import DIGEST_COLUMNS, chained_digest, from_json, to_json
from pointsman.services.chassis.core.machine import Event, Machine
from pointsman.services.orchestrator.domain.machine import MACHINE as RUNS
from pointsman.services.pipeline.domain.machine import MACHINE as PIPELINES
from pointsman.services.workflow.domain.machine import MACHINE as WORKFLOWS
from tests.helpers.plain_stores import write_as_text

Row = dict[str, Any]
MACHINES: dict[str, tuple[Machine[Any], Callable[[Any], Any]]] = {
    "run": (RUNS, lambda state: state.run),
    "pipeline": (PIPELINES, lambda state: state.head),
    "workflow": (WORKFLOWS, lambda state: state.header),
}
"""How each kind of entity is folded, and what of it its row keeps."""


class Forger:
    """Changes the files of four stores."""

    def __init__(self, data: Path) -> None:
        self.data = data
        for store in ("router", "workflow", "pipeline", "orchestrator"):
            write_as_text(data / f"{store}.db")

    def sql(self, store: str, statement: str, *values: Any) -> list[Any]:
        """One statement against a store."""
        with sqlite3.connect(self.data / f"{store}.db") as connection:
            rows = connection.execute(statement, values).fetchall()
        connection.close()
        return rows

    def entity(self, store: str, condition: str) -> str:
        """The first entity for which the condition holds."""
        found = self.sql(store, f"SELECT entity_id FROM entities WHERE {condition} ORDER BY entity_id")
        return str(found[0][0])

    def seq(self, store: str, entity_id: str, event: str) -> int:
        """Where the first such event of the entity stands."""
        wanted = "SELECT min(seq) FROM journal WHERE entity_id = ? AND event = ?"
        return int(self.sql(store, wanted, entity_id, event)[0][0])

    def version(self, store: str, entity_id: str) -> int:
        """How many transitions the entity has."""
        return int(self.sql(store, "SELECT version FROM entities WHERE entity_id = ?", entity_id)[0][0])

    def payload(self, store: str, entity_id: str, event: str, change: Callable[[Any], None]) -> int:
        """Change what the first such event says; where it stands."""
        seq = self.seq(store, entity_id, event)

        def edit(rows: list[Row]) -> None:
            data = json.loads(rows[seq - 1]["payload"])
            change(data)
            rows[seq - 1]["payload"] = json.dumps(data)

        self.journal(store, entity_id, edit)
        return seq

    def journal(self, store: str, entity_id: str, change: Callable[[list[Row]], Any]) -> None:
        """Change an entity's journal, and make everything else fit."""
        with sqlite3.connect(self.data / f"{store}.db") as connection:
            connection.row_factory = sqlite3.Row
            found = connection.execute("SELECT * FROM journal WHERE entity_id = ? ORDER BY seq", (entity_id,))
            rows = [dict(row) for row in found]
        connection.close()
        change(rows)
        digest = ""
        for row in rows:
            row["digest"] = digest = chained_digest(digest, tuple(row[name] for name in DIGEST_COLUMNS))
        self.sql(store, "DELETE FROM journal WHERE entity_id = ?", entity_id)
        for row in rows:
            marks = ", ".join("?" * len(row))
            self.sql(store, f"INSERT INTO journal ({', '.join(row)}) VALUES ({marks})", *row.values())
        body = _folded(rows)
        changed = "UPDATE entities SET version = ?, digest = ?, status = ?, body = ? WHERE entity_id = ?"
        self.sql(store, changed, len(rows), digest, rows[-1]["target"], body, entity_id)


def _folded(rows: list[Row]) -> str:
    """The body of an entity with this journal."""
    machine, body = MACHINES[rows[0]["kind"]]
    state: Any = None
    for row in rows:
        data = from_json(row["payload"], machine.events[row["event"]])
        state = machine.apply(state, Event(row["event"], row["source"], row["target"], data), from_us(row["at_us"]))
    return to_json(body(state))
