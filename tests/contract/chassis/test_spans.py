"""Every transition is a span, whatever happens between the commit and the collector."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pointsman.otlp.sending import OverGrpc
from pointsman.services.chassis import spans
from pointsman.services.chassis.auth import Caller
from pointsman.services.chassis.config import TelemetrySettings
from pointsman.services.chassis.db import Database
from pointsman.services.chassis.migrate import migrate
from pointsman.services.chassis.spans import SpanFollower
from pointsman.services.chassis.telemetry import transition_span_id
from tests.helpers.collector import Collector, collector
from tests.helpers.counter import Add, CounterStore
from tests.helpers.eventually import eventually

OUTER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@asynccontextmanager
async def following(counters: CounterStore, kept: Collector) -> AsyncIterator[None]:
    exporter = OverGrpc(kept.endpoint, insecure=True, timeout=2)
    task = asyncio.create_task(SpanFollower(counters.store, "counter", exporter, TelemetrySettings()).run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await asyncio.to_thread(exporter.shutdown)


async def add(counters: CounterStore, number: int, traceparent: str = "") -> None:
    caller = Caller("local", "local", traceparent=traceparent, request_id=f"r{number}", fingerprint="f")
    await counters.ledger.submit(caller, Add("c1", 1))


async def test_every_transition_arrives_once_under_its_derived_id(database_url: str) -> None:
    counters = open_counters(database_url)
    async with collector() as kept, following(counters, kept):
        for number in range(20):
            await add(counters, number, OUTER)
        wanted = {transition_span_id(OUTER[3:35], "c1", seq) for seq in range(1, 21)}
        await eventually(lambda: arrived(kept, wanted))
    assert len(kept.spans) == 20
    assert {span.trace_id.hex() for span in kept.spans} == {OUTER[3:35]}
    assert {span.parent_span_id.hex() for span in kept.spans} == {OUTER[36:52]}
    counters.store.close()


async def test_a_collector_that_refuses_gets_the_same_spans_again(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spans, "RETRY_SECONDS", 0.01)
    counters = open_counters(database_url)
    async with collector() as kept, following(counters, kept):
        kept.refuse = 2
        await add(counters, 1)
        await eventually(lambda: _count(kept, 1))
    counters.store.close()


async def test_a_follower_that_starts_again_goes_on_behind_its_cursor(database_url: str) -> None:
    counters = open_counters(database_url)
    async with collector() as kept:
        async with following(counters, kept):
            await add(counters, 1)
            await eventually(lambda: _count(kept, 1))
        await add(counters, 2)
        async with following(counters, kept):
            await eventually(lambda: _count(kept, 2))
        assert len(kept.by_id()) == 2
    counters.store.close()


def open_counters(url: str) -> CounterStore:
    database = Database(url, "counter")
    migrate(database, None)
    counters = CounterStore(database)
    counters.store.start()
    return counters


async def arrived(kept: Collector, wanted: set[str]) -> bool:
    return wanted <= set(kept.by_id())


async def _count(kept: Collector, spans: int) -> bool:
    return len(kept.by_id()) == spans
