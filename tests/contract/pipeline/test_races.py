"""Barriers finished by racing replicas around their timeout: each is resolved once.

POINTSMAN_RACE_BARRIERS says how many; the campaign takes 10,000.
"""

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from sqlalchemy import Connection, select

from pointsman.audit.pipelines import PipelineProof
from pointsman.services.chassis.core.caller import Caller
from pointsman.services.chassis.core.codec import from_json
from pointsman.services.chassis.engine.audit import Auditor
from pointsman.services.chassis.engine.timers import TimerRunner
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.migrate import migrate
from pointsman.services.pipeline.__main__ import MIGRATIONS
from pointsman.services.pipeline.domain import commands
from pointsman.services.pipeline.domain.dag import Node, build_graph
from pointsman.services.pipeline.domain.enums import (
    Disposition,
    EventName,
    PipelineStatus,
    RouteSource,
    StageKind,
    Verdict,
)
from pointsman.services.pipeline.domain.model import Head, Settings
from pointsman.services.pipeline.domain.route import ReportedRoute
from pointsman.services.pipeline.domain.templates import template_graph
from pointsman.services.pipeline.loops import PipelineTimers
from pointsman.services.pipeline.store import PipelineStore
from tests.helpers.clock import FakeClock

BARRIERS = int(os.environ.get("POINTSMAN_RACE_BARRIERS", "200"))
AT_ONCE = 64
MEMBERS = ("REVIEW", "TEST", "QA")
TIMEOUT_SECONDS = 60.0
PASS = (ReportedRoute(RouteSource.TYPED, "PASS", "NEXT"),)
FAIL = (ReportedRoute(RouteSource.TYPED, "FAIL", "DEV", "LOW"),)
GRAPH = build_graph(
    [
        *(Node(name, StageKind[name], barrier="all", next=("DOCS",)) for name in MEMBERS),
        Node("DOCS", StageKind.DOCS),
    ]
)
BACK = build_graph(
    [
        Node("DEV", StageKind.DEV),
        *(Node(name, StageKind[name], deps=("DEV",), on_fail="DEV", barrier="all") for name in MEMBERS),
        Node("DOCS", StageKind.DOCS, deps=MEMBERS),
    ]
)
_numbers = itertools.count(1)


def caller() -> Caller:
    return Caller("local", "local", request_id=f"r{next(_numbers)}", fingerprint="same")


@asynccontextmanager
async def replicas(url: str, clock: FakeClock) -> AsyncIterator[list[PipelineStore]]:
    """Two replicas on PostgreSQL, one on a file, each with its timers."""
    stores = []
    for _ in range(2 if url.startswith("postgresql") else 1):
        database = Database(url, "pipeline", clock)
        await asyncio.to_thread(migrate, database, MIGRATIONS)
        store = PipelineStore(database)
        store.store.start()
        stores.append(store)
    try:
        yield stores
    finally:
        for store in stores:
            await asyncio.to_thread(store.store.close)


async def race(
    stores: Sequence[PipelineStore],
    clock: FakeClock,
    pipeline_ids: Sequence[str],
    failing: frozenset[str] = frozenset(),
) -> None:
    """Finish every member of every barrier, each through a random replica, while time runs out for some of them.

    In the failing ones the first member says FAIL, if it is heard in time.
    """

    async def finish(number: int, pipeline_id: str, member: str) -> None:
        said = FAIL if pipeline_id in failing and member == MEMBERS[0] else PASS
        command = commands.CompleteStage(
            pipeline_id, f"{member}#1", "agent", "seed", said, auto=commands.AutoDelegate("agent")
        )
        await stores[number % len(stores)].submit(caller(), command)

    async def run_out() -> None:
        clock.advance(seconds=TIMEOUT_SECONDS)
        runners = [TimerRunner(store.store, PipelineTimers(store).fire) for store in stores]
        await asyncio.gather(*(runner.fire_due() for runner in runners))

    pairs = list(enumerate(itertools.product(pipeline_ids, MEMBERS)))
    shuffled = sorted(pairs, key=lambda pair: pair[0] * 7919 % len(pairs))
    half = len(pairs) // 2
    await asyncio.gather(*(finish(number, *pair) for number, pair in shuffled[:half]))

    async def trickle() -> None:
        for begin in range(half, len(pairs), len(stores) * 4):
            chunk = shuffled[begin : begin + len(stores) * 4]
            await asyncio.gather(*(finish(number, *pair) for number, pair in chunk))

    await asyncio.gather(trickle(), run_out())


def tally(connection: Connection, store: PipelineStore) -> tuple[dict[str, int], dict[str, int]]:
    """How often each pipeline's barrier was resolved, and how often it timed out."""
    journal = store.store.tables.journal
    rows = connection.execute(select(journal.c.entity_id, journal.c.event))
    resolved: dict[str, int] = {}
    timed_out: dict[str, int] = {}
    for entity_id, event in rows:
        counts = {EventName.BARRIER_RESOLVED: resolved, EventName.BARRIER_TIMED_OUT: timed_out}.get(event)
        if counts is not None:
            counts[entity_id] = counts.get(entity_id, 0) + 1
    return resolved, timed_out


