"""Merge queues on both databases: order, leases, lists, retention, and what the audit finds."""

import asyncio
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection, text

from pointsman.audit.entries import EntryProof
from pointsman.services.chassis.core.clock import to_us
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.engine.audit import Auditor
from pointsman.services.orchestrator.domain import commands as run_commands
from pointsman.services.orchestrator.domain.landing import commands
from pointsman.services.orchestrator.domain.landing.enums import EntryEvent, EntryState
from pointsman.services.orchestrator.domain.landing.model import Candidate, Finding, Terms, Work
from pointsman.services.orchestrator.domain.model import Budget
from pointsman.services.orchestrator.domain.views import EntryFilter, Held, Integrator
from pointsman.services.orchestrator.store import OrchestratorStore
from tests.contract.orchestrator.orchestrators import caller, orchestrator, order

ONE = Integrator("local", "integrator/one", "one", ("repository",))
TWO = Integrator("local", "integrator/two", "two", ("repository",))
CANDIDATE = Candidate("e" * 40, "f" * 40, "a" * 40, "b" * 40)
END = (2**62, "")


async def enqueue(store: OrchestratorStore, number: int, **terms: Any) -> str:
    wanted = replace(Terms("repository", "main", title=f"task {number}"), **terms)
    work = Work(f"run_{number}", "b" * 40, f"{number:040x}", f"{number:064x}", 1)
    command = commands.Enqueue(f"entry_{number}", wanted.queue_id("local"), wanted, work)
    await store.entries.ledger.submit(caller(), command)
    return command.entity_id


async def taken(store: OrchestratorStore, who: Integrator = ONE, limit: int = 32) -> Held | None:
    return await store.entries.take(who, caller(), limit, 0)


async def report(store: OrchestratorStore, held: Held, number: int, said: Any, principal: str = ONE.principal) -> None:
    command = commands.ReportEntry(f"entry_{number}", held.epoch, principal, said)
    await store.entries.ledger.submit(caller(), command)


async def status(store: OrchestratorStore, number: int) -> EntryState:
    return (await store.entries.view("local", f"entry_{number}")).entry.status


def violations(store: OrchestratorStore) -> list[str]:
    auditor = Auditor(store.store, {"entry": EntryProof()})
    return store.store.database.read_now(lambda connection: [str(one) for one in auditor.violations(connection)])


