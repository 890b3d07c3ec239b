"""Credentials on one machine: nobody is anybody without the file of a role, over the socket and over TCP."""

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import grpc
import jwt
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.credentials.folder import CredentialRole
from pointsman.credentials.tokens import Identity, mint
from pointsman.services.chassis.core.caller import Role
from pointsman.services.chassis.core.errors import Reason
from pointsman.services.chassis.rpc.loopback import POWERS
from pointsman.services.chassis.rpc.status import refusal_from
from tests.contract.access.loopbacks import Loopback, loopback
from tests.contract.access.test_matrix import ENDLESS_CALLS, MAY, OWN, SHORT_CALLS, TABLE, outcome, short
from tests.contract.access.test_stream_rights import read_on
from tests.contract.chassis.test_access import METHODS
from tests.helpers.eventually import eventually
from tests.helpers.limits import scaled
from tests.scenarios.planes import MOCKED, clients

RUNS = "/pointsman.api.orchestrator.v1.OrchestratorService/ListRuns"


async def reason_of(channel: grpc.aio.Channel, token: str = "") -> str:
    """Why a call is refused with a token, or OK."""
    metadata = (("authorization", f"Bearer {token}"),) if token else ()
    method: Any = channel.unary_unary(RUNS)
    try:
        await method(b"", metadata=metadata, timeout=scaled(20))
    except grpc.aio.AioRpcError as error:
        return str(refusal_from(error).reason)
    return "OK"


async def test_without_a_token_every_rpc_is_refused_and_health_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with loopback(tmp_path, monkeypatch) as there:
        for channel in (await there.bare(), await there.bare(tcp=True)):
            found = await asyncio.gather(*(outcome(channel, name, method, b"", OWN) for name, method in METHODS))
            assert {reason for reason, _ in found} == {"UNAUTHENTICATED"}
            health = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
            assert health.status == health_pb2.HealthCheckResponse.SERVING


async def test_a_client_without_the_pinned_certificate_is_refused_by_tls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with loopback(tmp_path, monkeypatch) as there:
        token = mint(Identity(there.folder, CredentialRole.OPERATOR))
        plain = await there.channels.enter_async_context(grpc.aio.insecure_channel(there.running.address))
        public = await there.channels.enter_async_context(
            grpc.aio.secure_channel(there.running.address, grpc.ssl_channel_credentials())
        )
        assert await reason_of(plain, token) == "UNAVAILABLE"
        assert await reason_of(public, token) == "UNAVAILABLE"
        assert await reason_of(await there.channel(tcp=True)) == "OK"


async def test_each_role_reaches_what_its_powers_say_in_every_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong: list[tuple[str, str, str]] = []
    async with loopback(tmp_path, monkeypatch) as there:

        async def check(channel: grpc.aio.Channel, role: CredentialRole, name: str, method: Any) -> None:
            reason, _ = await outcome(channel, name, method, b"", OWN)
            allowed = bool(MAY[TABLE[short(name)]] & {str(one) for one in POWERS[role].roles})
            if (reason == "PERMISSION_DENIED") is allowed or reason == "UNAUTHENTICATED":
                wrong.append((short(name), role, reason))

        channels = {role: await there.channel(role) for role in CredentialRole}
        for role, channel in channels.items():
            await asyncio.gather(*(check(channel, role, name, method) for name, method in SHORT_CALLS))
        waiting = (check(channel, role, *one) for role, channel in channels.items() for one in ENDLESS_CALLS)
        await asyncio.gather(*waiting)
    assert wrong == []


def test_who_writes_may_not_judge_and_only_a_verifier_verifies() -> None:
    capabilities = {role: POWERS[role].capabilities for role in CredentialRole}
    agents = {role for role in CredentialRole if POWERS[role].roles == {Role.AGENT}}
    assert [role for role in agents if "verify" in capabilities[role]] == [CredentialRole.VERIFIER]
    assert [role for role in agents if "review" in capabilities[role]] == [CredentialRole.REVIEWER]
    assert [role for role in agents if "code" in capabilities[role]] == [CredentialRole.CODER]
    assert not capabilities[CredentialRole.OPERATOR] | capabilities[CredentialRole.GATEWAY]


