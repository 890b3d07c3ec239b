"""Linked runs on both databases: started once for a setback, told back to the entry however they end."""

from typing import Any

from sqlalchemy import select

from pointsman.services.chassis.engine.deliveries import PendingEffect, pending_effect
from pointsman.services.orchestrator.config import OrchestratorSettings
from pointsman.services.orchestrator.domain import commands as run_commands
from pointsman.services.orchestrator.domain.enums import Call, Capability, State
from pointsman.services.orchestrator.domain.landing.enums import EntryEvent, EntryState
from pointsman.services.orchestrator.domain.landing.machine import START_LINK
from pointsman.services.orchestrator.domain.landing.model import Entry, Finding
from pointsman.services.orchestrator.domain.landing.stacking import TELL_ABOVE
from pointsman.services.orchestrator.domain.model import Budget
from pointsman.services.orchestrator.loops import Engine
from pointsman.services.orchestrator.store import OrchestratorStore
from tests.contract.orchestrator.orchestrators import caller, orchestrator, order
from tests.contract.orchestrator.test_landing import ONE, enqueue, report, taken, violations

FOUND = Finding(EntryEvent.CONFLICTED, "both changed it", ("a.py",), base="c" * 40)
OURS = (START_LINK, TELL_ABOVE, Call.TELL_ENTRY)


async def waiting(store: OrchestratorStore, *, resolver: bool = False) -> None:
    """An entry of a run in a session that waits because of a conflict."""
    terms = order(
        session_id="s1", repository_id="repository", base_commit="b" * 40, crew=tuple(Capability), reserved=True
    )
    await store.ledger.submit(
        caller(), run_commands.Submit("run_1", "fix it", terms, Budget(assignments=7, tokens=100))
    )
    await enqueue(store, 1, max_tokens=100, resolver=resolver)
    await conflict(store)


async def conflict(store: OrchestratorStore) -> None:
    held = await taken(store)
    assert held is not None
    await report(store, held, 1, FOUND)
    await store.entries.keep(ONE, held.queue_id, held.epoch, release=True)


def pending(store: OrchestratorStore) -> list[PendingEffect]:
    table = store.store.tables.outbox
    rows = store.store.database.read_now(lambda connection: connection.execute(select(table)).mappings().all())
    return [effect for effect in map(pending_effect, rows) if effect.kind in OURS]


async def deliver(store: OrchestratorStore, *, twice: bool = False) -> None:
    """Delivers what waits; twice as after a crash between the delivery and its acknowledgement."""
    engine: Any = Engine(store, None, OrchestratorSettings())  # type: ignore[arg-type]
    for effect in pending(store):
        await engine.deliver(effect)
        if twice:
            await engine.deliver(effect)


async def entry(store: OrchestratorStore) -> Entry:
    return (await store.entries.view("local", "entry_1")).entry


async def test_a_conflict_starts_one_run_on_the_new_base_that_belongs_to_no_session(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        await waiting(store)
        await deliver(store, twice=True)
        (link,) = (await entry(store)).links
        linked = (await store.view("local", link.run_id)).run
        wanted = ("c" * 40, "entry_1", "", Budget(assignments=7, tokens=100), True)
        told = (linked.order.base_commit, linked.order.parent_entry, linked.order.session_id, linked.budget)
        assert (*told, "both changed it" in linked.intent) == wanted
        judges = (Capability.CODE, Capability.REVIEW, Capability.VERIFY)
        assert (set(linked.order.crew), linked.order.reserved) == (set(judges), False), "judged as the work was"
        assert (await store.view("local", "run_1")).run.status is not State.FAILED
        assert violations(store) == []


async def test_linked_runs_that_fail_are_followed_by_one_more_and_then_by_a_person(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        await waiting(store)
        for number in (1, 2):
            await deliver(store)
            links = (await entry(store)).links
            assert len(links) == number
            await store.ledger.submit(caller(), run_commands.Cancel(links[-1].run_id, "no"))
            await deliver(store, twice=True)
        asked = await entry(store)
        assert (asked.status, [link.outcome for link in asked.links]) == (EntryState.ASKED, ["CANCELLED"] * 2)
        assert violations(store) == []


async def test_the_third_linked_run_is_offered_to_a_resolver_and_judged_as_the_work_was(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        await waiting(store, resolver=True)
        for _ in (1, 2):
            await deliver(store)
            await store.ledger.submit(caller(), run_commands.Cancel((await entry(store)).links[-1].run_id, "no"))
            await deliver(store, twice=True)
        await deliver(store, twice=True)
        links = (await entry(store)).links
        linked = (await store.view("local", links[-1].run_id)).run
        assert [link.resolver for link in links] == [False, False, True]
        wanted = {Capability.RESOLVE, Capability.REVIEW, Capability.VERIFY}
        assert (linked.order.resolver, set(linked.order.crew), linked.order.best_of) == (True, wanted, 0)
        assert violations(store) == []


async def test_a_run_that_cannot_be_started_asks_a_person(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        await enqueue(store, 1)
        await conflict(store)
        engine: Any = Engine(store, None, OrchestratorSettings())  # type: ignore[arg-type]
        (effect,) = pending(store)
        try:
            await engine.deliver(effect)
        except Exception as refusal:  # noqa: BLE001 - as the runner of effects does
            await engine.give_up(effect, refusal)
        asked = await entry(store)
        assert asked.status is EntryState.ASKED
        assert asked.finding is not None
        assert "no run 'run_1'" in asked.finding.text
        assert violations(store) == []