async def test_a_queue_is_taken_by_priority_and_arrival_and_by_one_integrator_at_a_time(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        for number, priority in ((1, 5), (2, 5), (3, 0)):
            await enqueue(store, number, priority=priority)
        await enqueue(store, 4, target="release")
        held = await taken(store)
        assert held is not None
        assert [view.entry.entry_id for view in held.entries] == ["entry_3", "entry_1", "entry_2"]
        other = await taken(store, TWO)
        assert other is not None
        assert [view.entry.entry_id for view in other.entries] == ["entry_4"]
        assert await taken(store, TWO) is None
        with pytest.raises(Refusal) as lost:
            await store.entries.keep(TWO, held.queue_id, held.epoch, release=False)
        assert lost.value.reason is Reason.LEASE_LOST
        assert violations(store) == []


async def test_a_queue_whose_integrator_died_is_taken_again_with_what_it_left(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        await enqueue(store, 1)
        await enqueue(store, 2)
        held = await taken(store)
        assert held is not None
        await report(store, held, 1, CANDIDATE)
        await store.store.write(lambda connection: connection.execute(text("UPDATE leases SET until_us = 0")))
        again = await taken(store, TWO)
        assert again is not None
        assert [view.entry.status for view in again.entries] == [EntryState.LANDING, EntryState.PROVING]
        assert again.entries[0].entry.candidate == CANDIDATE
        for said in (commands.Landed(CANDIDATE.tip), commands.BaseMoved("9" * 40)):
            with pytest.raises(Refusal) as lost:
                await report(store, held, 1, said)
            assert lost.value.reason is Reason.LEASE_LOST
        await report(store, again, 1, commands.Landed(CANDIDATE.tip), TWO.principal)
        assert await status(store, 1) is EntryState.LANDED
        assert violations(store) == []


async def test_an_integrator_that_waits_is_woken_by_the_next_entry(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        waiting = asyncio.create_task(store.entries.take(ONE, caller(), 1, 50))
        await enqueue(store, 1)
        held = await waiting
        assert held is not None
        await store.entries.keep(ONE, held.queue_id, held.epoch, release=True)
        again = await taken(store)
        assert again is not None
        assert again.epoch > held.epoch


async def test_entries_are_listed_newest_first_by_state_and_run_and_only_of_their_project(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        for number in range(1, 6):
            await enqueue(store, number)
        await store.entries.ledger.submit(caller(), commands.CancelEntry("entry_2", "enough"))

        async def ids(wanted: EntryFilter, limit: int = 10) -> list[str]:
            return [view.entry.entry_id for view in await store.entries.page(wanted, END, limit)]

        assert await ids(EntryFilter("local")) == [f"entry_{number}" for number in (5, 4, 3, 2, 1)]
        assert await ids(EntryFilter("local", ("CANCELLED",))) == ["entry_2"]
        assert await ids(EntryFilter("local", run_id="run_4")) == ["entry_4"]
        assert await ids(EntryFilter("elsewhere")) == []
        first = (await store.entries.page(EntryFilter("local"), END, 2))[-1]
        rest = await store.entries.page(EntryFilter("local"), (first.created_at_us, first.entry.entry_id), 10)
        assert [view.entry.entry_id for view in rest] == ["entry_3", "entry_2", "entry_1"]
        with pytest.raises(Refusal) as missing:
            await store.entries.view("elsewhere", "entry_1")
        assert missing.value.reason is Reason.NOT_FOUND


async def test_a_run_is_not_forgotten_while_its_work_is_on_its_way_and_takes_its_entries_along(
    database_url: str,
) -> None:
    async with orchestrator(database_url) as store:
        await store.ledger.submit(caller(), run_commands.Submit("run_1", "do it", order(), Budget()))
        await store.ledger.submit(caller(), run_commands.Cancel("run_1", "enough"))
        await enqueue(store, 1)
        later = to_us(store.now) + 1_000_000
        database = store.store.database
        assert not database.read_now(lambda connection: store.ended_before(connection, later, 10))
        assert not await store.store.write(lambda connection: store.forget(connection, "run_1", later))
        await store.entries.ledger.submit(caller(), commands.CancelEntry("entry_1"))
        assert await store.store.write(lambda connection: store.forget(connection, "run_1", later))
        for table in ("journal", "entities", "entry_index", "artifact_uses", "idempotency"):
            left = text(f"SELECT count(*) FROM {table} WHERE entity_id = 'entry_1'")
            assert database.read_now(partial(_count, left)) == 0, table


def _count(statement: Any, connection: Connection) -> int:
    return int(connection.execute(statement).scalar_one())


FORGED = {
    "an unproven tip": ("UPDATE journal SET payload = '{\"commit\":\"0\"}' WHERE event = 'landed'", "without a proof"),
    "a lost entry": ("DELETE FROM outbox", "nobody works on what was found"),
}


@pytest.mark.parametrize("what", FORGED)
async def test_the_audit_finds(what: str, database_url: str) -> None:
    async with orchestrator(database_url) as store:
        for number in (1, 2):
            await enqueue(store, number)
        held = await taken(store)
        assert held is not None
        await report(store, held, 1, CANDIDATE)
        await report(store, held, 1, commands.Landed(CANDIDATE.tip))
        await report(store, held, 2, Finding(EntryEvent.CONFLICTED, "both changed it", ("a.py",)))
        assert violations(store) == []
        statement, expected = FORGED[what]
        await store.store.write(lambda connection: connection.execute(text(statement)))
        assert any(expected in found for found in violations(store))