def forged(there: Loopback, signed_by: str, kid: str, **claims: Any) -> str:
    """A token that somebody makes who has the file of one role only."""
    secret = there.folder.secret_file(CredentialRole(signed_by)).read_text().strip()
    given = {"sub": kid, "aud": "pointsman", "exp": 4_102_444_800, **claims}
    return jwt.encode(given, secret, algorithm="HS256", headers={"kid": kid})


async def test_the_secret_of_a_role_speaks_for_that_role_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with loopback(tmp_path, monkeypatch) as there:
        channel = await there.bare()
        none = base64.urlsafe_b64encode(json.dumps({"alg": "none", "kid": "operator"}).encode()).rstrip(b"=").decode()
        claims = forged(there, "coder", "operator").split(".")[1]
        attempts = {
            "another role's name": forged(there, "coder", "verifier"),
            "another role as subject": forged(there, "coder", "coder", sub="verifier"),
            "an agent of another role": forged(there, "coder", "coder", sub="verifier/box-1"),
            "a role that is not there": forged(there, "coder", "root"),
            "a path as agent": forged(there, "coder", "coder", sub="coder/a/b"),
            "an empty agent": forged(there, "coder", "coder", sub="coder/"),
            "expired": forged(there, "coder", "coder", exp=1_000_000_000),
            "for others": forged(there, "coder", "coder", aud="somebody"),
            "unsigned": f"{none}.{claims}.",
            "garbage": "a.b.c",
        }
        assert {name: await reason_of(channel, token) for name, token in attempts.items()} == dict.fromkeys(
            attempts, "UNAUTHENTICATED"
        )
        assert await reason_of(channel, forged(there, "coder", "coder", sub="coder/box-1")) == "OK"


async def test_what_a_token_claims_beyond_its_subject_counts_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with loopback(tmp_path, monkeypatch) as there:
        boasting = forged(there, "coder", "coder", roles=["admin"], capabilities=["verify"], projects=["*"])
        submit: Any = (await there.bare()).unary_unary("/pointsman.api.orchestrator.v1.OrchestratorService/Submit")
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await submit(b"", metadata=(("authorization", f"Bearer {boasting}"),))
        assert refusal_from(refused.value).reason is Reason.PERMISSION_DENIED


async def test_a_new_secret_ends_the_tokens_and_streams_of_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with loopback(tmp_path, monkeypatch) as there:
        here, bare = await there.acting_as(), await there.bare()
        old = mint(Identity(there.folder, CredentialRole.OPERATOR))
        other = mint(Identity(there.folder, CredentialRole.REVIEWER))
        await here.submit()
        stream = clients(bare).runs.WatchChanges(
            pb.WatchChangesRequest(), metadata=(("authorization", f"Bearer {old}"),)
        )
        assert await stream.read() is not grpc.aio.EOF
        there.folder.rotate(CredentialRole.OPERATOR)
        assert await reason_of(bare, old) == "UNAUTHENTICATED"
        assert await read_on(stream) is Reason.UNAUTHENTICATED
        assert await reason_of(bare, other) == "OK"
        assert (await here.submit()).id, "a client reads the new secret by itself"


async def test_services_and_their_mock_agents_have_principals_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with loopback(tmp_path, monkeypatch, MOCKED) as there:
        here = await there.acting_as()
        run = await here.submit()

        async def actors() -> set[str]:
            request = pb.ListTransitionsRequest(run_id=run.id)
            return {one.actor for one in (await here.runs.ListTransitions(request)).transitions}

        async def worked() -> bool:
            return "service/finger-executor" in await actors()

        await eventually(worked, 60)
        assert "operator" in await actors()
        assert "local" not in await actors()
