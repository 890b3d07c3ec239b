"""Transitions as spans, derived from the journal: none is lost with a killed process, none is doubled by a re-send."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import structlog
from sqlalchemy import Connection, and_, bindparam, literal_column, select

from pointsman.otlp.noted import Kind, Noted
from pointsman.otlp.sending import Sender, is_sampled, new_resource, new_sampler
from pointsman.otlp.span import request_of
from pointsman.services.chassis import metrics
from pointsman.services.chassis.clock import to_us
from pointsman.services.chassis.config import TelemetrySettings
from pointsman.services.chassis.lease import Lease, Leases
from pointsman.services.chassis.machine import Machine
from pointsman.services.chassis.sql import Prepared, upsert
from pointsman.services.chassis.store import Store
from pointsman.services.chassis.telemetry import new_traceparent, step_traceparent, transition_span_id
from pointsman.services.chassis.watch import ANY

LEASE_NAME = "spans"
LEASE_SECONDS = 30.0
PAGE_ROWS = 500
RETRY_SECONDS = 2.0
SAFETY_SECONDS = 5.0
GATHER_SECONDS = 0.05
FAILED_STATES = frozenset({"FAILED", "failed", "ABORTED"})

log = structlog.get_logger()


class Step(NamedTuple):
    """One transition with what its span needs; all of it is in the journal, so that it is the same at any time."""

    entity_id: str
    seq: int
    position: int
    kind: str
    project: str
    run_id: str
    event: str
    source: str
    target: str
    actor: str
    at_us: int
    cause: str
    """The context of the call that led to it."""
    before_us: int | None
    """When its entity moved before."""
    run_before: str | None
    """To which run its entity belonged before."""
    created_at_us: int
    outer: str
    """The context of the call that created its entity."""
    owner: str
    """The context of the call that gave its entity to its run."""


@dataclass(frozen=True, slots=True)
class Kinds:
    """The kinds of entities of a store, as far as spans differ by them."""

    terminal: Mapping[str, frozenset[str]]
    """The states in which each kind ends; a kind that never ends has no span as a whole."""

    @staticmethod
    def of(machines: Sequence[Machine[Any]]) -> "Kinds":
        """From how each kind decides."""
        return Kinds({machine.kind: machine.terminal for machine in machines})

    def ends(self, kind: str) -> bool:
        """Whether entities of the kind come to an end."""
        return bool(self.terminal.get(kind))


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


def noted_of(step: Step, kinds: Kinds) -> list[Noted]:
    """A transition's span and, where its entity ends or passes into a run, the span of the entity as a whole."""
    spans = [_transition(step, kinds)]
    ended = step.source != step.target and step.target in kinds.terminal.get(step.kind, ())
    if kinds.ends(step.kind) and (_joins_a_run(step) or (ended and _is_on_its_own(step))):
        spans.append(_whole(step))
    return spans


def trace_of(step: Step, kinds: Kinds) -> str:
    """The trace that a transition is in, as the context of its parent.

    The run's, where its entity belongs to one; else the entity's own; for what never ends (a policy, a decision) the
    trace of whoever caused it, so that a run finds there what it has asked.
    """
    ends = kinds.ends(step.kind)
    if not ends and step.cause:
        return step.cause
    if ends and not _is_on_its_own(step):
        return _place(step.owner, step.run_id, 0)
    return _place(step.outer or _own_trace(step.entity_id), step.entity_id, 0 if ends else 1)


_own_trace = lru_cache(4096)(new_traceparent)
_place = lru_cache(4096)(step_traceparent)


def _is_on_its_own(step: Step) -> bool:
    """Whether its entity is its own root; an entity whose run's trace nobody has named stays on its own."""
    return step.run_id in ("", step.entity_id) or not step.owner


def _joins_a_run(step: Step) -> bool:
    """Whether the entity stood on its own up to this step and belongs to a run from now on."""
    return step.run_before == "" and not _is_on_its_own(step)


def _transition(step: Step, kinds: Kinds) -> Noted:
    parent = trace_of(step, kinds)
    own_id = transition_span_id(step.entity_id, step.seq)
    attributes: dict[str, str | int] = {
        "pointsman.entity.id": step.entity_id,
        "pointsman.entity.kind": step.kind,
        "pointsman.seq": step.seq,
        "pointsman.event": step.event,
        "pointsman.state.from": step.source,
        "pointsman.state.to": step.target,
        "pointsman.project": step.project,
        "pointsman.actor": step.actor,
        "pointsman.run.id": step.run_id,
    }
    begin_us = step.at_us if step.before_us is None else step.before_us
    return Noted(
        "",
        f"{step.kind} {step.event}",
        Kind.INTERNAL,
        parent,
        own_id,
        begin_us * 1000,
        step.at_us * 1000,
        attributes,
        step.target in FAILED_STATES and step.source != step.target,
        (step.cause,) if step.cause and step.cause[36:52] != parent[36:52] else (),
        is_root=parent[36:52] == own_id,
    )


def _whole(step: Step) -> Noted:
    own_id = transition_span_id(step.entity_id, 0)
    attributes: dict[str, str | int] = {
        "pointsman.entity.id": step.entity_id,
        "pointsman.entity.kind": step.kind,
        "pointsman.state.to": step.target,
        "pointsman.project": step.project,
        "pointsman.run.id": step.run_id,
    }
    return Noted(
        "",
        step.kind,
        Kind.SERVER,
        step.outer or _own_trace(step.entity_id),
        own_id,
        step.created_at_us * 1000,
        step.at_us * 1000,
        attributes,
        step.target in FAILED_STATES,
        is_root=not step.outer or step.outer[36:52] == own_id,
    )


async def _pause(news: asyncio.Event) -> None:
    """Wait for something new, and a little longer for what comes with it."""
    try:
        async with asyncio.timeout(SAFETY_SECONDS):
            await news.wait()
            await asyncio.sleep(GATHER_SECONDS)
    except TimeoutError:
        return
