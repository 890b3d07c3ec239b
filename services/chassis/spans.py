"""Transitions as spans, derived from the journal: none is lost with a killed process, none is doubled by a re-send."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags
from sqlalchemy import Connection, and_, bindparam, func, select

from pointsman.services.chassis.lease import Lease, Leases
from pointsman.services.chassis.machine import Machine
from pointsman.services.chassis.sql import upsert
from pointsman.services.chassis.store import Store
from pointsman.services.chassis.telemetry import transition_span_id
from pointsman.services.chassis.watch import ANY

LEASE_NAME = "spans"
LEASE_SECONDS = 30.0
PAGE_ROWS = 500
RETRY_SECONDS = 2.0
SAFETY_SECONDS = 5.0
SCOPE = InstrumentationScope("pointsman")
FAILED_STATES = frozenset({"FAILED", "failed", "ABORTED"})

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Step:
    """One transition with what its span needs: its entity's trace, and when its entity moved before."""

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
    traceparent: str
    created_at_us: int
    before_us: int | None

    @property
    def root_id(self) -> str:
        """The entity whose span is the parent: the run, or the entity itself where there is no run."""
        return self.run_id or self.entity_id

    @property
    def is_root(self) -> bool:
        """Whether the entity has a span of its own."""
        return self.root_id == self.entity_id


class Steps:
    """Reads transitions with their traces, in commit order."""

    def __init__(self, store: Store) -> None:
        journal, entities = store.tables.journal, store.tables.entities
        earlier = journal.alias("earlier")
        columns = (
            journal.c.entity_id, journal.c.seq, journal.c.position, journal.c.kind, journal.c.project, journal.c.run_id,
            journal.c.event, journal.c.source, journal.c.target, journal.c.actor, journal.c.at_us,
            journal.c.traceparent.label("cause"), entities.c.traceparent, entities.c.created_at_us,
            earlier.c.at_us.label("before_us"),
        )  # fmt: skip
        joined = journal.join(entities, entities.c.entity_id == journal.c.entity_id).outerjoin(
            earlier, and_(earlier.c.entity_id == journal.c.entity_id, earlier.c.seq == journal.c.seq - 1)
        )
        base = select(*columns).select_from(joined)
        self._page = base.where(journal.c.position > bindparam("after")).order_by(journal.c.position).limit(PAGE_ROWS)
        self._of_run = base.where(func.coalesce(entities.c.run_id, "") == bindparam("run_id")).order_by(
            journal.c.position
        )

    def page(self, connection: Connection, after_position: int) -> list[Step]:
        """The next steps of the store after a position."""
        return [Step(*tuple(row)) for row in connection.execute(self._page, {"after": after_position})]

    def of_run(self, connection: Connection, run_id: str) -> list[Step]:
        """All steps of a run in this store."""
        return [Step(*tuple(row)) for row in connection.execute(self._of_run, {"run_id": run_id})]


class SpanFollower:
    """A leased loop that exports each transition at least once, always under the same ids."""

    def __init__(self, store: Store, service: str, machines: Sequence[Machine[Any]], exporter: SpanExporter) -> None:
        self._store = store
        self._resource = Resource.create({"service.name": f"pointsman-{service}", "service.namespace": "pointsman"})
        self._terminal = {machine.kind: machine.terminal for machine in machines}
        self._exporter = exporter
        self._leases = Leases(store)
        self._steps = Steps(store)
        cursors = store.tables.cursors
        self._read_cursor = select(cursors.c.position).where(cursors.c.name == LEASE_NAME)
        self._write_cursor = upsert(store.database, cursors, ("name",), ("position",))

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
            steps = await self._store.database.read(lambda connection: self._steps.page(connection, position))  # noqa: B023
            if not steps:
                await _pause(news)
            elif await self._export(steps):
                position = steps[-1].position
                await self._store.perform(lambda connection: self._move(connection, position))  # noqa: B023
            held = await self._leases.renew(held, LEASE_SECONDS)

    async def _export(self, steps: Sequence[Step]) -> bool:
        spans = [span for step in steps for span in spans_of(step, self._terminal, self._resource)]
        result = await asyncio.to_thread(self._exporter.export, spans)
        if result is SpanExportResult.SUCCESS:
            return True
        log.warning("span_export_failed", store=self._store.database.schema, spans=len(spans))
        await asyncio.sleep(RETRY_SECONDS)
        return False

    def _cursor(self, connection: Connection) -> int:
        return int(connection.execute(self._read_cursor).scalar() or 0)

    def _move(self, connection: Connection, position: int) -> None:
        connection.execute(self._write_cursor, {"name": LEASE_NAME, "position": position})


def spans_of(step: Step, terminal: Mapping[str, frozenset[str]], resource: Resource) -> list[ReadableSpan]:
    """A transition's span and, where it ends its entity, the span of the entity as a whole."""
    spans = [_transition_span(step, resource)]
    if step.is_root and step.target in terminal.get(step.kind, ()):
        spans.append(_root_span(step, resource))
    return spans


def otlp_exporter() -> SpanExporter:
    """Spans over OTLP/gRPC to where OTEL_EXPORTER_OTLP_ENDPOINT says."""
    return OTLPSpanExporter()


def _transition_span(step: Step, resource: Resource) -> ReadableSpan:
    own = _context(step.traceparent, transition_span_id(step.entity_id, step.seq))
    caused = [Link(_context(step.cause, step.cause[36:52]))] if step.cause else []
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
    return ReadableSpan(
        name=f"{step.kind} {step.event}",
        context=own,
        parent=_context(step.traceparent, transition_span_id(step.root_id, 0)),
        resource=resource,
        attributes=attributes,
        links=caused,
        kind=SpanKind.INTERNAL,
        instrumentation_scope=SCOPE,
        status=_status(step.target),
        start_time=(step.before_us if step.before_us is not None else step.at_us) * 1000,
        end_time=step.at_us * 1000,
    )


def _root_span(step: Step, resource: Resource) -> ReadableSpan:
    own, outer = transition_span_id(step.entity_id, 0), step.traceparent[36:52]
    return ReadableSpan(
        name=step.kind,
        context=_context(step.traceparent, own),
        parent=_context(step.traceparent, outer) if outer != own else None,
        resource=resource,
        attributes={"pointsman.entity.id": step.entity_id, "pointsman.state.to": step.target},
        kind=SpanKind.SERVER,
        instrumentation_scope=SCOPE,
        status=_status(step.target),
        start_time=step.created_at_us * 1000,
        end_time=step.at_us * 1000,
    )


def _context(traceparent: str, span_id: str) -> SpanContext:
    return SpanContext(
        int(traceparent[3:35], 16), int(span_id, 16), is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED)
    )


def _status(target: str) -> Status:
    return Status(StatusCode.ERROR if target in FAILED_STATES else StatusCode.UNSET)


async def _pause(news: asyncio.Event) -> None:
    try:
        async with asyncio.timeout(SAFETY_SECONDS):
            await news.wait()
    except TimeoutError:
        return
