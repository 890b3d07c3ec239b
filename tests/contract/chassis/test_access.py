"""Nobody in without credentials, everybody held to role and project, rotation without a restart."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import ServiceDescriptor

from pointsman.api.orchestrator.v1 import agent_pb2, artifact_pb2, landing_pb2, mock_pb2, orchestrator_pb2, schedule_pb2
from pointsman.api.pipeline.v1 import pipeline_pb2
from pointsman.api.router.v1 import policy_pb2, router_pb2
from pointsman.api.workflow.v1 import workflow_pb2
from pointsman.services.chassis.core.caller import Caller
from pointsman.services.chassis.core.config import ClientSettings, ServerSettings
from pointsman.services.chassis.core.errors import Reason
from pointsman.services.chassis.rpc.authentication import MAY_CALL, method_access
from pointsman.services.chassis.rpc.client import channel_credentials
from pointsman.services.chassis.rpc.server import Server
from pointsman.services.chassis.rpc.status import refusal_from
from tests.helpers.certificates import Authority, Pair, serial_of, serial_shown
from tests.helpers.limits import scaled

MODULES: tuple[Any, ...] = (
    agent_pb2, artifact_pb2, landing_pb2, mock_pb2, orchestrator_pb2, pipeline_pb2, router_pb2, schedule_pb2,
    workflow_pb2,
)  # fmt: skip
SERVICES: list[ServiceDescriptor] = [
    service for module in MODULES for service in module.DESCRIPTOR.services_by_name.values()
]
METHODS = [(f"/{service.full_name}/{method.name}", method) for service in SERVICES for method in service.methods]
PING = "/pointsman.api.router.v1.RouterService/GetPolicy"


class Pings:
    """Answers GetPolicy with nothing."""

    def __init__(self) -> None:
        self.capabilities: list[frozenset[str]] = []

    async def GetPolicy(self, request: Any, caller: Caller) -> Any:
        self.capabilities.append(caller.capabilities)
        return policy_pb2.GetPolicyResponse()


@asynccontextmanager
async def serving(settings: ServerSettings, pings: Pings | None = None) -> AsyncIterator[str]:
    server = Server(settings)
    server.add(router_pb2.DESCRIPTOR.services_by_name["RouterService"], pings or Pings())
    port = server.listen()
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.drain()


async def ping(address: str, client: ClientSettings, project: str = "shop", token: str = "") -> Reason | None:
    """Why the call was refused; nothing when it came through to the servicer."""
    credentials = channel_credentials(client) if client.authority else None
    channel = grpc.aio.secure_channel(address, credentials) if credentials else grpc.aio.insecure_channel(address)
    metadata = [("pointsman-project", project)]
    if token:
        metadata.append(("authorization", f"Bearer {token}"))
    async with channel:
        try:
            method: Any = channel.unary_unary(PING)
            await method(b"", metadata=metadata, timeout=scaled(5))
        except grpc.aio.AioRpcError as error:
            return refusal_from(error).reason
    return None


def access_file(folder: Path, *principals: dict[str, Any]) -> Path:
    path = folder / "access.json"
    path.write_text(json.dumps({"principals": principals}))
    return path


def with_certificates(authority: Authority, server: Pair, access: Path) -> ServerSettings:
    return ServerSettings(
        port=0,
        tls_certificate=server.certificate,
        tls_key=server.key,
        client_authority=authority.certificate,
        access=access,
    )


def as_client(authority: Authority, pair: Pair | None = None) -> ClientSettings:
    if pair is None:
        return ClientSettings(authority=authority.certificate)
    return ClientSettings(authority=authority.certificate, certificate=pair.certificate, key=pair.key)


def test_every_rpc_says_which_role_it_asks_for() -> None:
    assert len(METHODS) > 80
    assert {name for name, method in METHODS if method_access(name, method).role not in MAY_CALL} == set()


async def test_a_client_certificate_names_the_principal(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    grants = access_file(
        tmp_path,
        {"name": "spiffe://pointsman/viewer", "roles": ["viewer"], "projects": ["shop"]},
        {"name": "ops", "roles": ["admin"], "projects": ["*"]},
    )
    viewer, ops, stranger = (
        authority.issue("v", "spiffe://pointsman/viewer"),
        authority.issue("ops"),
        authority.issue("x"),
    )
    async with serving(with_certificates(authority, authority.issue("server"), grants)) as address:
        assert await ping(address, as_client(authority, viewer)) is None
        assert await ping(address, as_client(authority, viewer), project="other") is Reason.PERMISSION_DENIED
        assert await ping(address, as_client(authority, ops), project="other") is None
        assert await ping(address, as_client(authority, stranger)) is Reason.UNAUTHENTICATED
        assert await ping(address, as_client(authority)) is Reason.UNAVAILABLE
        assert await ping(address, ClientSettings()) is Reason.UNAVAILABLE


async def test_capabilities_come_from_the_access_file_or_the_token_and_are_none_where_it_has_none(
    tmp_path: Path,
) -> None:
    authority, pings = Authority(tmp_path), Pings()
    everything = {"roles": ["agent"], "projects": ["*"]}
    grants = access_file(
        tmp_path,
        {"name": "coder", **everything, "capabilities": ["code"]},
        {"name": "plain", **everything},
        {"name": "any", **everything, "capabilities": ["*"]},
    )
    settings = with_certificates(authority, authority.issue("server"), grants)
    async with serving(settings, pings) as address:
        for name in ("coder", "plain", "any"):
            assert await ping(address, as_client(authority, authority.issue(name))) is None
    by_token = {"client_authority": None, "access": None, "token_keys": authority.public_key}
    async with serving(settings.replace(**by_token), pings) as address:
        for claims in ({"capabilities": ["review", "debate"]}, {}, {"capabilities": "code"}):
            refused = await ping(
                address, as_client(authority), token=authority.token({"sub": "t", **everything, **claims})
            )
            assert refused is (Reason.UNAUTHENTICATED if claims == {"capabilities": "code"} else None)
    assert [sorted(each) for each in pings.capabilities] == [["code"], [], ["*"], ["debate", "review"], []]


def test_a_missing_capability_is_not_a_wild_card() -> None:
    none, code = Caller("a", "p"), Caller("a", "p", capabilities=frozenset({"code"}))
    every = Caller("a", "p", capabilities=frozenset({"*"}))
    assert [caller.may("code") for caller in (none, code, every)] == [False, True, True]
    assert [caller.may("verify") for caller in (none, code, every)] == [False, False, True]


async def test_a_common_name_counts_only_without_a_uri_and_never_as_one(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    grants = access_file(
        tmp_path,
        {"name": "spiffe://pointsman/admin", "roles": ["admin"], "projects": ["*"]},
        {"name": "ops", "roles": ["admin"], "projects": ["*"]},
    )
    async with serving(with_certificates(authority, authority.issue("server"), grants)) as address:
        for number, (uri, common_name, reason) in enumerate(
            (
                ("", "spiffe://pointsman/admin", Reason.UNAUTHENTICATED),
                ("spiffe://pointsman/agent", "spiffe://pointsman/admin", Reason.UNAUTHENTICATED),
                ("spiffe://pointsman/agent", "ops", Reason.UNAUTHENTICATED),
                ("https://pointsman/agent", "ops", Reason.UNAUTHENTICATED),
                ("spiffe://pointsman/admin", "somebody", None),
                ("", "ops", None),
            )
        ):
            pair = authority.issue(f"caller-{number}", uri, common_name)
            assert await ping(address, as_client(authority, pair)) is reason, (uri, common_name)


async def test_a_certificate_of_another_authority_does_not_get_in(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    authority, other = Authority(tmp_path), Authority(tmp_path / "other")
    grants = access_file(tmp_path, {"name": "ops", "roles": ["admin"], "projects": ["*"]})
    forged = other.issue("ops")
    async with serving(with_certificates(authority, authority.issue("server"), grants)) as address:
        assert await ping(address, as_client(authority, forged)) is Reason.UNAVAILABLE


async def test_a_signed_token_names_the_principal_and_a_bad_one_nobody(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair = authority.issue("server")
    settings = ServerSettings(
        port=0, tls_certificate=pair.certificate, tls_key=pair.key, token_keys=authority.public_key
    )
    good: dict[str, Any] = {"sub": "ci", "roles": ["viewer"], "projects": ["shop"]}
    bad: list[dict[str, Any]] = [
        {**good, "exp": 1},
        {**good, "aud": "somebody else"},
        {**good, "roles": ["emperor"]},
        {"roles": ["viewer"], "projects": ["shop"]},
    ]
    async with serving(settings) as address:
        client = as_client(authority)
        assert await ping(address, client, token=authority.token(good)) is None
        assert await ping(address, client, project="other", token=authority.token(good)) is Reason.PERMISSION_DENIED
        for claims in bad:
            assert await ping(address, client, token=authority.token(claims)) is Reason.UNAUTHENTICATED
        assert await ping(address, client, token="none.at.all") is Reason.UNAUTHENTICATED
        assert await ping(address, client) is Reason.UNAUTHENTICATED


async def test_certificates_and_grants_are_taken_up_without_a_restart(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    server, client = authority.issue("server"), authority.issue("ops")
    grants = access_file(tmp_path, {"name": "nobody", "roles": ["viewer"], "projects": ["*"]})
    async with serving(with_certificates(authority, server, grants)) as address:
        assert await ping(address, as_client(authority, client)) is Reason.UNAUTHENTICATED
        before = await asyncio.to_thread(serial_shown, address, authority.certificate, client)
        access_file(tmp_path, {"name": "ops", "roles": ["viewer"], "projects": ["*"]})
        renewed = authority.issue("server")
        assert await ping(address, as_client(authority, client)) is None
        shown = await asyncio.to_thread(serial_shown, address, authority.certificate, client)
        assert shown == serial_of(renewed.certificate) != before


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.1", "::"])
def test_beyond_loopback_only_with_tls_and_authentication(host: str, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair = authority.issue("server")
    with pytest.raises(SystemExit, match="TLS"):
        ServerSettings(host=host).check_exposure()
    with pytest.raises(SystemExit, match="authentication"):
        ServerSettings(host=host, tls_certificate=pair.certificate, tls_key=pair.key).check_exposure()
    with pytest.raises(SystemExit, match="TLS"):
        ServerSettings(host=host, token_keys=authority.public_key).check_exposure()
    complete = ServerSettings(
        host=host, tls_certificate=pair.certificate, tls_key=pair.key, token_keys=authority.public_key
    )
    complete.check_exposure()
