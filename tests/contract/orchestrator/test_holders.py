"""An agent answers only for its own lease, and nobody judges what his own principal made: two tokens, a real server."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from pointsman.api.common.v1 import common_pb2 as common
from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.audit.stores import audit_stores
from pointsman.services.chassis.core.config import StoreSettings
from pointsman.services.chassis.core.errors import Reason
from pointsman.services.chassis.rpc.status import refusal_from
from pointsman.services.mock_agents.results import result_for
from pointsman.services.orchestrator.domain.mocking import MockOutcome
from pointsman.services.orchestrator.domain.run import Run
from pointsman.services.orchestrator.store.matcher import AssignmentMatcher
from pointsman.services.orchestrator.store.others import Others
from tests.contract.access.guarded import guarded
from tests.helpers.eventually import eventually
from tests.scenarios.planes import MOCKED, Plane

RESEARCH = (assignments.CAPABILITY_RESEARCH,)
CODE = (assignments.CAPABILITY_CODE,)
REVIEW = (assignments.CAPABILITY_REVIEW,)


async def poll(
    here: Plane, agent_id: str, can: Iterable[assignments.Capability.ValueType], request_id: str, seconds: int = 20
) -> list[agent.Lease]:
    wanted = agent.Wanted(capabilities=can)
    request = agent.PollRequest(request_id=request_id, agent_id=agent_id, wanted=wanted, wait=Duration(seconds=seconds))
    return list((await here.agents.Poll(request)).leases)


async def hand_in(here: Plane, agent_id: str, lease: agent.Lease, epoch: int = 0) -> agent.CompletionOutcome:
    completion = result_for(lease, MockOutcome.SUCCESS)
    assert isinstance(completion, agent.Completion)
    completion.lease.epoch = epoch or lease.epoch
    request = agent.CompleteRequest(request_id=here.request_id(), agent_id=agent_id, completions=[completion])
    outcome: agent.CompletionOutcome = (await here.agents.Complete(request)).outcomes[0]
    return outcome


async def give_up(here: Plane, agent_id: str, lease: agent.Lease, epoch: int = 0) -> agent.CompletionOutcome:
    key = agent.LeaseKey(assignment_id=lease.assignment.id, epoch=epoch or lease.epoch, secret=lease.secret)
    failure = agent.Failure(lease=key, error="enough", permanent=True)
    request = agent.FailRequest(request_id=here.request_id(), agent_id=agent_id, failures=[failure])
    outcome: agent.CompletionOutcome = (await here.agents.Fail(request)).outcomes[0]
    return outcome


async def beat(here: Plane, agent_id: str, lease: agent.Lease) -> list[str]:
    key = agent.LeaseKey(assignment_id=lease.assignment.id, epoch=lease.epoch, secret=lease.secret)
    request = agent.HeartbeatRequest(request_id=here.request_id(), agent_id=agent_id, leases=[key])
    return list((await here.agents.Heartbeat(request)).lost_assignment_ids)


async def test_a_lease_is_of_no_use_to_another_principal_that_knows_all_about_it(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with guarded(tmp_path, monkeypatch, database_url) as there:
        alice, mallory = await there.as_principal("alice", "agent"), await there.as_principal("mallory", "agent")
        operator = await there.as_principal("olga", "operator")
        waiting = asyncio.create_task(poll(alice, "alice-1", RESEARCH, "poll-1"))
        await asyncio.sleep(0)
        run = await operator.submit()
        (lease,) = await waiting
        (known,) = (await mallory.agents.ListAssignments(agent.ListAssignmentsRequest(run_id=run.id))).assignments
        assert (known.agent_id, known.attempt) == ("alice-1", lease.epoch), "mallory knows what there is to know"
        too_old = (await hand_in(alice, "alice-1", lease, 99), await give_up(alice, "alice-1", lease, 99))
        foreign = (await hand_in(mallory, "alice-1", lease), await give_up(mallory, "alice-1", lease))
        assert [outcome.reason for outcome in foreign] == [common.ERROR_REASON_LEASE_LOST] * 2
        assert [item.SerializeToString() for item in foreign] == [item.SerializeToString() for item in too_old]
        assert await beat(mallory, "alice-1", lease) == [lease.assignment.id]
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await poll(mallory, "alice-1", RESEARCH, "poll-1", 0)
        assert refusal_from(refused.value).reason is Reason.ALREADY_EXISTS, "nobody polls under her agent's name"
        assert await beat(alice, "alice-1", lease) == []
        assert (await hand_in(alice, "alice-1", lease)).accepted


async def test_a_heartbeat_from_another_project_keeps_nothing_alive(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with guarded(tmp_path, monkeypatch, database_url) as there:
        alice = await there.as_principal("alice", "agent")
        operator = await there.as_principal("olga", "operator")
        waiting = asyncio.create_task(poll(alice, "alice-1", RESEARCH, "poll-1"))
        await asyncio.sleep(0)
        await operator.submit()
        (lease,) = await waiting
        elsewhere = await there.as_principal("alice", "agent", project="elsewhere")
        key = agent.LeaseKey(assignment_id=lease.assignment.id, epoch=lease.epoch, secret=lease.secret)
        request = agent.HeartbeatRequest(request_id="h", agent_id="alice-1", leases=[key])
        lost = await elsewhere.agents.Heartbeat(request, metadata=(("pointsman-project", "elsewhere"),))
        assert list(lost.lost_assignment_ids) == [lease.assignment.id]


async def test_a_principal_never_judges_its_own_work_whatever_it_calls_its_agents(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with guarded(tmp_path, monkeypatch, database_url) as there:
        alice, bob = await there.as_principal("alice", "agent"), await there.as_principal("bob", "agent")
        operator = await there.as_principal("olga", "operator")
        assert await poll(bob, "bob-1", REVIEW, "early", 0) == []
        run = await operator.submit()
        (lease,) = await poll(alice, "alice-coder", CODE, "code")
        assert (await hand_in(alice, "alice-coder", lease)).accepted
        open_ones = agent.ListAssignmentsRequest(run_id=run.id, states=[assignments.ASSIGNMENT_STATE_OPEN])

        async def is_to_be_reviewed() -> bool:
            listed = (await operator.agents.ListAssignments(open_ones)).assignments
            return {item.capability for item in listed} == {assignments.CAPABILITY_REVIEW}

        await eventually(is_to_be_reviewed)
        assert await poll(alice, "alice-reviewer", REVIEW, "own", 1) == []
        (review,) = await poll(bob, "bob-1", REVIEW, "other")
        assert review.assignment.run_id == run.id


async def test_the_auditor_finds_a_principal_that_was_let_judge_its_own_work(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Run, "excluded_from", lambda *_: ())
    monkeypatch.setattr(AssignmentMatcher, "_others", lambda *_: Others())
    async with guarded(tmp_path, monkeypatch, database_url) as there:
        alice, operator = await there.as_principal("alice", "agent"), await there.as_principal("olga", "operator")
        assert await poll(alice, "alice-reviewer", REVIEW, "early", 0) == [], "a run looks who is there when it begins"
        run = await operator.submit()
        (lease,) = await poll(alice, "alice-coder", CODE, "code")
        assert (await hand_in(alice, "alice-coder", lease)).accepted
        (review,) = await poll(alice, "alice-reviewer", REVIEW, "own")
        assert (await hand_in(alice, "alice-reviewer", review)).accepted
    stores = StoreSettings(data=tmp_path, database_url="" if database_url.startswith("sqlite") else database_url)
    found = (await audit_stores(stores))["orchestrator"].violations
    assert {(one.invariant, one.entity_id, one.detail) for one in found} == {
        ("lease", run.id, f"{review.assignment.id} is judged by the principal of its author alice-coder"),
        ("judge", run.id, f"{review.assignment.id} is judged by alice, an author of what it judges"),
    }


async def test_mock_agents_of_the_service_itself_share_its_name_and_bring_a_run_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with guarded(tmp_path, monkeypatch, mocks=MOCKED) as there:
        operator = await there.as_principal("olga", "operator")
        run = await operator.ended((await operator.submit()).id)
        assert run.state == runs.RUN_STATE_COMPLETE
    assert (await audit_stores(StoreSettings(data=tmp_path)))["orchestrator"].violations == []
