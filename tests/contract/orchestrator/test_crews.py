"""A run's own workers, on both databases: its work is theirs, and the run waits for them."""

from typing import Any

from pointsman.services.chassis.core.caller import LOCAL
from pointsman.services.orchestrator.domain import commands, events
from pointsman.services.orchestrator.domain.enums import Capability
from pointsman.services.orchestrator.domain.model import Budget
from pointsman.services.orchestrator.store import OrchestratorStore
from pointsman.services.orchestrator.store.agents import Holder
from tests.contract.orchestrator.orchestrators import RESEARCH, caller, orchestrator, order, take
from tests.helpers.limits import scaled

PLAN, SURVEY = frozenset({Capability.PLAN}), frozenset({Capability.SURVEY})
OWN = frozenset({"run_a"})


async def planning(store: OrchestratorStore, run_id: str, **terms: Any) -> None:
    """A run at the point where it needs a plan."""
    submit = commands.Submit(run_id, "look", order(**terms), Budget(assignments=100, fan_out=64))
    await store.ledger.submit(caller(), submit)
    await store.ledger.submit(caller(), commands.CallAnswered(run_id, events.EpicStored("c1", f"epic_{run_id}")))


async def researching(store: OrchestratorStore, run_id: str, **terms: Any) -> None:
    """A run whose built-in plan asks for a survey."""
    await planning(store, run_id, repository_id="repo", **terms)
    await store.ledger.submit(caller(), commands.CallAnswered(run_id, events.PlanStored("c2")))


async def test_reserved_work_is_given_only_to_workers_that_ask_for_its_run(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        await planning(store, "run_a", crew=(Capability.PLAN,), reserved=True)
        assert not await take(store, "anybody", capabilities=PLAN)
        assert not await take(store, "elsewhere", capabilities=PLAN, run_ids={"run_b"})
        (held,) = await take(store, "own", capabilities=PLAN, run_ids=OWN)
        assert held.run_id == "run_a"


async def test_a_worker_of_one_run_takes_no_work_of_another(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        await planning(store, "run_b", crew=(Capability.PLAN,))
        assert not await take(store, "own", capabilities=PLAN, run_ids=OWN)
        (held,) = await take(store, "anybody", capabilities=PLAN)
        assert held.run_id == "run_b"


async def test_a_worker_that_shares_takes_the_work_of_its_own_run_first_and_then_that_of_others(
    database_url: str,
) -> None:
    async with orchestrator(database_url) as store:
        for run_id in ("run_b", "run_c", "run_a", "run_d"):
            await planning(store, run_id, crew=(Capability.PLAN,))
        taken = [(await take(store, "own", capabilities=PLAN, first_run_ids=OWN))[0].run_id for _ in range(3)]
        assert taken == ["run_a", "run_b", "run_c"]
        (held,) = await take(store, "anybody", capabilities=PLAN)
        assert held.run_id == "run_d"


async def test_a_run_waits_for_a_planner_that_was_promised_and_plans_by_itself_without_one(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        await planning(store, "run_a", crew=(Capability.PLAN,), reserved=True)
        await planning(store, "run_b")
        assert not (await store.view("local", "run_a")).run.tasks
        assert (await store.view("local", "run_b")).run.plan_built_in


async def test_a_planner_of_another_run_does_not_count_as_there(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        await store.agents.touch(Holder("local", LOCAL, "own"), PLAN, run_ids=OWN)
        await planning(store, "run_b")
        assert (await store.view("local", "run_b")).run.plan_built_in


async def test_a_planner_that_works_for_everybody_does_not_count_for_a_reserved_run(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        await store.agents.touch(Holder("local", LOCAL, "anybody"), PLAN)
        await planning(store, "run_a", reserved=True)
        assert (await store.view("local", "run_a")).run.plan_built_in


async def test_a_survey_is_left_to_the_surveyor_of_the_run(database_url: str) -> None:
    here = {"repo"}
    async with orchestrator(database_url) as store:
        await store.agents.touch(Holder("local", LOCAL, "own"), SURVEY, frozenset({"repo"}), OWN)
        await researching(store, "run_a", crew=(Capability.RESEARCH, Capability.SURVEY), reserved=True)
        assert not await take(store, "reader", capabilities=RESEARCH, run_ids=OWN, repository_ids=here)
        assert len(await take(store, "own", capabilities=SURVEY, run_ids=OWN, repository_ids=here)) == 1


async def test_a_surveyor_of_another_run_keeps_no_researcher_from_the_survey(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        await store.agents.touch(Holder("local", LOCAL, "own"), SURVEY, frozenset({"repo"}), OWN)
        await researching(store, "run_b")
        assert len(await take(store, "reader", repository_ids={"repo"})) == 1


async def test_a_lease_of_reserved_work_that_ran_out_goes_to_the_workers_of_its_run(database_url: str) -> None:
    async with orchestrator(database_url, lease_seconds=0.01) as store:
        await planning(store, "run_a", crew=(Capability.PLAN,), reserved=True)
        (first,) = await take(store, "own", capabilities=PLAN, run_ids=OWN)
        assert not await take(store, "anybody", capabilities=PLAN, wait_seconds=0.5)
        (again,) = await take(store, "own-2", capabilities=PLAN, run_ids=OWN, wait_seconds=scaled(5))
        assert (again.assignment_id, again.epoch) == (first.assignment_id, 2)
