"""Opens the counter's store in a test, sends it commands, holds its writer, and proves that its rows are sound."""

import asyncio
import itertools
import threading
from collections import Counter as Tally
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, select

from pointsman.services.chassis.core.caller import Caller
from pointsman.services.chassis.core.clock import Clock, from_us
from pointsman.services.chassis.core.codec import from_json
from pointsman.services.chassis.core.machine import Event
from pointsman.services.chassis.engine.journal import Transition, broken_links
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.migrate import migrate
from pointsman.services.chassis.storage.notifications import ANY
from pointsman.services.chassis.storage.store import Store
from tests.helpers.counter import MACHINE, Counter, CounterStore
from tests.helpers.limits import scaled

_numbers = itertools.count(1)


def a_caller(request_id: str = "", project: str = "local", fingerprint: str = "same") -> Caller:
    """Somebody with a request; each has its own id unless the test gives one."""
    return Caller("local", project, request_id=request_id or f"request-{next(_numbers)}", fingerprint=fingerprint)


@asynccontextmanager
async def opened(url: str, clock: Clock | None = None, *, listens: bool = False) -> AsyncIterator[CounterStore]:
    """A counter store as one replica has it, without its loops; if it listens, it already does at the first line."""
    database = Database(url, "counter", clock)
    await asyncio.to_thread(migrate, database, None)
    counters = CounterStore(database)
    if listens:
        with counters.store.hub.subscribed(ANY) as listening:
            counters.store.start()
            if counters.store.notify_batcher is not None:
                await listening.wait()
    else:
        counters.store.hub.bind()
        database.synchronise_clock()
    try:
        yield counters
    finally:
        await counters.effects.close()
        await asyncio.to_thread(counters.store.close)


@asynccontextmanager
async def running(*loops: Any) -> AsyncIterator[None]:
    """Loops such as `counters.effects.run`, for as long as the block lasts."""
    tasks = [asyncio.create_task(loop()) for loop in loops]
    await asyncio.sleep(0)
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def held(store: Store) -> AsyncIterator[None]:
    """The writer busy for the length of the block: whatever is submitted meanwhile becomes one batch."""
    begun, over = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def job(_connection: Connection) -> None:
        loop.call_soon_threadsafe(begun.set)
        over.wait(scaled(30))

    holding = asyncio.create_task(store.write(job))
    await begun.wait()
    try:
        yield
    finally:
        over.set()
        await holding


async def in_one_batch(store: Store, commands: Iterable[Any]) -> list[Any]:
    """What each of the commands came to, an answer or an exception, when all are committed together."""
    async with held(store):
        tasks = [asyncio.ensure_future(command) for command in commands]
        await asyncio.sleep(0)
    return await asyncio.gather(*tasks, return_exceptions=True)


async def journal_of(counters: CounterStore, counter_id: str, project: str = "local") -> list[Transition]:
    """A counter's whole journal."""
    return await counters.journal.page(project, ("counter", counter_id), 0, 100_000)


async def state_of(counters: CounterStore, counter_id: str, project: str = "local") -> Counter:
    """A counter as its row has it."""
    return await counters.store.database.read(lambda connection: counters.ledger.load(connection, project, counter_id))


async def rows_of(counters: CounterStore, table: str) -> list[dict[str, Any]]:
    """Every row of a chassis table."""
    statement = select(getattr(counters.store.tables, table))
    return await counters.store.database.read(
        lambda connection: [dict(row) for row in connection.execute(statement).mappings()]
    )


async def assert_sound(counters: CounterStore) -> None:
    """Invariants 1 and 2: numbering, chain, fold and positions hold for every entity; each request is there once."""
    entities = await rows_of(counters, "entities")
    for entity in entities:
        rows = await counters.store.database.read(
            lambda connection: counters.journal.rows(connection, entity["entity_id"], 0, 100_000)  # noqa: B023
        )
        assert_entity_sound(entity, rows)
    journal = await rows_of(counters, "journal")
    assert sorted(row["position"] for row in journal) == list(range(1, len(journal) + 1))
    assert {row["entity_id"] for row in journal} == {row["entity_id"] for row in entities}
    key = itemgetter("project", "principal", "request_id")
    requests = Tally(map(key, await rows_of(counters, "idempotency")))
    assert not [key for key, count in requests.items() if count > 1]


def assert_entity_sound(entity: dict[str, Any], rows: list[Transition]) -> None:
    """One entity's row and journal tell the same story."""
    assert [row.seq for row in rows] == list(range(1, len(rows) + 1))
    assert broken_links(rows) == []
    assert (entity["version"], entity["digest"]) == (len(rows), rows[-1].digest)
    positions = [row.position for row in rows]
    assert positions == sorted(set(positions))
    assert folded(rows) == from_json(entity["body"], Counter)


def folded(rows: Iterable[Transition]) -> Counter | None:
    """The state that the journal alone gives."""
    state: Counter | None = None
    for row in rows:
        data = from_json(row.payload, MACHINE.events[row.event])
        state = MACHINE.apply(state, Event(row.event, row.source, row.target, data), from_us(row.at_us))
    return state
