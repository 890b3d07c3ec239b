"""Keys of leases that are not quite right: whoever has one holds nothing, and the holder goes on."""

import asyncio
from collections.abc import Iterator
from typing import Any

import grpc
from google.protobuf.duration_pb2 import Duration

from pointsman.api.common.v1 import common_pb2 as common
from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.credentials.folder import CredentialRole
from pointsman.services.mock_agents.results import result_for
from pointsman.services.orchestrator.domain.mocking import MockOutcome
from tests.robustness.abuse.credentials import Metadata, Wallet
from tests.scenarios.planes import WISH, Plane, clients

HOLDER, AGENT_ID = "holder", "box-1"
LONGEST_SECRET = 128


async def wrong_keys(channel: grpc.aio.Channel, wallet: Wallet) -> list[str]:
    """What was wrongly let through, of every wrong key at every RPC that takes one, and of others with the right one."""
    here, holder = clients(channel), wallet.of(CredentialRole.SERVICE, HOLDER).metadata
    lease = await _lease(here, wallet, holder)
    problems: list[str] = []
    for what, key in spoiled(lease):
        problems += [f"{what}: {said}" for said in await _use(here, lease, key, holder)]
    right = agent.LeaseKey(assignment_id=lease.assignment.id, epoch=lease.epoch, secret=lease.secret)
    for name in (CredentialRole.SERVICE, CredentialRole.CODER, CredentialRole.VERIFIER):
        others = wallet.of(name, "thief").metadata
        problems += [f"the right key shown by {name}/thief: {said}" for said in await _use(here, lease, right, others)]
    beat = agent.HeartbeatRequest(request_id="still", agent_id=AGENT_ID, leases=[right])
    if (await here.agents.Heartbeat(beat, metadata=holder)).lost_assignment_ids:
        problems.append("the holder has lost its lease to wrong keys")
    return problems


async def _lease(here: Plane, wallet: Wallet, holder: Metadata) -> agent.Lease:
    wanted = agent.Wanted(capabilities=[assignments.CAPABILITY_RESEARCH])
    request = agent.PollRequest(request_id="hold", agent_id=AGENT_ID, wanted=wanted, wait=Duration(seconds=50))
    waiting = asyncio.ensure_future(here.agents.Poll(request, metadata=holder))
    submit = pb.SubmitRequest(request_id="lease", message=WISH)
    await here.runs.Submit(submit, metadata=wallet.of(CredentialRole.OPERATOR).metadata)
    lease: agent.Lease = (await waiting).leases[0]
    return lease


def spoiled(lease: agent.Lease) -> Iterator[tuple[str, agent.LeaseKey]]:
    """The key of a lease with one thing wrong."""
    right, secret = lease.assignment.id, lease.secret
    secrets = {
        "no secret": "",
        "a secret of nobody": f"lease_{'A' * 43}",
        "a secret with its last letter gone": secret[:-1],
        "a secret with a letter more": f"{secret}A",
        "a secret in capitals": secret.upper(),
        "a secret turned round": secret[::-1],
        "a secret with a space": f"{secret} ",
        "a secret with NUL": f"{secret}\0",
        "a secret in other letters": secret.replace("e", "\u0435"),
        "the digest's length": "0" * 64,
        "the longest secret": "x" * LONGEST_SECRET,
        "a longer one": "x" * (LONGEST_SECRET + 1),
    }
    for what, given in secrets.items():
        yield what, agent.LeaseKey(assignment_id=right, epoch=lease.epoch, secret=given)
    for epoch in (0, -1, lease.epoch + 1, 2**63 - 1):
        yield f"epoch {epoch}", agent.LeaseKey(assignment_id=right, epoch=epoch, secret=secret)
    for name in (f"{right}0", right.upper(), f" {right}", "\0", ""):
        yield f"assignment {name!r}", agent.LeaseKey(assignment_id=name, epoch=lease.epoch, secret=secret)


async def _use(here: Plane, lease: agent.Lease, key: agent.LeaseKey, shown: Metadata) -> list[str]:
    """Where a key is good for something, or is refused in a way that is not written down."""
    completion = result_for(lease, MockOutcome.SUCCESS)
    assert isinstance(completion, agent.Completion)
    completion.lease.CopyFrom(key)
    named: dict[str, Any] = {"agent_id": AGENT_ID}
    beat = agent.HeartbeatRequest(request_id=here.request_id(), leases=[key], **named)
    complete = agent.CompleteRequest(request_id=here.request_id(), completions=[completion], **named)
    fail = agent.FailRequest(request_id=here.request_id(), failures=[agent.Failure(lease=key, error="x")], **named)
    calls = ((here.agents.Heartbeat, beat), (here.agents.Complete, complete), (here.agents.Fail, fail))
    said = [await _said(method, request, shown) for method, request in calls]
    return [f"{type(request).__name__} {one}" for (_, request), one in zip(calls, said, strict=True) if one]


async def _said(method: Any, request: Any, shown: Metadata) -> str:
    """Nothing where the lease is lost to the caller, or the request is refused as invalid."""
    try:
        answer = await method(request, metadata=shown)
    except grpc.aio.AioRpcError as error:
        return "" if error.code() is grpc.StatusCode.INVALID_ARGUMENT else f"{error.code()} {error.details()}"
    if isinstance(answer, agent.HeartbeatResponse):
        return "" if answer.lost_assignment_ids else "keeps the lease"
    lost = (common.ERROR_REASON_LEASE_LOST, common.ERROR_REASON_PERMISSION_DENIED, common.ERROR_REASON_NOT_FOUND)
    return "" if answer.outcomes[0].reason in lost else f"{answer.outcomes[0]}"
