"""Follows the journal and exports its transitions as spans: at least once, each under the same span id."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from sqlalchemy import Connection, bindparam, literal_column, select

from pointsman.services.chassis.core.clock import to_us
from pointsman.services.chassis.core.config import TelemetrySettings
from pointsman.services.chassis.engine.leases import Lease, Leases
from pointsman.services.chassis.engine.waiting import wait_for_notification
from pointsman.services.chassis.spans.export_protocol import ExportAnswer, Page, encode
from pointsman.services.chassis.spans.exporter import Exporter, ExporterGone
from pointsman.services.chassis.spans.transitions import JOURNAL_COLUMNS, Row, states_by_kind
from pointsman.services.chassis.storage.dialect import PreparedStatement, any_of, bind_list, upsert
from pointsman.services.chassis.storage.notifications import ANY
from pointsman.services.chassis.storage.store import Store
from pointsman.services.chassis.telemetry import metrics

LEASE_NAME = "spans"
LEASE_SECONDS = 30.0
PAGE_ROWS = 1000
"""One request of so many rows stays below the 4 MiB limit of collectors, even with the longest ids."""
RETRY_SECONDS = 2.0
SAFETY_POLL_SECONDS = 5.0
BATCH_DELAY_SECONDS = 0.05

POSITION, AT_US = JOURNAL_COLUMNS.index("position"), JOURNAL_COLUMNS.index("at_us")

log = structlog.get_logger()


class TransitionReader:
    """Reads journal rows in commit order, and the predecessors of rows."""

    def __init__(self, store: Store) -> None:
        journal = store.tables.journal
        columns = [journal.c[name] for name in (*JOURNAL_COLUMNS, "traceparent")]
        page = select(*columns).where(journal.c.position > bindparam("after")).order_by(journal.c.position)
        self._page = PreparedStatement(store.database, page.limit(literal_column(str(PAGE_ROWS))))
        self._find_predecessors = PreparedStatement(store.database, _previous_transitions(store))
        self._database = store.database

    def page(self, connection: Connection, after_position: int) -> list[Row]:
        """The next rows of the store after a position."""
        return self._page.fetch(connection, {"after": after_position})

    def predecessors(self, connection: Connection, positions: Sequence[int]) -> list[Row]:
        """Values from the predecessors of the rows at these positions, each with the position first."""
        return self._find_predecessors.fetch(connection, {"values": bind_list(self._database, positions)})


def _previous_transitions(store: Store) -> Any:
    """Scalar subqueries by key, because a join would leave the access path to the planner."""
    journal = store.tables.journal
    before, first, owned = journal.alias("before"), journal.alias("first"), journal.alias("owned")
    is_before = (before.c.entity_id == journal.c.entity_id, before.c.seq == journal.c.seq - 1)
    is_first = (first.c.entity_id == journal.c.entity_id, first.c.seq == 1)
    of_run = (owned.c.entity_id == journal.c.entity_id, owned.c.run_id == journal.c.run_id)
    owner = select(owned.c.traceparent).where(*of_run).order_by(owned.c.seq).limit(1)
    wanted = (
        select(before.c.at_us).where(*is_before),
        select(before.c.run_id).where(*is_before),
        select(first.c.at_us).where(*is_first),
        select(first.c.traceparent).where(*is_first),
        owner,
    )
    columns = [one.correlate(journal).scalar_subquery() for one in wanted]
    return select(journal.c.position, *columns).where(any_of(store.database, journal.c.position))


class SpanFollower:
    """The loop that exports the transitions of a store; one replica at a time runs it, under a lease."""

    def __init__(self, store: Store, service: str, exporter: Exporter, settings: TelemetrySettings) -> None:
        self._store = store
        self._service = service
        self._kinds = states_by_kind(store.machines)
        self._exporter = exporter
        self._settings = settings
        self._leases = Leases(store)
        self._transitions = TransitionReader(store)
        cursors = store.tables.cursors
        self._read_cursor = select(cursors.c.position).where(cursors.c.name == LEASE_NAME)
        self._write_cursor = PreparedStatement(
            store.database, upsert(store.database, cursors, ("name",), ("position",))
        )
        self._lag = metrics.span_lag.labels(store.database.schema)
        self._sent = metrics.spans_sent.labels(store.database.schema)

    async def run(self) -> None:
        """Acquire the lease, export new rows, and move the cursor after each page that arrived."""
        with self._store.hub.subscribed(ANY) as notified:
            while True:
                lease = await self._leases.acquire(LEASE_NAME, self._store.owner, LEASE_SECONDS)
                if lease is None:
                    await asyncio.sleep(LEASE_SECONDS / 3)
                    continue
                try:
                    await self._follow(lease, notified)
                finally:
                    await asyncio.shield(self._leases.release(lease))

    async def _follow(self, lease: Lease, notified: asyncio.Event) -> None:
        position = await self._store.database.read(self._cursor)
        held: Lease | None = lease
        while held is not None:
            notified.clear()
            page = await self._store.database.read(lambda connection: self._read(connection, position))  # noqa: B023
            if not page.rows:
                self._lag.set(0)
                await wait_for_notification(notified, SAFETY_POLL_SECONDS)
                await asyncio.sleep(BATCH_DELAY_SECONDS)
            elif await self._export(page, notified):
                position = page.rows[-1][POSITION]
                await self._store.write(lambda connection: self._move(connection, position))  # noqa: B023
            if held.until_us - self._now_us() < LEASE_SECONDS * 2 / 3 * 1_000_000:
                held = await self._leases.renew(held, LEASE_SECONDS)

    async def _export(self, page: "_Page", notified: asyncio.Event) -> bool:
        lag_seconds = max(0, self._now_us() - page.rows[0][AT_US]) / 1_000_000
        self._lag.set(lag_seconds)
        answer = await self._send(page)
        if answer is None or answer.lost:
            log.warning("span_export_failed", store=self._store.database.schema, transitions=len(page.rows))
            await asyncio.sleep(RETRY_SECONDS)
            return False
        self._sent.inc(answer.spans)
        if notified.is_set() and lag_seconds < self._settings.catch_up_seconds:
            cpu_seconds = page.cpu_seconds + answer.cpu_seconds
            await asyncio.sleep(max(self._exporter.delay_seconds, cpu_seconds / self._settings.cpu_share))
        return True

    async def _send(self, page: "_Page") -> ExportAnswer | None:
        """Export a page, adding predecessors until none is missing; None if the exporting process has gone."""
        try:
            answer = await self._exporter.export(page.request)
            while answer.unknown:
                unknown = answer.unknown
                predecessors = await self._store.database.read(
                    lambda connection: self._transitions.predecessors(connection, unknown)  # noqa: B023
                )
                page = self._new_page(page.rows, [*page.predecessors, *predecessors])
                answer = await self._exporter.export(page.request)
        except ExporterGone:
            return None
        return answer

    def _read(self, connection: Connection, position: int) -> "_Page":
        begun = time.thread_time()
        page = self._new_page(self._transitions.page(connection, position))
        page.cpu_seconds = time.thread_time() - begun
        return page

    def _new_page(self, rows: Sequence[Row], predecessors: Sequence[Row] = ()) -> "_Page":
        request = Page(self._service, self._kinds, self._settings.sample_transitions, rows, predecessors)
        return _Page(rows, predecessors, encode(request))

    def _now_us(self) -> int:
        return to_us(self._store.database.clock.now())

    def _cursor(self, connection: Connection) -> int:
        return int(connection.execute(self._read_cursor).scalar() or 0)

    def _move(self, connection: Connection, position: int) -> None:
        self._write_cursor.start(connection, {"name": LEASE_NAME, "position": position})


@dataclass(slots=True)
class _Page:
    """Journal rows and the encoded request that exports them."""

    rows: Sequence[Row]
    predecessors: Sequence[Row]
    request: bytes
    cpu_seconds: float = 0.0
    """CPU time that reading them took."""
