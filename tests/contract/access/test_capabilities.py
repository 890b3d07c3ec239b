"""Every capability × what a principal is granted, at Poll and Complete; and grants and secrets that change meanwhile."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import grpc
import pytest

from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.credentials.folder import CredentialRole
from pointsman.credentials.tokens import Identity, mint
from pointsman.services.chassis.rpc.status import refusal_from
from tests.contract.access.guarded import guarded
from tests.contract.access.loopbacks import loopback
from tests.contract.access.test_stream_rights import by_certificate
from tests.helpers.eventually import eventually
from tests.scenarios.planes import Plane, clients

PREFIX = "CAPABILITY_"
CAPABILITIES = {
    name.removeprefix(PREFIX).lower(): number for name, number in assignments.Capability.items() if number != 0
}
GRANTED: Mapping[str, Sequence[str]] = {
    "nothing": (),
    "code": ("code",),
    "review": ("review",),
    "verify": ("verify",),
    "code and review": ("code", "review"),
    "unknown": ("root", "CODE", "ver*"),
    "all": ("*",),
}
Metadata = tuple[tuple[str, str], ...]


async def polled(here: Plane, capability: str, metadata: Metadata = (), agent_id: str = "box-1") -> str:
    """How a poll for one capability is answered: OK, or the reason of its refusal."""
    wanted = agent.Wanted(capabilities=[CAPABILITIES[capability]])
    request = agent.PollRequest(request_id=here.request_id(), agent_id=agent_id, wanted=wanted)
    try:
        await here.agents.Poll(request, metadata=metadata)
    except grpc.aio.AioRpcError as error:
        return str(refusal_from(error).reason)
    return "OK"


async def completed(here: Plane, capability: str, agent_id: str) -> str:
    """How a completion that asks for work of one capability next is answered."""
    key = agent.LeaseKey(assignment_id="run_0.a1", epoch=1, secret="x")
    request = agent.CompleteRequest(
        request_id=here.request_id(),
        agent_id=agent_id,
        completions=[agent.Completion(lease=key)],
        next=agent.Wanted(capabilities=[CAPABILITIES[capability]]),
    )
    try:
        await here.agents.Complete(request)
    except grpc.aio.AioRpcError as error:
        return str(refusal_from(error).reason)
    return "OK"


async def test_an_agent_is_handed_just_the_kinds_of_work_that_it_is_granted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(CAPABILITIES) >= 8
    wrong: list[tuple[str, str, str, str]] = []
    async with guarded(tmp_path, monkeypatch) as there:
        for name, granted in GRANTED.items():
            here = await there.as_principal(name.replace(" ", "-"), "agent", capabilities=granted)
            for capability in CAPABILITIES:
                expected = "OK" if capability in granted or "*" in granted else "PERMISSION_DENIED"
                found = {
                    "Poll": await polled(here, capability, agent_id=name),
                    "Complete": await completed(here, capability, name),
                }
                wrong += [(name, capability, rpc, said) for rpc, said in found.items() if said != expected]
    assert wrong == []


def grant(path: Path, *capabilities: str) -> Path:
    """An access file that grants `olga` these; replaced as a whole, as one is that others read."""
    olga = {"name": "olga", "roles": ["service"], "projects": ["*"], "capabilities": list(capabilities)}
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps({"principals": [olga]}))
    return fresh.replace(path)


async def test_capabilities_that_change_in_the_access_file_count_without_a_restart(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    access = grant(tmp_path / "access.json", "code")
    async with by_certificate(tmp_path, access) as here:

        async def may() -> set[str]:
            return {name for name in ("code", "review", "verify") if await polled(here, name) == "OK"}

        for granted in ({"code"}, {"review", "code"}, set(), {"verify"}):
            grant(access, *granted)

            async def counts(expected: set[str] = granted) -> bool:
                return await may() == expected

            await eventually(counts)


async def test_a_holder_keeps_its_lease_over_a_new_secret_of_its_role_and_the_old_token_is_nobodys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with loopback(tmp_path, monkeypatch) as there:
        planner, operator = await there.acting_as("planner/box-1"), await there.acting_as()
        bare = clients(await there.bare())
        old = mint(Identity(there.folder, CredentialRole.PLANNER, "box-1"))
        wanted = agent.Wanted(capabilities=[assignments.CAPABILITY_RESEARCH])
        request = agent.PollRequest(request_id="hold", agent_id="box-1", wanted=wanted)
        request.wait.FromSeconds(50)
        waiting = asyncio.ensure_future(planner.agents.Poll(request))
        await operator.submit()
        (lease,) = (await waiting).leases
        key = agent.LeaseKey(assignment_id=lease.assignment.id, epoch=lease.epoch, secret=lease.secret)
        beat = agent.HeartbeatRequest(request_id="beat", agent_id="box-1", leases=[key])
        shown = (("authorization", f"Bearer {old}"),)
        assert not (await bare.agents.Heartbeat(beat, metadata=shown)).lost_assignment_ids
        there.folder.rotate(CredentialRole.PLANNER)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await bare.agents.Heartbeat(beat, metadata=shown)
        assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
        assert await polled(bare, "research", shown) == "UNAUTHENTICATED"
        again = agent.HeartbeatRequest(request_id="again", agent_id="box-1", leases=[key])
        assert not (await planner.agents.Heartbeat(again)).lost_assignment_ids, (
            "its client shows a token of the new one"
        )
