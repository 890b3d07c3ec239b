"""Assignments and their leases, on both databases: claimed once, fenced, offered again, ended."""

import asyncio
from dataclasses import replace
from functools import partial

import pytest
from sqlalchemy import text

from pointsman.services.chassis.core.caller import LOCAL
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.orchestrator.domain import commands
from pointsman.services.orchestrator.store import children
from pointsman.services.orchestrator.store.agents import Holder
from pointsman.services.orchestrator.store.polling import LeaseKey, Limits
from pointsman.services.orchestrator.wire import encode
from tests.contract.orchestrator.orchestrators import (
    EVERYTHING,
    caller,
    key_of,
    orchestrator,
    report,
    researching,
    take,
)
from tests.helpers.clock import FakeClock
from tests.helpers.counters import held
from tests.helpers.limits import within

AGENT = Holder("local", LOCAL, "agent")
POLLERS = 64
ASSIGNMENTS = 5000


async def test_an_assignment_is_claimed_by_exactly_one_of_many_pollers(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        await researching(store, "run_a")
        taken = await asyncio.gather(*(take(store, f"agent-{n}") for n in range(20)))
        assert [len(held) for held in taken if held] == [1]


async def test_sixty_four_pollers_race_for_five_thousand_assignments_without_a_double_claim(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        for number in range(ASSIGNMENTS // 1000):
            await researching(store, f"run_{number}", 1000, research_expected=1000)
        claimed: list[tuple[str, int]] = []

        async def poll(agent_id: str) -> None:
            while held := await take(store, agent_id, 32, 0.5):
                claimed.extend((item.assignment_id, item.epoch) for item in held)

        await asyncio.gather(*(poll(f"agent-{n}") for n in range(POLLERS)))
        assert len(claimed) == ASSIGNMENTS
        assert len({key for key, _ in claimed}) == ASSIGNMENTS
        assert {epoch for _, epoch in claimed} == {1}


async def test_a_poller_that_waits_is_given_work_as_soon_as_there_is_some(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        waiting = asyncio.create_task(take(store, "agent", wait_seconds=20))
        await researching(store, "run_a")
        async with within(5):
            assert len(await waiting) == 1


async def test_a_repeated_poll_answers_the_leases_of_the_first(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        await researching(store, "run_a", 3, research_expected=3)
        first = await take(store, "agent", poll_id="same")
        again = await take(store, "agent", poll_id="same")
        assert [item.assignment_id for item in first] == [item.assignment_id for item in again]
        assert len(await take(store, "agent", 9)) == 2


async def test_a_lease_that_ran_out_is_offered_again_and_the_late_answer_is_refused(database_url: str) -> None:
    clock = FakeClock()
    async with orchestrator(database_url, 10, clock) as store:
        await researching(store, "run_a")
        (first,) = await take(store, "first")
        assert await take(store, "second") == []
        clock.advance(seconds=11)
        (second,) = await take(store, "second")
        assert (second.epoch, second.attempt) == (2, 2)
        with pytest.raises(Refusal) as caught:
            await store.ledger.submit(caller(), report(first))
        assert caught.value.reason is Reason.LEASE_LOST
        assert (await store.ledger.submit(caller(), report(second))).accepted


async def test_a_heartbeat_keeps_a_lease_and_tells_of_a_lost_one(database_url: str) -> None:
    clock = FakeClock()
    async with orchestrator(database_url, 10, clock) as store:
        await researching(store, "run_a")
        (held,) = await take(store, "agent")
        key = key_of(held)
        for _ in range(3):
            clock.advance(seconds=9)
            _, lost = await store.store.write(lambda c: store.matcher.renew(c, AGENT, [key], EVERYTHING))
            assert lost == []
        assert await take(store, "other") == []
        clock.advance(seconds=11)
        assert len(await take(store, "other")) == 1
        _, lost = await store.store.write(lambda c: store.matcher.renew(c, AGENT, [key], EVERYTHING))
        assert lost == [held.assignment_id]


async def test_a_lease_is_renewed_and_answered_only_by_the_principal_and_in_the_project_that_took_it(
    database_url: str,
) -> None:
    async with orchestrator(database_url) as store:
        await researching(store, "run_a")
        (held,) = await take(store, "agent", principal="alice")
        key = key_of(held)
        for holder, is_lost in (
            (Holder("local", "mallory", "agent"), True),
            (Holder("theirs", "alice", "agent"), True),
            (Holder("local", "alice", "agent"), False),
        ):
            _, lost = await store.store.write(
                partial(store.matcher.renew, holder=holder, keys=[key], granted=EVERYTHING)
            )
            assert (lost == [held.assignment_id]) is is_lost
        with pytest.raises(Refusal) as caught:
            await store.ledger.submit(caller(), report(held, principal="mallory"))
        with pytest.raises(Refusal) as too_old:
            await store.ledger.submit(caller(), report(held, 99, "alice"))
        assert str(caught.value) == str(too_old.value)
        assert (await store.ledger.submit(caller(), report(held, principal="alice"))).accepted


LEASED_BY_THE_VERSION_BEFORE = (
    "UPDATE assignments SET status = 'LEASED', agent_id = 'old', epoch = epoch + 1, attempt = attempt + 1"
)


async def test_a_lease_that_the_version_before_gave_out_is_nobodys_in_particular(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        await researching(store, "run_a")
        (first,) = await take(store, "agent", principal="alice")
        await store.store.write(lambda connection: connection.execute(text(LEASED_BY_THE_VERSION_BEFORE)))
        key, anybody = LeaseKey(first.assignment_id, first.epoch + 1, ""), Holder("local", "bob", "old")
        _, lost = await store.store.write(lambda c: store.matcher.renew(c, anybody, [key], EVERYTHING))
        assert lost == []
        late = replace(first, agent_id="old", epoch=first.epoch + 1, secret="")
        assert (await store.ledger.submit(caller(), report(late, principal="bob"))).accepted


async def test_after_three_leases_an_assignment_is_exhausted(database_url: str) -> None:
    clock = FakeClock()
    async with orchestrator(database_url, 10, clock) as store:
        await researching(store, "run_a")
        for _ in range(3):
            assert len(await take(store, "agent")) == 1
            clock.advance(seconds=11)
        assert await take(store, "agent") == []
        (row,) = await store.store.database.read(store.matcher.exhausted)
        command = commands.ExpireAssignment(row.entity_id, row.assignment_id, row.epoch)
        await store.ledger.submit(caller(), command)
        assert (await store.view("local", "run_a")).run.risks[0].key == "research-survey"


async def test_a_lease_that_ran_out_is_named_whether_or_not_another_agent_has_taken_it(database_url: str) -> None:
    clock = FakeClock()
    async with orchestrator(database_url, 10, clock) as store:
        await researching(store, "run_a")
        await take(store, "first")
        assert await store.store.database.read(store.matcher.lost) == []
        clock.advance(seconds=11)
        (row,) = await store.store.database.read(store.matcher.lost)
        assert (row.agent_id, row.attempt) == ("first", 1)
        await take(store, "second")
        (row,) = await store.store.database.read(store.matcher.lost)
        assert (row.agent_id, row.attempt, row.epoch) == ("first", 1, 1)
        assert await store.store.database.read(store.matcher.lost) == []
        command = commands.LoseLease(row.entity_id, row.assignment_id, row.agent_id, row.attempt)
        await store.ledger.submit(caller("lose:1"), command)
        await store.ledger.submit(caller("lose:1"), command)
        rows = await store.store.database.read(lambda c: store.journal.rows(c, "run_a", 0, 1000))
        assert [entry.event for entry in rows].count("lease_lost") == 1


async def test_a_failed_attempt_can_be_taken_by_another_agent(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        await researching(store, "run_a")
        (held,) = await take(store, "first")
        key = key_of(held)
        failed = commands.FailAssignment(
            "run_a", key.assignment_id, key.epoch, "first", "cannot", principal=LOCAL, secret_digest=key.secret_digest
        )
        await store.ledger.submit(caller(), failed)
        (again,) = await take(store, "second")
        assert (again.assignment_id, again.epoch, again.attempt) == (held.assignment_id, 2, 2)


async def test_a_lease_that_is_given_back_is_offered_at_once_and_no_attempt_is_lost(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        await researching(store, "run_a")
        (held,) = await take(store, "first")
        key = key_of(held)
        give_back = store.matcher.give_back
        others = (
            Holder("theirs", LOCAL, "first"),
            Holder("local", "mallory", "first"),
            Holder("local", LOCAL, "second"),
        )
        for other in others:
            assert not await store.store.write(partial(give_back, holder=other, key=key))
        waiting = asyncio.create_task(take(store, "second", wait_seconds=20))
        assert await store.store.write(lambda c: give_back(c, Holder("local", LOCAL, "first"), key))
        async with within(5):
            (again,) = await waiting
        assert (again.assignment_id, again.epoch, again.attempt) == (held.assignment_id, 2, 1)
        with pytest.raises(Refusal):
            await store.ledger.submit(caller(), report(held))


async def test_cancelled_work_is_not_handed_out_and_its_lease_is_lost(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        await researching(store, "run_a", 2, research_expected=2)
        (held,) = await take(store, "agent")
        await store.ledger.submit(caller(), commands.Cancel("run_a", "enough"))
        assert await take(store, "other") == []
        with pytest.raises(Refusal) as caught:
            await store.ledger.submit(caller(), report(held))
        assert caught.value.reason is Reason.LEASE_LOST


async def test_work_of_another_project_is_never_handed_out(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        await researching(store, "run_a", project="theirs")
        assert await take(store, "agent") == []
        assert len(await take(store, "agent", project="theirs")) == 1


async def test_work_in_a_repository_goes_only_to_agents_that_have_it(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        await researching(store, "run_a", repository_id="r1")
        assert await take(store, "agent", repository_ids=["r2"]) == []
        assert len(await take(store, "agent", repository_ids=["r1", "r2"])) == 1


async def test_work_that_does_not_fit_an_agent_never_stands_between_it_and_work_that_does(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        await researching(store, "run_a", 40, repository_id="r1", research_expected=40)
        await researching(store, "run_b", repository_id="r2", priority=9)
        both = await asyncio.gather(
            take(store, "theirs", repository_ids=["r1"]), take(store, "ours", repository_ids=["r2"])
        )
        assert [held[0].run_id for held in both] == ["run_a", "run_b"]


async def test_the_most_urgent_run_is_served_first(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        for run_id, priority in (("run_a", 5), ("run_b", 0), ("run_c", 3)):
            await researching(store, run_id, priority=priority)
        assert [(await take(store, "agent"))[0].run_id for _ in range(3)] == ["run_b", "run_c", "run_a"]


async def test_a_completion_is_accepted_once_however_often_it_is_sent(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        await researching(store, "run_a")
        (held,) = await take(store, "agent")
        answers = await asyncio.gather(
            *(store.ledger.submit(caller("same"), report(held)) for _ in range(5)), return_exceptions=True
        )
        assert [answer.accepted for answer in answers if not isinstance(answer, BaseException)] == [True] * 5
        with pytest.raises(Refusal):
            await store.ledger.submit(caller("other"), report(held))
        rows = await store.journal.page("local", ("run", "run_a"), 0, 1000)
        assert [row.event for row in rows].count("researched") == 1


async def test_no_more_leases_are_live_than_a_project_may_have(database_url: str) -> None:
    async with orchestrator(database_url, limits=Limits(per_project=2)) as store:
        await researching(store, "run_a", 4, research_expected=4)
        first = await take(store, "agent", 9)
        assert len(first) == 2
        assert await take(store, "other", 9) == []
        await store.ledger.submit(caller(), report(first[0]))
        assert len(await take(store, "other", 9)) == 1


async def test_a_principal_holds_no_more_leases_than_it_may_and_harms_no_other(database_url: str) -> None:
    async with orchestrator(database_url, limits=Limits(per_principal=3)) as store:
        await researching(store, "run_a", 9, research_expected=9)
        first = await take(store, "one", 2, principal="alice")
        assert len(first) == 2
        (third,) = await take(store, "two", 9, principal="alice")
        for _ in range(2):
            with pytest.raises(Refusal) as caught:
                await take(store, "three", 1, 20.0, principal="alice")
            assert caught.value.reason is Reason.OVERLOADED
            assert caught.value.retry_after_seconds
            assert "alice holds 3 leases in project local" in caught.value.message
            assert "POINTSMAN_ORCHESTRATOR_MAX_PRINCIPAL_LEASES" in caught.value.message
        assert len(await take(store, "one", 3, principal="bob")) == 3
        await store.ledger.submit(caller(), report(third, principal="alice"))
        assert len(await take(store, "three", 9, principal="alice")) == 1


async def test_agents_of_a_principal_that_ask_at_the_same_time_share_its_limit(database_url: str) -> None:
    async with orchestrator(database_url, limits=Limits(per_principal=3)) as store:
        await researching(store, "run_a", 9, research_expected=9)
        async with held(store.store):
            polls = [asyncio.create_task(take(store, f"agent-{n}", 2, principal="alice")) for n in range(3)]
            await asyncio.sleep(0.05)
        taken = await asyncio.gather(*polls, return_exceptions=True)
        assert sum(len(each) for each in taken if not isinstance(each, BaseException)) == 3


async def test_a_repeated_poll_is_answered_though_its_principal_holds_all_it_may(database_url: str) -> None:
    async with orchestrator(database_url, limits=Limits(per_principal=1)) as store:
        await researching(store, "run_a", 2, research_expected=2)
        (first,) = await take(store, "one", principal="alice", poll_id="same")
        (again,) = await take(store, "one", principal="alice", poll_id="same")
        assert first.assignment_id == again.assignment_id


async def test_projects_are_served_in_turn_within_the_overall_limit(database_url: str) -> None:
    async with orchestrator(database_url, limits=Limits(overall=4)) as store:
        for project in ("a", "b"):
            await researching(store, f"run_{project}", 6, research_expected=6, project=project)
        async with held(store.store):
            polls = [asyncio.create_task(take(store, "agent", 9, 5.0, project=project)) for project in ("a", "b")]
            await asyncio.sleep(0.05)
        assert [len(await poll) for poll in polls] == [2, 2]


async def test_a_poll_that_is_over_while_the_database_stands_still_is_not_looked_at_all_the_time(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with orchestrator(database_url) as store:
        looks: list[float] = []
        patience = store.matcher._patience

        def counted() -> float:
            looks.append(patience())
            return looks[-1]

        monkeypatch.setattr(store.matcher, "_patience", counted)
        async with held(store.store):
            over = asyncio.create_task(take(store, "agent", wait_seconds=0.01))
            await asyncio.sleep(0.05)
            store.store.notify({children.ASSIGNMENTS})
            await asyncio.sleep(0.6)
            assert 0 < len(looks) < 20, "it was looked at two hundred times a second"
        assert await over == []


async def test_a_run_shows_every_start_of_an_agent_also_those_whose_lease_ran_out(database_url: str) -> None:
    clock = FakeClock()
    async with orchestrator(database_url, 10, clock) as store:
        await researching(store, "run_a", 2, research_expected=2)
        for agent_id in ("first", "second", "third"):
            assert len(await take(store, agent_id, 2)) == 2
            clock.advance(seconds=11)
        shown = encode.runs.run(await store.view("local", "run_a"))
        assert shown.usage.assignments == 6