async def test_a_replica_does_not_go_by_what_it_remembers_when_another_has_moved_the_pipeline(
    database_url: str,
) -> None:
    clock = FakeClock()
    async with replicas(database_url, clock) as first, replicas(database_url, clock) as second:
        one, other = first[0], second[0]
        start = commands.StartPipeline(
            "p", Settings(), template_graph("quick-dev"), "seed", {}, commands.AutoDelegate("agent")
        )

        async def complete(
            store: PipelineStore, stage: str, said: tuple[ReportedRoute, ...]
        ) -> commands.CompletionAnswer:
            number = (await store.get("local", "p")).pipeline.stages[stage].delegations
            command = commands.CompleteStage(
                "p", f"{stage}#{number}", "agent", "seed", said, auto=commands.AutoDelegate("agent")
            )
            answer: commands.CompletionAnswer = await store.submit(caller(), command)
            return answer

        await one.submit(caller(), start)
        await complete(one, "DEV", PASS)
        await complete(other, "REVIEW", FAIL)
        assert (await complete(one, "TEST", PASS)).disposition is Disposition.RETURNED
        await complete(other, "DEV", PASS)
        await complete(one, "REVIEW", PASS)
        assert (await complete(other, "TEST", PASS)).status is PipelineStatus.COMPLETED
        auditor = Auditor(one.store, {"pipeline": PipelineProof(one.store)})
        assert await one.store.database.read(lambda connection: list(auditor.violations(connection))) == []


async def test_every_barrier_is_resolved_once_around_its_timeout(database_url: str) -> None:
    clock = FakeClock()
    async with replicas(database_url, clock) as stores:
        ids = [f"p{number}" for number in range(BARRIERS)]
        for batch in (ids[begin : begin + AT_ONCE] for begin in range(0, len(ids), AT_ONCE)):
            settings = Settings(barrier_timeout_seconds=TIMEOUT_SECONDS)
            starts = [
                commands.StartPipeline(name, settings, GRAPH, "seed", {}, commands.AutoDelegate("agent"))
                for name in batch
            ]
            await asyncio.gather(*(stores[0].submit(caller(), command) for command in starts))
            await race(stores, clock, batch)
        resolved, timed_out = await stores[0].store.database.read(lambda connection: tally(connection, stores[0]))
        assert resolved == dict.fromkeys(ids, 1)
        assert set(timed_out.values()) <= {1}
        assert 0 < len(timed_out) < BARRIERS
        entities = stores[0].store.tables.entities
        bodies = await stores[0].store.database.read(
            lambda connection: connection.execute(select(entities.c.body)).scalars().all()
        )
        heads = [from_json(body, Head) for body in bodies]
        assert [head.barriers for head in heads] == [{}] * BARRIERS
        assert {head.marks[-1] for head in heads} <= {"a", "r"}


async def test_every_barrier_with_a_fail_goes_back_once_or_on_once_around_its_timeout(database_url: str) -> None:
    clock = FakeClock()
    ids = [f"p{number}" for number in range(BARRIERS)]
    failing = frozenset(ids[::2])
    settings = Settings(barrier_timeout_seconds=TIMEOUT_SECONDS)
    async with replicas(database_url, clock) as stores:
        for batch in (ids[begin : begin + AT_ONCE] for begin in range(0, len(ids), AT_ONCE)):
            starts = [
                commands.StartPipeline(name, settings, BACK, "seed", {}, commands.AutoDelegate("agent"))
                for name in batch
            ]
            await asyncio.gather(*(stores[0].submit(caller(), command) for command in starts))
            done = [
                commands.CompleteStage(name, "DEV#1", "agent", "seed", PASS, auto=commands.AutoDelegate("agent"))
                for name in batch
            ]
            await asyncio.gather(*(stores[0].submit(caller(), command) for command in done))
            await race(stores, clock, batch, failing)
        resolved, timed_out = await stores[0].store.database.read(lambda connection: tally(connection, stores[0]))
        assert resolved == dict.fromkeys(ids, 1)
        assert 0 < len(timed_out) < BARRIERS
        for name in ids:
            pipeline = (await stores[0].get("local", name)).pipeline
            heard = pipeline.stages[MEMBERS[0]].verdict is Verdict.FAIL
            assert heard <= (name in failing)
            went_back = pipeline.stages["DEV"].delegations + pipeline.marked("r").count("DEV")
            assert went_back == (2 if heard else 1)
            assert pipeline.head.barriers == {}
            assert pipeline.stages[MEMBERS[0]].retries == int(heard)
        auditor = Auditor(stores[0].store, {"pipeline": PipelineProof(stores[0].store)})
        assert await stores[0].store.database.read(lambda connection: list(auditor.violations(connection))) == []
