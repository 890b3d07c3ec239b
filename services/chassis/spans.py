"""Transitions as spans, derived from the journal: none is lost with a killed process, none is doubled by a re-send."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

import structlog
from sqlalchemy import Connection, and_, bindparam, literal_column, select

from pointsman.otlp.sending import Sender, is_sampled, new_resource, new_sampler
from pointsman.otlp.span import request_of
from pointsman.services.chassis import metrics
from pointsman.services.chassis.clock import to_us
from pointsman.services.chassis.config import TelemetrySettings
from pointsman.services.chassis.lease import Lease, Leases
from pointsman.services.chassis.sql import Prepared, upsert
from pointsman.services.chassis.steps import Kinds, Step, noted_of
from pointsman.services.chassis.store import Store
from pointsman.services.chassis.watch import ANY

LEASE_NAME = "spans"
LEASE_SECONDS = 30.0
PAGE_ROWS = 500
RETRY_SECONDS = 2.0
SAFETY_SECONDS = 5.0
GATHER_SECONDS = 0.05

log = structlog.get_logger()


class Steps:
    """Reads transitions with their traces, in commit order."""

    def __init__(self, store: Store) -> None:
        journal = store.tables.journal
        before, first, owned = journal.alias("before"), journal.alias("first"), journal.alias("owned")
        owner = (
            select(owned.c.traceparent)
            .where(owned.c.entity_id == journal.c.entity_id, owned.c.run_id == journal.c.run_id)
            .order_by(owned.c.seq)
            .limit(1)
            .scalar_subquery()
        )
        columns = (
            journal.c.entity_id, journal.c.seq, journal.c.position, journal.c.kind, journal.c.project, journal.c.run_id,
            journal.c.event, journal.c.source, journal.c.target, journal.c.actor, journal.c.at_us,
            journal.c.traceparent.label("cause"), before.c.at_us.label("before_us"),
            before.c.run_id.label("run_before"), first.c.at_us.label("created_at_us"),
            first.c.traceparent.label("outer"), owner.label("owner"),
        )  # fmt: skip
        joined = journal.join(first, and_(first.c.entity_id == journal.c.entity_id, first.c.seq == 1)).outerjoin(
            before, and_(before.c.entity_id == journal.c.entity_id, before.c.seq == journal.c.seq - 1)
        )
        base = select(*columns).select_from(joined)
        page = base.where(journal.c.position > bindparam("after")).order_by(journal.c.position)
        self._page = Prepared(store.database, page.limit(literal_column(str(PAGE_ROWS))))

    def page(self, connection: Connection, after_position: int) -> list[Step]:
        """The next steps of the store after a position."""
        return [Step._make(row) for row in self._page.fetch(connection, {"after": after_position})]


class SpanFollower:
    """A leased loop that exports each transition at least once, always under the same ids."""

    def __init__(self, store: Store, service: str, sender: Sender, settings: TelemetrySettings) -> None:
        self._store = store
        self._resource = new_resource(service)
        self._kinds = Kinds.of(store.machines)
        self._sender = sender
        self._settings = settings
        self._sampler = new_sampler() if settings.sample_transitions else None
        self._leases = Leases(store)
        self._steps = Steps(store)
        cursors = store.tables.cursors
        self._read_cursor = select(cursors.c.position).where(cursors.c.name == LEASE_NAME)
        self._write_cursor = upsert(store.database, cursors, ("name",), ("position",))
        self._lag = metrics.span_lag.labels(store.database.schema)
        self._sent = metrics.spans_sent.labels(store.database.schema)

    async def run(self) -> None:
        """Hold the lease, follow the journal, move the cursor behind what has arrived."""
        with self._store.hub.subscribed(ANY) as news:
            while True:
                lease = await self._leases.acquire(LEASE_NAME, self._store.owner, LEASE_SECONDS)
                if lease is None:
                    await asyncio.sleep(LEASE_SECONDS / 3)
                    continue
                try:
                    await self._follow(lease, news)
                finally:
                    await asyncio.shield(self._leases.release(lease))

    async def _follow(self, lease: Lease, news: asyncio.Event) -> None:
        position = await self._store.database.read(self._cursor)
        held: Lease | None = lease
        while held is not None:
            news.clear()
            page = await self._store.database.read(lambda connection: self._read(connection, position))  # noqa: B023
            if not page.steps:
                self._lag.set(0)
                await _pause(news)
            elif await self._export(page, news):
                position = page.steps[-1].position
                await self._store.perform(lambda connection: self._move(connection, position))  # noqa: B023
            if held.until_us - self._now_us() < LEASE_SECONDS * 2 / 3 * 1_000_000:
                held = await self._leases.renew(held, LEASE_SECONDS)

    async def _export(self, page: "_Page", news: asyncio.Event) -> bool:
        lag_seconds = max(0, self._now_us() - page.steps[0].at_us) / 1_000_000
        self._lag.set(lag_seconds)
        count, arrived, cpu_seconds = await asyncio.to_thread(self._send, page.steps)
        if not arrived:
            log.warning("span_export_failed", store=self._store.database.schema, spans=count)
            await asyncio.sleep(RETRY_SECONDS)
            return False
        self._sent.inc(count)
        if news.is_set() and lag_seconds < self._settings.catch_up_seconds:
            await asyncio.sleep((page.cpu_seconds + cpu_seconds) / self._settings.cpu_share)
        return True

    def _send(self, steps: Sequence[Step]) -> tuple[int, bool, float]:
        """How many spans there were, whether they arrived, and how long a core had to do with it."""
        begun = time.thread_time()
        noted = [one for step in steps for one in noted_of(step, self._kinds)]
        if self._sampler is not None:
            noted = [one for one in noted if is_sampled(self._sampler, one.traceparent)]
        arrived = not noted or self._sender.send(request_of(noted, self._resource))
        return len(noted), arrived, time.thread_time() - begun

    def _read(self, connection: Connection, position: int) -> "_Page":
        begun = time.thread_time()
        steps = self._steps.page(connection, position)
        return _Page(steps, time.thread_time() - begun)

    def _now_us(self) -> int:
        return to_us(self._store.database.clock.now())

    def _cursor(self, connection: Connection) -> int:
        return int(connection.execute(self._read_cursor).scalar() or 0)

    def _move(self, connection: Connection, position: int) -> None:
        connection.execute(self._write_cursor, {"name": LEASE_NAME, "position": position})


@dataclass(frozen=True, slots=True)
class _Page:
    """Some steps, and how long a core had to do with reading them."""

    steps: Sequence[Step]
    cpu_seconds: float


async def _pause(news: asyncio.Event) -> None:
    """Wait for something new, and a little longer for what comes with it."""
    try:
        async with asyncio.timeout(SAFETY_SECONDS):
            await news.wait()
            await asyncio.sleep(GATHER_SECONDS)
    except TimeoutError:
        return
