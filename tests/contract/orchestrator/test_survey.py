"""Who answers research, on both databases: the surveyor the survey, a researcher everything else while one is there."""

import asyncio

from pointsman.services.chassis.core.caller import LOCAL
from pointsman.services.orchestrator.domain import commands, events
from pointsman.services.orchestrator.domain.enums import Capability
from pointsman.services.orchestrator.domain.model import Budget, Criterion, Plan, SlotOutline, TaskOutline
from pointsman.services.orchestrator.store import OrchestratorStore
from pointsman.services.orchestrator.store.agents import Holder
from tests.contract.orchestrator.orchestrators import RESEARCH, caller, key_of, orchestrator, order, take
from tests.helpers.clock import FakeClock

SURVEY, PLAN = frozenset({Capability.SURVEY}), frozenset({Capability.PLAN})
HERE = frozenset({"repo"})
GONE_SECONDS = 121.0


async def asking(store: OrchestratorStore, *slots: str) -> None:
    """A run whose planner has asked these questions about a repository."""
    await store.agents.touch(Holder("local", LOCAL, "planner"), PLAN, HERE)
    submit = commands.Submit("run_a", "look", order(repository_id="repo"), Budget(assignments=100, fan_out=64))
    await store.ledger.submit(caller(), submit)
    await store.ledger.submit(caller(), commands.CallAnswered("run_a", events.EpicStored("c1", "epic_a")))
    (held,) = await take(store, "planner", capabilities=PLAN, repository_ids=HERE)
    task = TaskOutline("T1", "look", (Criterion("T1-C1", required=True, has_command=False),))
    plan = Plan((task,), tuple(SlotOutline(slot, f"what about {slot}?") for slot in slots), 0.9, "{}")
    result = commands.PlanResult(plan)
    done = commands.CompleteAssignment(
        "run_a",
        held.assignment_id,
        held.epoch,
        "planner",
        result,
        principal=LOCAL,
        secret_digest=key_of(held).secret_digest,
    )
    await store.ledger.submit(caller(), done)
    await store.ledger.submit(caller(), commands.CallAnswered("run_a", events.PlanStored("c2")))


async def taken(store: OrchestratorStore, agent_id: str, capabilities: frozenset[Capability]) -> list[str]:
    """The slots that an agent is given when it asks for everything."""
    leases = await take(store, agent_id, 8, capabilities=capabilities, repository_ids=HERE)
    found = [one.body.partition('"slot":"')[2].partition('"')[0] for one in leases]
    return sorted(found)


async def test_a_surveyor_takes_the_survey_and_leaves_questions_to_a_researcher_that_is_there(
    database_url: str,
) -> None:
    async with orchestrator(database_url) as store:
        await store.agents.touch(Holder("local", LOCAL, "reader"), RESEARCH, HERE)
        await asking(store, "survey", "survey-2", "lexer", "survey-of-lexers")
        waiting = asyncio.create_task(taken(store, "box", SURVEY))
        assert await waiting == ["survey", "survey-2"]
        assert await taken(store, "box", SURVEY) == []
        assert await taken(store, "reader", RESEARCH) == ["lexer", "survey-of-lexers"]


async def test_a_surveyor_takes_questions_when_no_researcher_is_there_for_the_repository(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        await store.agents.touch(Holder("local", LOCAL, "elsewhere"), RESEARCH, frozenset({"another"}))
        await store.agents.touch(Holder("other-project", LOCAL, "reader"), RESEARCH, HERE)
        await asking(store, "lexer")
        assert await taken(store, "box", SURVEY) == ["lexer"]


async def test_a_question_goes_to_the_surveyor_when_the_researcher_is_gone(database_url: str) -> None:
    clock = FakeClock()
    async with orchestrator(database_url, clock=clock) as store:
        await store.agents.touch(Holder("local", LOCAL, "reader"), RESEARCH, HERE)
        await asking(store, "lexer")
        assert await taken(store, "box", SURVEY) == []
        clock.advance(seconds=GONE_SECONDS)
        assert await taken(store, "box", SURVEY) == ["lexer"]


async def test_a_researcher_may_take_the_survey_too(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        await asking(store, "survey", "lexer")
        assert await taken(store, "reader", RESEARCH) == ["lexer", "survey"]
