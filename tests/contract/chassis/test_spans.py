"""Every transition is a span, whatever happens between the commit and the collector."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from random import Random  # noqa: TID251 - seeded
from typing import Any

import pytest
from sqlalchemy import Connection

from pointsman._shared.otlp.queue import Queue
from pointsman.services.chassis.core.caller import Caller
from pointsman.services.chassis.core.config import TelemetrySettings
from pointsman.services.chassis.spans import follower, transitions
from pointsman.services.chassis.spans.exporter import Exporter
from pointsman.services.chassis.spans.follower import SpanFollower, TransitionReader
from pointsman.services.chassis.spans.transitions import JournaledTransition, LastTransitions
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.migrate import migrate
from pointsman.services.chassis.telemetry.context import transition_span_id
from tests.helpers.collector import Collector, collector
from tests.helpers.counter import Add, CounterStore
from tests.helpers.eventually import eventually

OUTER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@asynccontextmanager
async def following(counters: CounterStore, kept: Collector) -> AsyncIterator[Exporter]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://{kept.endpoint}")
        exporter = Exporter(Queue())
        exporter.start()
        task = asyncio.create_task(SpanFollower(counters.store, "counter", exporter, TelemetrySettings()).run())
        try:
            yield exporter
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await exporter.close()


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
    monkeypatch.setattr(follower, "RETRY_SECONDS", 0.01)
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


def journal_row(random: Random, position: int, before: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The next transition of one of a few entities, which now and then passes to another run."""
    entity_id = f"c{random.randrange(6)}"
    own = [row for row in before if row["entity_id"] == entity_id]
    moves = not own or random.random() < 0.2
    return {
        "entity_id": entity_id, "seq": len(own) + 1, "position": position, "kind": "counter", "project": "local",
        "run_id": random.choice(["", "run_1", "run_2"]) if moves else own[-1]["run_id"], "machine_version": 1,
        "at_us": position * 10, "event": "added", "source": "counting", "target": "counting", "payload": "{}",
        "actor": "local", "traceparent": random.choice(["", OUTER, f"{OUTER[:36]}{position:016x}-01"]), "digest": "",
    }  # fmt: skip


def told(row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> JournaledTransition:
    """The step of a row, from all rows."""
    own = [one for one in rows if one["entity_id"] == row["entity_id"] and one["seq"] <= row["seq"]]
    before = own[-2] if len(own) > 1 else {}
    owner = next(one["traceparent"] for one in own if one["run_id"] == row["run_id"])
    stored = [row["traceparent" if name == "cause" else name] for name in JournaledTransition._fields[:-5]]
    return JournaledTransition._make(
        (*stored, before.get("at_us"), before.get("run_id"), own[0]["at_us"], own[0]["traceparent"], owner)
    )


@pytest.mark.parametrize("kept_entities", [0, 3, 100])
async def test_a_step_is_told_alike_from_memory_and_from_the_journal(
    database_url: str, monkeypatch: pytest.MonkeyPatch, kept_entities: int
) -> None:
    monkeypatch.setattr(follower, "PAGE_ROWS", 7)
    monkeypatch.setattr(transitions, "MAX_ENTITIES", kept_entities)
    counters, random = open_counters(database_url), Random(8)
    rows: list[dict[str, Any]] = []
    for position in range(1, 201):
        rows.append(journal_row(random, position, rows))
    insert = counters.store.tables.journal.insert()
    await counters.store.write(lambda connection: connection.execute(insert, rows).rowcount)
    reader, memory, position, seen = TransitionReader(counters.store), LastTransitions(), 0, 0

    def next_page(connection: Connection) -> list[JournaledTransition]:
        page = reader.page(connection, position)
        predecessors = reader.predecessors(connection, memory.unknown(page))
        return memory.complete(page, {row[0]: row[1:] for row in predecessors})

    while page := counters.store.database.read_now(next_page):
        assert page == [told(row, rows) for row in rows[position : position + len(page)]]
        seen += len(page)
        position = page[random.randrange(len(page))].position  # a refused page is read again, here from its middle on
    assert seen > len(rows) == position
    counters.store.close()


def open_counters(url: str) -> CounterStore:
    database = Database(url, "counter")
    migrate(database, None)
    counters = CounterStore(database)
    counters.store.start()
    return counters


async def arrived(kept: Collector, wanted: set[str]) -> bool:
    return wanted <= set(kept.by_id())


async def _count(kept: Collector, follower: int) -> bool:
    return len(kept.by_id()) == follower
