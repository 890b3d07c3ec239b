"""Reports of several agents in the same commit, on both databases: each is decided as its own command."""

from dataclasses import replace

from pointsman.services.chassis.core.caller import Caller
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.telemetry.context import new_traceparent
from pointsman.services.orchestrator.domain import commands
from tests.contract.orchestrator.orchestrators import caller, orchestrator, report, researching, take
from tests.helpers.counters import in_one_batch

ROUND = ["result_arrived", "artifacts_loaded"]


def somebody(name: str) -> Caller:
    """A principal with a trace of its own."""
    return replace(caller(f"request-{name}"), principal=name, traceparent=new_traceparent(name))


async def test_each_report_keeps_its_actor_its_trace_and_its_answer(database_url: str) -> None:
    names = ["ann", "ben", "cid"]
    async with orchestrator(database_url) as store:
        await researching(store, "run_a", 4, research_expected=4)
        held = {name: (await take(store, name, principal=name))[0] for name in names}
        before = len(await store.journal.page("local", ("run", "run_a"), 0, 1000))
        reports = {name: report(lease, principal=name) for name, lease in held.items()}
        answers = await in_one_batch(
            store.store, [store.ledger.submit(somebody(name), reports[name]) for name in names]
        )
        assert [answer.accepted for answer in answers] == [True] * 3
        rows = (await store.journal.page("local", ("run", "run_a"), 0, 1000))[before:]
        assert [row.event for row in rows] == ["researched", *ROUND, "need_more_results"] * 3
        assert [row.actor for row in rows] == [name for name in names for _ in range(4)]
        assert [row.traceparent for row in rows] == [somebody(name).traceparent for name in names for _ in range(4)]
        for name in names:
            assert (await store.ledger.submit(somebody(name), reports[name])).accepted
        assert len(await store.journal.page("local", ("run", "run_a"), 0, 1000)) == before + 12


async def test_what_is_wrong_with_one_is_no_matter_to_the_others(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        await researching(store, "run_a", 4, research_expected=4)
        one, two, three, four = await take(store, "agent", 4)
        await store.ledger.submit(caller("taken"), report(one))
        found = await in_one_batch(
            store.store,
            [
                store.ledger.submit(caller("good"), report(two)),
                store.ledger.submit(replace(caller("taken"), fingerprint="another"), report(three)),
                store.ledger.submit(caller("late"), report(three, epoch=7)),
                store.ledger.submit(caller("foreign", project="elsewhere"), report(four)),
                store.ledger.submit(caller("also good"), report(four)),
            ],
        )
        good, reused, late, foreign, also_good = found
        assert good.accepted
        assert also_good.accepted
        assert isinstance(reused, Refusal)
        assert reused.reason is Reason.REQUEST_ID_REUSED
        assert isinstance(late, Refusal)
        assert late.reason is Reason.LEASE_LOST
        assert isinstance(foreign, Refusal)
        assert foreign.reason is Reason.NOT_FOUND


async def test_a_run_that_is_cancelled_between_reports_takes_those_before_it_only(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        await researching(store, "run_a", 3, research_expected=3)
        one, two, three = await take(store, "agent", 3)
        found = await in_one_batch(
            store.store,
            [
                store.ledger.submit(caller(), report(one)),
                store.ledger.submit(caller(), report(two)),
                store.ledger.submit(caller(), commands.Cancel("run_a", "enough")),
                store.ledger.submit(caller(), report(three)),
            ],
        )
        assert [found[0].accepted, found[1].accepted] == [True, True]
        assert isinstance(found[3], Refusal)
        assert found[3].reason is Reason.LEASE_LOST
        rows = await store.journal.page("local", ("run", "run_a"), 0, 1000)
        assert [row.event for row in rows].count("researched") == 2
