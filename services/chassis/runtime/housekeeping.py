"""What every store needs done in the background: its clock, its old answers, its gauges, its spans."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from sqlalchemy import Connection, func, select

from pointsman.services.chassis.core.clock import to_us
from pointsman.services.chassis.core.config import TelemetrySettings, load
from pointsman.services.chassis.storage.store import Store
from pointsman.services.chassis.telemetry import metrics

if TYPE_CHECKING:
    from pointsman.services.chassis.spans.exporter import Exporter

CLOCK_SECONDS = 20.0
MEASURE_SECONDS = 10.0
FORGET_SECONDS = 3600.0
IDEMPOTENCY_DAYS = 7
FORGET_ROWS = 1000

Work = Callable[[], Awaitable[None]]


def housekeeping(name: str, store: Store, exporter: "Exporter | None" = None) -> Sequence[tuple[str, Work]]:
    """The loops of one store, by name; its transitions go to the exporter, if there is one."""

    async def keep_clock() -> None:
        while True:
            await store.write(store.requeue_stranded)
            await asyncio.sleep(CLOCK_SECONDS)
            await asyncio.to_thread(store.database.synchronise_clock)

    async def forget_answers() -> None:
        while True:
            while await forget_old_answers(store) == FORGET_ROWS:
                pass
            await asyncio.sleep(FORGET_SECONDS)

    async def measure() -> None:
        while True:
            await store.database.read(lambda connection: measure_store(connection, store))
            await asyncio.sleep(MEASURE_SECONDS)

    news = (("news", store.flush_notifications),) if store.notify_batcher is not None else ()
    return (
        *news,
        ("clock", keep_clock),
        ("forget_answers", forget_answers),
        ("measure", measure),
        *_span_loops(name, store, exporter),
    )


async def forget_old_answers(store: Store) -> int:
    """Delete some answers that are older than a retry may be; how many there were."""
    table = store.tables.idempotency
    oldest_us = to_us(store.database.clock.now()) - IDEMPOTENCY_DAYS * 86_400_000_000
    old = select(table.c.request_id, table.c.project).where(table.c.at_us < oldest_us).limit(FORGET_ROWS)
    keys = await store.database.read(lambda connection: connection.execute(old).all())

    def job(connection: Connection) -> int:
        for request_id, project in keys:
            same = (table.c.request_id == request_id) & (table.c.project == project) & (table.c.at_us < oldest_us)
            connection.execute(table.delete().where(same))
        return len(keys)

    return await store.write(job) if keys else 0


def measure_store(connection: Connection, store: Store) -> None:
    """How much waits in the outbox and among the timers, and how long already."""
    outbox, timers, name = store.tables.outbox, store.tables.timers, store.database.schema
    now_us = to_us(store.database.clock.now())
    pending, oldest_us = connection.execute(select(func.count(), func.min(outbox.c.created_at_us))).one()
    due_us = connection.execute(select(func.min(timers.c.due_at_us))).scalar()
    metrics.outbox_pending.labels(name).set(pending)
    metrics.outbox_lag.labels(name).set(max(0, now_us - (oldest_us or now_us)) / 1_000_000)
    metrics.timers_late.labels(name).set(max(0, now_us - (due_us or now_us)) / 1_000_000)
    for gauge in store.gauges:
        gauge(connection)


def _span_loops(name: str, store: Store, exporter: "Exporter | None") -> Sequence[tuple[str, Work]]:
    """Spans are exported only where the standard variables name a collector."""
    if exporter is None:
        return ()
    from pointsman.services.chassis.spans.follower import SpanFollower  # noqa: PLC0415 - off is free

    return (("spans", SpanFollower(store, name, exporter, load(TelemetrySettings)).run),)
