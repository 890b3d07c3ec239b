"""Handing in over gRPC, on both databases: many at once, repeated, refused at once, and who is lost."""

from pathlib import Path

import pytest
from google.protobuf.duration_pb2 import Duration

from pointsman.api.common.v1 import common_pb2 as common
from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from tests.contract.orchestrator.test_service import good_report
from tests.helpers.eventually import eventually
from tests.helpers.limits import within
from tests.scenarios.planes import NOBODY, Plane, plane

SLOTS = 6


def wanted(limit: int = 1) -> agent.Wanted:
    return agent.Wanted(capabilities=[assignments.CAPABILITY_RESEARCH], max_leases=limit)


async def researching(here: Plane, slots: int = SLOTS, count: int = 1) -> list[str]:
    """Runs that wait for reports, with an agent that was there when they decided to."""
    assert await take(here, 1) == []
    submitted = [await here.submit(research_expected=slots) for _ in range(count)]
    return [str((await here.reached(run.id, runs.RUN_STATE_RESEARCH_FANOUT)).id) for run in submitted]


async def take(here: Plane, limit: int, agent_id: str = "ada") -> list[agent.Lease]:
    request = agent.PollRequest(request_id=here.request_id(), agent_id=agent_id, wanted=wanted(limit))
    return list((await here.agents.Poll(request)).leases)


def handing_in(here: Plane, *completions: agent.Completion) -> agent.CompleteRequest:
    return agent.CompleteRequest(request_id=here.request_id(), agent_id="ada", completions=completions)


async def test_results_for_several_runs_are_handed_in_and_the_next_taken_in_one_call(
    tmp_path: Path, database_url: str
) -> None:
    async with plane(tmp_path, NOBODY, database_url) as here:
        run_ids = await researching(here, count=2)
        leases = await take(here, 2 * SLOTS - 1)
        assert {lease.assignment.run_id for lease in leases} == set(run_ids)
        request = handing_in(here, *map(good_report, leases))
        request.next.CopyFrom(wanted(9))
        answer = await here.agents.Complete(request)
        assert [outcome.assignment_id for outcome in answer.outcomes] == [lease.assignment.id for lease in leases]
        assert all(outcome.accepted for outcome in answer.outcomes)
        assert len(answer.leases) == 1
        moves = [await here.moves(run_id) for run_id in run_ids]
        assert [each.count("result_arrived") for each in moves] == [1, 1]


async def test_a_repeated_call_with_several_results_answers_the_same(tmp_path: Path, database_url: str) -> None:
    async with plane(tmp_path, NOBODY, database_url) as here:
        (run_id,) = await researching(here)
        request = handing_in(here, *map(good_report, await take(here, 3)))
        answers = [await here.agents.Complete(request) for _ in range(3)]
        assert answers[0] == answers[1] == answers[2]
        assert all(outcome.accepted for outcome in answers[0].outcomes)
        assert (await here.get(run_id)).usage.tokens == 33


async def test_a_result_that_is_named_twice_is_taken_once(tmp_path: Path) -> None:
    async with plane(tmp_path, NOBODY) as here:
        (run_id,) = await researching(here)
        reports = [good_report(lease) for lease in await take(here, 2)]
        answer = await here.agents.Complete(handing_in(here, reports[0], reports[1], reports[0]))
        assert [outcome.accepted for outcome in answer.outcomes] == [True] * 3
        assert (await here.get(run_id)).usage.tokens == 22


async def test_a_refused_result_among_several_does_not_harm_the_others(tmp_path: Path, database_url: str) -> None:
    async with plane(tmp_path, NOBODY, database_url) as here:
        await researching(here)
        reports = [good_report(lease) for lease in await take(here, 3)]
        reports[1].lease.epoch += 1
        answer = await here.agents.Complete(handing_in(here, *reports))
        assert [outcome.accepted for outcome in answer.outcomes] == [True, False, True]
        assert answer.outcomes[1].reason == common.ERROR_REASON_LEASE_LOST


async def test_who_hands_in_at_its_limit_of_leases_gets_the_next_in_the_same_call(
    tmp_path: Path, database_url: str
) -> None:
    async with plane(tmp_path, NOBODY, database_url, max_principal_leases=2) as here:
        await researching(here, 4)
        leases = await take(here, 2)
        request = handing_in(here, good_report(leases[0]))
        request.next.CopyFrom(wanted(2))
        request.wait.CopyFrom(Duration(seconds=30))
        async with within(20):
            answer = await here.agents.Complete(request)
        assert answer.outcomes[0].accepted
        assert len(answer.leases) == 1


async def test_a_refused_result_is_told_at_once_however_long_the_next_may_be_waited_for(
    tmp_path: Path, database_url: str
) -> None:
    async with plane(tmp_path, NOBODY, database_url) as here:
        await researching(here, 1)
        (lease,) = await take(here, 1)
        request = handing_in(here, good_report(lease))
        request.completions[0].lease.epoch += 1
        request.next.CopyFrom(wanted())
        request.wait.CopyFrom(Duration(seconds=30))
        async with within(10):
            answer = await here.agents.Complete(request)
        assert answer.outcomes[0].reason == common.ERROR_REASON_LEASE_LOST
        assert not answer.leases


@pytest.mark.parametrize(
    ("present_seconds", "state"), [(3600.0, agent.AGENT_STATE_IDLE), (0.01, agent.AGENT_STATE_LOST)]
)
async def test_an_agent_is_lost_when_it_was_not_heard_of_for_as_long_as_the_service_is_told(
    tmp_path: Path, present_seconds: float, state: agent.AgentState.ValueType
) -> None:
    async with plane(tmp_path, NOBODY, present_seconds=present_seconds) as here:
        await take(here, 1)

        async def is_shown() -> bool:
            (seen,) = (await here.agents.ListAgents(agent.ListAgentsRequest())).agents
            return bool(seen.state == state)

        await eventually(is_shown)
