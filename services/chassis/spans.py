"""Transitions as spans, derived from the journal: none is lost with a killed process, none is doubled by a re-send."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import structlog
from sqlalchemy import Connection, bindparam, literal_column, select

from pointsman.otlp.sending import Sender, is_sampled, new_resource, new_sampler
from pointsman.otlp.span import request_of
from pointsman.services.chassis import metrics
from pointsman.services.chassis.clock import to_us
from pointsman.services.chassis.config import TelemetrySettings
from pointsman.services.chassis.lease import Lease, Leases
from pointsman.services.chassis.sql import Prepared, among, packed, upsert
from pointsman.services.chassis.steps import Kinds, Step, spans_of
from pointsman.services.chassis.store import Store
from pointsman.services.chassis.watch import ANY

LEASE_NAME = "spans"
LEASE_SECONDS = 30.0
PAGE_ROWS = 1000
"""As one request these stay below the 4 MiB that collectors take, however long their ids are."""
KEPT_ENTITIES = 4096
RETRY_SECONDS = 2.0
SAFETY_SECONDS = 5.0
GATHER_SECONDS = 0.05

_STORED = Step._fields[: Step._fields.index("cause")]
_ORDER = itemgetter(*(Step._fields.index(name) for name in ("entity_id", "seq", "position", "run_id")))

log = structlog.get_logger()


class Steps:
    """Reads transitions with their traces, in commit order.

    What came before a transition is looked up only where this reader has not just told of it: joined with every row, it
    costs PostgreSQL ten times as much as the row itself.
    """

    def __init__(self, store: Store) -> None:
        journal = store.tables.journal
        columns = [journal.c[name] for name in (*_STORED, "traceparent")]
        page = select(*columns).where(journal.c.position > bindparam("after")).order_by(journal.c.position)
        self._page = Prepared(store.database, page.limit(literal_column(str(PAGE_ROWS))))
        self._find_pasts = Prepared(store.database, _pasts(store))
        self._database = store.database
        self._last: dict[str, Step] = {}

    def page(self, connection: Connection, after_position: int) -> list[Step]:
        """The next steps of the store after a position."""
        rows = self._page.fetch(connection, {"after": after_position})
        pasts: dict[int, tuple[Any, ...]] = {}
        if unknown := self._unknown(rows):
            found = self._find_pasts.fetch(connection, {"values": packed(self._database, unknown)})
            pasts = {past[0]: past[1:] for past in found}
        steps = [self._step(row, pasts) for row in rows]
        while len(self._last) > KEPT_ENTITIES:
            del self._last[next(iter(self._last))]
        return steps

    def _unknown(self, rows: Sequence[tuple[Any, ...]]) -> list[int]:
        """The positions of transitions that do not follow on the last one that is known of their entity."""
        unknown = []
        seen: dict[str, tuple[int, str]] = {}
        for entity_id, seq, position, run_id in map(_ORDER, rows):
            before = seen.get(entity_id)
            if before is None and (last := self._last.get(entity_id)) is not None:
                before = (last.seq, last.run_id)
            if seq > 1 and before != (seq - 1, run_id):
                unknown.append(position)
            seen[entity_id] = (seq, run_id)
        return unknown

    def _step(self, row: tuple[Any, ...], pasts: Mapping[int, Sequence[Any]]) -> Step:
        entity_id, seq, position, _ = _ORDER(row)
        last = self._last.pop(entity_id, None)
        past = pasts.get(position)
        if past is None and last is not None and seq > 1:
            past = (last.at_us, last.run_id, last.created_at_us, last.outer, last.owner)
        elif past is None:
            at_us, cause = row[-2:]
            past = (None, None, at_us, cause, cause)
        step = self._last[entity_id] = Step(*row, *past)
        return step


def _pasts(store: Store) -> Any:
    """What came before some transitions: each value found by its key, whatever a planner thinks of a join."""
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
    return select(journal.c.position, *columns).where(among(store.database, journal.c.position))


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
        self._write_cursor = Prepared(store.database, upsert(store.database, cursors, ("name",), ("position",)))
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
        spans = [
            span
            for step in steps
            for traceparent, span in spans_of(step, self._kinds)
            if self._sampler is None or is_sampled(self._sampler, traceparent)
        ]
        arrived = not spans or self._sender.send(request_of(spans, self._resource))
        return len(spans), arrived, time.thread_time() - begun

    def _read(self, connection: Connection, position: int) -> "_Page":
        begun = time.thread_time()
        steps = self._steps.page(connection, position)
        return _Page(steps, time.thread_time() - begun)

    def _now_us(self) -> int:
        return to_us(self._store.database.clock.now())

    def _cursor(self, connection: Connection) -> int:
        return int(connection.execute(self._read_cursor).scalar() or 0)

    def _move(self, connection: Connection, position: int) -> None:
        self._write_cursor.start(connection, {"name": LEASE_NAME, "position": position})


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
