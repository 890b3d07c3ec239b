"""A call between services of one process says and refuses what the same call over the wire does."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from pointsman.credentials.folder import CredentialFolder, CredentialRole
from pointsman.credentials.tokens import Identity
from pointsman.services.chassis.core.config import ServerSettings
from pointsman.services.chassis.core.errors import Reason, Refusal, Violation
from pointsman.services.chassis.rpc.client import Peer, open_channel, open_peer
from pointsman.services.chassis.rpc.in_process import InProcessChannel
from pointsman.services.chassis.rpc.status import as_received, status_of
from pointsman.services.chassis.runtime.service import Running, start
from pointsman.services.chassis.storage.database import Database
from tests.helpers.counter import build, counter_pb2, counter_pb2_grpc
from tests.helpers.counter_server import an_add, serving

SECRET = "sk-ant-" + "a1" * 20
Call = Callable[[Peer[Any]], Awaitable[Any]]


def peer_on(channel: Any) -> Peer[Any]:
    return Peer(channel, counter_pb2_grpc.CounterServiceStub, "test")


def add(project: str = "local", **fields: Any) -> Call:
    return lambda peer: peer.call(peer.stub.Add, an_add(**fields), project, "")


async def what_it_says(peer: Peer[Any], call: Call) -> object:
    """The answer, or everything that a program can read of the refusal."""
    try:
        return await call(peer)
    except Refusal as refusal:
        fields = (refusal.metadata, refusal.violations, refusal.retry_after_seconds)
        return refusal.reason, "" if refusal.reason is Reason.INTERNAL else refusal.message, *fields


CALLS: dict[str, Call] = {
    "an answer": add(),
    "the answer to the same request": add(),
    "a bad field": add(amount=-1, request_id=""),
    "a NUL character": add(counter_id="a\0b"),
    "a bad project": add(project="no/such project"),
    "a reserved request id": add(request_id="engine:1"),
    "an RPC that is not offered": lambda peer: peer.call(peer.stub.Missing, an_add(), "local", ""),
}


@pytest.mark.parametrize("name", CALLS)
async def test_an_answer_or_a_refusal_is_the_same_as_over_the_wire(name: str, tmp_path: Path) -> None:
    async with serving(f"sqlite:///{tmp_path}/counter.db") as served, open_channel(served.running.address) as wire:
        here = await what_it_says(peer_on(InProcessChannel(served.running.local_address)), CALLS[name])
        there = await what_it_says(peer_on(wire), CALLS[name])
    assert here == there


def test_texts_of_a_refusal_are_masked_and_truncated_as_on_the_wire() -> None:
    violations = (Violation("field", f"not {SECRET}"),) * 60
    refusal = Refusal(Reason.NOT_FOUND, f"no {SECRET} " + "x" * 2000, metadata={"id": SECRET}, violations=violations)
    received = as_received(refusal)
    shown = f"{received.message} {received.metadata} {received.violations}"
    assert SECRET not in shown
    assert status_of(received).message == status_of(refusal).message == received.message


async def test_a_bug_of_the_servicer_is_an_internal_error_without_its_text(tmp_path: Path) -> None:
    async with serving(f"sqlite:///{tmp_path}/counter.db") as served:
        peer = peer_on(InProcessChannel(served.running.local_address))
        with pytest.raises(Refusal) as caught:
            await peer.call(peer.stub.Fail, an_add(), "local", "")
    assert caught.value.reason is Reason.INTERNAL
    assert "secret-dsn" not in caught.value.message


async def test_a_stopped_server_is_out_of_reach(tmp_path: Path) -> None:
    async with serving(f"sqlite:///{tmp_path}/counter.db") as served:
        peer = peer_on(InProcessChannel(served.running.local_address))
        await peer.call(peer.stub.Add, an_add(), "local", "")
    with pytest.raises(Refusal) as caught:
        await peer.call(peer.stub.Add, an_add(), "local", "")
    assert caught.value.reason is Reason.UNAVAILABLE


async def test_a_call_past_its_deadline_is_refused(tmp_path: Path) -> None:
    async with serving(f"sqlite:///{tmp_path}/counter.db") as served:
        method = counter_pb2_grpc.CounterServiceStub(InProcessChannel(served.running.local_address)).Wait
        with pytest.raises(Refusal) as caught:
            await method(counter_pb2.AddRequest(request_id="r", counter_id="c", amount=1000), timeout=0.01)
        assert caught.value.reason is Reason.DEADLINE_EXCEEDED


async def guarded(data: Path) -> Running:
    settings = ServerSettings(port=0, insecure_loopback=False)
    return await start(lambda _: [build(Database(f"sqlite:///{data}/counter.db", "counter"))], settings, data)


async def test_a_credential_is_asked_for_inside_the_process_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POINTSMAN_CLIENT_INSECURE_LOOPBACK", "false")
    running = await guarded(tmp_path)
    try:
        said: dict[CredentialRole | None, Any] = {}
        for role in (None, CredentialRole.CODER, CredentialRole.SERVICE):
            folder = CredentialFolder.of(tmp_path)
            channel = (
                open_peer(running.local_address, Identity(folder, role))
                if role
                else InProcessChannel(running.local_address)
            )
            said[role] = await what_it_says(peer_on(channel), add(request_id=f"by {role}"))
    finally:
        await running.stop()
    assert said[None][0] is Reason.UNAUTHENTICATED
    assert said[CredentialRole.CODER][0] is Reason.PERMISSION_DENIED
