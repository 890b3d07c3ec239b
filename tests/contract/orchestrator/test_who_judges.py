"""Who may take which work, over a real server with tokens: capabilities are granted, and an author never judges."""

import asyncio
from pathlib import Path

import grpc
import pytest

from pointsman.api.common.v1 import common_pb2 as common
from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.credentials.folder import CredentialRole
from pointsman.services.chassis.core.errors import Reason
from pointsman.services.chassis.rpc.loopback import POWERS
from pointsman.services.chassis.rpc.status import refusal_from
from tests.contract.access.guarded import Guarded, guarded
from tests.contract.orchestrator.test_holders import beat, give_up, hand_in, poll
from tests.scenarios.planes import Plane

CODE, RESEARCH = assignments.CAPABILITY_CODE, assignments.CAPABILITY_RESEARCH
JUDGES = (assignments.CAPABILITY_REVIEW, assignments.CAPABILITY_VERIFY, assignments.CAPABILITY_DEBATE)


def test_no_role_of_a_data_directory_both_makes_and_judges_and_only_the_verifier_verifies() -> None:
    granted = {role: powers.capabilities for role, powers in POWERS.items() if role is not CredentialRole.SERVICE}
    makes, judges = {"plan", "design", "code"}, {"review", "debate", "verify"}
    assert [role for role, can in granted.items() if can & makes and can & judges] == []
    assert [role for role, can in granted.items() if "verify" in can] == [CredentialRole.VERIFIER]
    assert "*" not in {capability for can in granted.values() for capability in can}


async def leased(there: Guarded, here: Plane, agent_id: str) -> agent.Lease:
    """A lease of research, which every run begins with."""
    operator = await there.as_principal("olga", "operator")
    waiting = asyncio.create_task(poll(here, agent_id, [RESEARCH], "first"))
    await asyncio.sleep(0)
    await operator.submit()
    (lease,) = await waiting
    return lease


@pytest.mark.parametrize("capability", JUDGES)
async def test_a_coder_can_neither_poll_for_judgements_nor_ask_for_them_with_a_completion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capability: assignments.Capability.ValueType
) -> None:
    async with guarded(tmp_path, monkeypatch) as there:
        coder = await there.as_principal("coder/box-1", "agent", capabilities=["code", "research"])
        lease = await leased(there, coder, "box-1")
        name = assignments.Capability.Name(capability).removeprefix("CAPABILITY_").lower()
        with pytest.raises(grpc.aio.AioRpcError) as polled:
            await poll(coder, "box-1", [CODE, capability], "judge")
        key = agent.LeaseKey(assignment_id=lease.assignment.id, epoch=lease.epoch, secret=lease.secret)
        completing = agent.CompleteRequest(
            request_id="judge-next",
            agent_id="box-1",
            completions=[agent.Completion(lease=key)],
            next=agent.Wanted(capabilities=[capability]),
        )
        with pytest.raises(grpc.aio.AioRpcError) as completed:
            await coder.agents.Complete(completing)
        for caught in (polled, completed):
            refusal = refusal_from(caught.value)
            assert (refusal.reason, refusal.metadata) == (Reason.PERMISSION_DENIED, {"capability": name})
            assert f"coder/box-1 is not granted the capability {name}; show a credential that is" in refusal.message
        assert (await hand_in(coder, "box-1", lease)).accepted, "nothing of the refused call was done"


async def test_a_role_without_capabilities_takes_no_work_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with guarded(tmp_path, monkeypatch) as there:
        for role in ("agent", "service", "admin"):
            here = await there.as_principal(f"some-{role}", role, capabilities=())
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await poll(here, "a", [CODE], f"poll-{role}", 0)
            assert refusal_from(caught.value).reason is Reason.PERMISSION_DENIED


async def test_an_operator_cannot_speak_for_a_lease_whatever_it_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with guarded(tmp_path, monkeypatch) as there:
        coder = await there.as_principal("coder", "agent")
        lease = await leased(there, coder, "box-1")
        operator = await there.as_principal("coder", "operator")
        for speaking in (hand_in, give_up, beat):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await speaking(operator, "box-1", lease)
            assert refusal_from(caught.value).reason is Reason.PERMISSION_DENIED
        assert (await hand_in(coder, "box-1", lease)).accepted


async def test_a_second_agent_with_the_credential_cannot_speak_for_the_lease_of_the_first(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with guarded(tmp_path, monkeypatch, database_url) as there:
        first = await there.as_principal("coder", "agent")
        lease = await leased(there, first, "box-1")
        second = await there.as_principal("coder", "agent")
        (known,) = (
            await second.agents.ListAssignments(agent.ListAssignmentsRequest(run_id=lease.assignment.run_id))
        ).assignments
        stolen = agent.Lease(assignment=lease.assignment, epoch=known.attempt, research=lease.research)
        assert (await hand_in(second, "box-1", stolen)).reason == common.ERROR_REASON_LEASE_LOST
        assert (await give_up(second, "box-1", stolen)).reason == common.ERROR_REASON_LEASE_LOST
        assert await beat(second, "box-1", stolen) == [lease.assignment.id]
        assert (await hand_in(first, "box-1", lease)).accepted


async def test_a_lease_of_work_that_was_taken_from_its_principal_is_lost_and_cannot_be_completed(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with guarded(tmp_path, monkeypatch, database_url) as there:
        before = await there.as_principal("box", "agent", capabilities=["research"])
        lease = await leased(there, before, "box-1")
        assert await beat(before, "box-1", lease) == []
        after = await there.as_principal("box", "agent", capabilities=["code"])
        assert await beat(after, "box-1", lease) == [lease.assignment.id]
        assert (await hand_in(after, "box-1", lease)).reason == common.ERROR_REASON_PERMISSION_DENIED
        surveyor = await there.as_principal("box", "agent", capabilities=["survey"])
        assert await beat(surveyor, "box-1", lease) == []
        assert (await hand_in(surveyor, "box-1", lease)).accepted
