"""What agents print while they work: its tail by lease, stored beside the journal and never in it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, MetaData, Row, Table, and_, bindparam, literal_column, select

from pointsman.services.chassis.engine.waiting import wait_for_notification
from pointsman.services.chassis.storage.dialect import any_of, bind_list, upsert
from pointsman.services.chassis.storage.store import Store
from pointsman.services.orchestrator.domain.views import Output
from pointsman.services.orchestrator.store import tables

MAX_TAIL = 65_536
SAFETY_POLL_SECONDS = 2.0


class Outputs:
    """The outputs of runs."""

    def __init__(self, store: Store, metadata: MetaData, assignments: Table) -> None:
        self._store = store
        self.table = tables.outputs(metadata)
        columns = self.table.c
        key = ("entity_id", "assignment_id", "epoch")
        changed = tuple(column.name for column in columns if column.name not in key)
        self._upsert = upsert(store.database, self.table, key, changed)
        self._one = select(self.table).where(*(columns[name] == bindparam(name) for name in key))
        same = (assignments.c.entity_id == columns.entity_id, assignments.c.assignment_id == columns.assignment_id)
        self._of_run = (
            select(self.table, assignments.c.body)
            .join_from(self.table, assignments, and_(*same))
            .where(columns.entity_id == bindparam("entity_id"))
            .order_by(assignments.c.created_at_us, columns.assignment_id, columns.epoch)
        )
        self._transcripts = (
            select(self.table)
            .where(any_of(store.database, columns.assignment_id), columns.transcript_sha256 != literal_column("''"))
            .order_by(columns.epoch)
        )

    def append(self, connection: Connection, run_id: str, output: Output) -> None:
        """Appends a piece; an offset that was sent before is not stored twice."""
        key = {"entity_id": run_id, "assignment_id": output.assignment_id, "epoch": output.epoch}
        row = connection.execute(self._one, key).one_or_none()
        end_offset = row.end_offset if row else 0
        new = output.text[max(0, end_offset - output.offset) :]
        stored = row.tail if row and output.offset <= end_offset else ""
        values = {
            **key,
            "agent_id": output.agent_id,
            "tail": (stored + new)[-MAX_TAIL:],
            "end_offset": max(end_offset, output.offset + len(output.text)),
            "transcript_sha256": output.transcript_sha256 or (row.transcript_sha256 if row else ""),
            "transcript_bytes": output.transcript_bytes or (row.transcript_bytes if row else 0),
        }
        connection.execute(self._upsert, values)

    def notify(self, run_ids: Iterable[str]) -> None:
        """Wake the watchers of these runs, after the commit."""
        self._store.notify({_topic(run_id) for run_id in run_ids})

    def of_run(self, connection: Connection, run_id: str) -> Sequence[Row[Any]]:
        """Every stored tail of a run's outputs, each with its assignment."""
        return connection.execute(self._of_run, {"entity_id": run_id}).all()

    def transcripts(self, connection: Connection, assignment_ids: Sequence[str]) -> Mapping[str, Sequence[Row[Any]]]:
        """The transcripts of assignments, by assignment, the latest last."""
        if not assignment_ids:
            return {}
        rows = connection.execute(self._transcripts, {"values": bind_list(self._store.database, assignment_ids)})
        found: dict[str, list[Row[Any]]] = {}
        for row in rows:
            found.setdefault(row.assignment_id, []).append(row)
        return found

    async def tail(self, run_id: str, is_over: Callable[[], Awaitable[bool]]) -> AsyncIterator[Sequence[Row[Any]]]:
        """Yields the stored tail now, after each change, and a last time at the end."""
        with self._store.hub.subscribed(_topic(run_id), run_id) as news:
            while True:
                news.clear()
                over = await is_over()
                yield await self._store.database.read(lambda connection: self.of_run(connection, run_id))
                if over:
                    return
                await wait_for_notification(news, SAFETY_POLL_SECONDS)


def _topic(run_id: str) -> str:
    return f"#output/{run_id}"
