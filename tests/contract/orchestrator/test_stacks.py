"""Stacks on both databases: a layer comes into being by the one below, once, however often it is told."""

from pointsman.services.orchestrator.domain.landing import commands
from pointsman.services.orchestrator.domain.landing.enums import EntryState, Way
from pointsman.services.orchestrator.domain.landing.model import Below, Entry, Layer, Proposal, layer_id_above
from pointsman.services.orchestrator.domain.views import Held
from pointsman.services.orchestrator.store import OrchestratorStore
from tests.contract.orchestrator.orchestrators import caller, orchestrator
from tests.contract.orchestrator.test_landing import CANDIDATE, ONE, enqueue, taken, violations
from tests.contract.orchestrator.test_linked_runs import deliver

FIRST = "entry_1"
SECOND = layer_id_above(FIRST)


async def say(store: OrchestratorStore, held: Held, entry_id: str, said: commands.Report) -> None:
    await store.entries.ledger.submit(caller(), commands.ReportEntry(entry_id, held.epoch, ONE.principal, said))


async def propose(store: OrchestratorStore, entry_id: str, number: int) -> None:
    """One round of the integrator over a layer."""
    held = await taken(store)
    assert held is not None
    assert [view.entry.entry_id for view in held.entries] == [entry_id]
    entry = held.entries[0].entry
    if entry.stack is None:
        layers = (Layer("T1", "one", "1" * 40), Layer("T2", "two", entry.work.commit))
        await say(store, held, entry_id, commands.Split(layers))
    await say(store, held, entry_id, CANDIDATE)
    branch = f"pointsman/run_1-{number}"
    await say(store, held, entry_id, Proposal(number, "https://forge", branch, f"{number}" * 40))
    await store.entries.keep(ONE, held.queue_id, held.epoch, release=True)


async def entry_of(store: OrchestratorStore, entry_id: str) -> Entry:
    return (await store.entries.view("local", entry_id)).entry


async def test_a_layer_is_made_by_the_one_below_and_follows_it_onto_the_target(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        await enqueue(store, 1, way=Way.PULL_REQUEST, stack=True, remote="origin")
        await propose(store, FIRST, 1)
        await deliver(store, twice=True)
        second = await entry_of(store, SECOND)
        assert (second.status, second.terms.title, second.run_id) == (EntryState.QUEUED, "two", "run_1")
        assert second.stack is not None
        assert (second.stack.on, second.stack.below_id) == (Below("1" * 40, "pointsman/run_1-1"), FIRST)
        await propose(store, SECOND, 2)
        await deliver(store)
        first = await entry_of(store, FIRST)
        merged = commands.ReportEntry(FIRST, first.epoch, ONE.principal, commands.Merged("9" * 40))
        await store.entries.ledger.submit(caller(), merged)
        await deliver(store, twice=True)
        second = await entry_of(store, SECOND)
        assert (second.status, second.stack and second.stack.on) == (EntryState.QUEUED, Below())
        assert violations(store) == []


async def test_a_layer_that_is_taken_out_before_the_next_one_is_there_leaves_it_with_a_person(
    database_url: str,
) -> None:
    async with orchestrator(database_url) as store:
        await enqueue(store, 1, way=Way.PULL_REQUEST, stack=True, remote="origin")
        await propose(store, FIRST, 1)
        await store.entries.ledger.submit(caller(), commands.CancelEntry(FIRST, "enough"))
        await deliver(store, twice=True)
        second = await entry_of(store, SECOND)
        assert (second.status, second.stack and second.stack.on) == (EntryState.ASKED, Below())
        assert violations(store) == []
