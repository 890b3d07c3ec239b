"""The background loops of every store: clock, idempotency records, gauges, notifications, spans."""

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
EXPIRE_SECONDS = 3600.0
IDEMPOTENCY_DAYS = 7
EXPIRE_ROWS = 1000

Work = Callable[[], Awaitable[None]]


def housekeeping(name: str, store: Store, exporter: "Exporter | None" = None) -> Sequence[tuple[str, Work]]:
    """The loops of one store, by name; the exporter, if any, exports its transitions."""

    async def synchronise_clock() -> None:
        while True:
            await store.write(store.requeue_stranded)
            await asyncio.sleep(CLOCK_SECONDS)
            await asyncio.to_thread(store.database.synchronise_clock)

    async def expire_answers() -> None:
        while True:
            while await delete_old_answers(store) == EXPIRE_ROWS:
                pass
            await asyncio.sleep(EXPIRE_SECONDS)

    async def measure() -> None:
        while True:
            await store.database.read(lambda connection: measure_store(connection, store))
            await asyncio.sleep(MEASURE_SECONDS)

    notifications = (("notifications", store.flush_notifications),) if store.notify_batcher is not None else ()
    return (
        *notifications,
        ("clock", synchronise_clock),
        ("forget_answers", expire_answers),
        ("measure", measure),
        *_span_loops(name, store, exporter),
    )


async def delete_old_answers(store: Store) -> int:
    """Delete some idempotency records that are too old for a retry; returns how many."""
    table = store.tables.idempotency
    oldest_us = to_us(store.database.clock.now()) - IDEMPOTENCY_DAYS * 86_400_000_000
    old = select(table.c.request_id, table.c.project).where(table.c.at_us < oldest_us).limit(EXPIRE_ROWS)
    keys = await store.database.read(lambda connection: connection.execute(old).all())

    def job(connection: Connection) -> int:
        for request_id, project in keys:
            same = (table.c.request_id == request_id) & (table.c.project == project) & (table.c.at_us < oldest_us)
            connection.execute(table.delete().where(same))
        return len(keys)

    return await store.write(job) if keys else 0


def measure_store(connection: Connection, store: Store) -> None:
    """Update the gauges of outbox and timers, and those of the context."""
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
    """The loop that exports transitions; only with an exporter."""
    if exporter is None:
        return ()
    from pointsman.services.chassis.spans.follower import SpanFollower  # noqa: PLC0415 - off is free

    return (("spans", SpanFollower(store, name, exporter, load(TelemetrySettings)).run),)
