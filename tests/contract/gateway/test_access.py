"""Access over HTTP: the same tokens, roles and projects as over gRPC; the gateway's own identity helps nobody."""

import asyncio
import json
import ssl
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pointsman.services.chassis.core.config import ClientSettings, PeerSettings, ServerSettings
from pointsman.services.chassis.rpc.client import open_channel
from pointsman.services.chassis.runtime.service import start
from pointsman.services.gateway.__main__ import GatewayServer
from pointsman.services.gateway.config import GatewaySettings
from pointsman.services.orchestrator.config import OrchestratorSettings
from tests.contract.gateway.gateways import ORCHESTRATOR, Web, gateway
from tests.helpers.certificates import Authority
from tests.scenarios.planes import NOBODY, WISH, builder, clients


def bearer(authority: Authority, *roles: str, project: str = "local") -> dict[str, str]:
    """The header of somebody with these roles."""
    return {"authorization": f"Bearer {authority.token({'sub': 'ann', 'roles': list(roles), 'projects': [project]})}"}


async def test_a_token_opens_what_its_roles_and_projects_cover(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    async with gateway(tmp_path / "data", NOBODY, token_keys=authority.public_key) as web:
        listing, submit = f"{ORCHESTRATOR}/ListRuns", f"{ORCHESTRATOR}/Submit"
        nobody = await web.get(listing)
        assert (nobody.status, nobody.reason, nobody.headers["www-authenticate"]) == (401, "UNAUTHENTICATED", "Bearer")
        assert (await web.get(listing, authorization="Bearer nonsense")).status == 401
        assert (await web.get(listing, authorization="Basic YTpi")).status == 401
        assert (await web.get(listing, authorization="Bearer " + "x" * 5000)).status == 401
        viewer = bearer(authority, "viewer")
        assert (await web.get(listing, **viewer)).status == 200
        body = {"request_id": "r", "message": WISH}
        refused = await web.post(submit, body, **viewer)
        assert (refused.status, refused.json["error"]["metadata"]["role"]) == (403, "operator")
        assert (await web.post(submit, body, **bearer(authority, "operator"))).status == 200
        foreign = await web.get(listing, **viewer, **{"pointsman-project": "other"})
        assert (foreign.status, foreign.reason) == (403, "PERMISSION_DENIED")
        assert (await web.get(f"{ORCHESTRATOR}/WatchChanges")).status == 401
        assert (await web.get("/api/v1/agents/debug/mock-policy")).status == 401
        assert (await web.get("/")).status == 200


async def test_the_gateway_speaks_tls(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    (tmp_path / "data").mkdir()
    pair = authority.issue("gateway")
    server = GatewayServer(GatewaySettings(port=0, tls_certificate=pair.certificate, tls_key=pair.key))
    build = builder(tmp_path / "data", NOBODY, OrchestratorSettings())
    running = await start(
        lambda address: [*build(address), server.service(PeerSettings().all_at(address))], ServerSettings(port=0)
    )
    try:
        context = ssl.create_default_context(cafile=str(authority.certificate))
        port = server.address.rpartition(":")[2]
        answer = await asyncio.to_thread(
            urllib.request.urlopen, f"https://127.0.0.1:{port}/healthz", None, 20, context=context
        )
        assert (server.address.startswith("https://"), answer.read()) == (True, b"ok\n")
        answer.close()
    finally:
        await running.stop()


@asynccontextmanager
async def behind_certificates(folder: Path, authority: Authority, **settings: Any) -> AsyncIterator[Web]:
    """Services that take client certificates only, and a gateway in front of them that has one."""
    server, peer = authority.issue("server"), authority.issue("gateway")
    access = folder / "access.json"
    names = ({"name": "own", "roles": ["service"]}, {"name": "gateway", "roles": ["operator"]})
    access.write_text(json.dumps({"principals": [{**name, "projects": ["*"]} for name in names]}))
    guarded = ServerSettings(
        port=0, drain_seconds=0.2, tls_certificate=server.certificate, tls_key=server.key,
        client_authority=authority.certificate, access=access,
    )  # fmt: skip
    front = GatewayServer(
        GatewaySettings(port=0, **({"peer_certificate": peer.certificate, "peer_key": peer.key} | settings))
    )
    (folder / "data").mkdir()
    build = builder(folder / "data", NOBODY, OrchestratorSettings())
    running = await start(lambda address: [*build(address), front.service(PeerSettings().all_at(address))], guarded)
    channel = open_channel(running.address)
    try:
        yield Web(int(front.address.rpartition(":")[2]), clients(channel))
    finally:
        await channel.close()
        await running.stop()


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    """An authority; the process shows a certificate of it that is good for services, and not for the gateway."""
    authority = Authority(tmp_path)
    own = authority.issue("own")
    for name, path in (("AUTHORITY", authority.certificate), ("CERTIFICATE", own.certificate), ("KEY", own.key)):
        monkeypatch.setenv(f"POINTSMAN_CLIENT_{name}", str(path))
    return authority


async def test_services_that_take_certificates_only_are_reached_with_one_of_the_gateways_own(
    tmp_path: Path, authority: Authority
) -> None:
    async with behind_certificates(tmp_path, authority) as web:
        made = await web.post(f"{ORCHESTRATOR}/Submit", {"request_id": "r", "message": WISH})
        run_id = made.json["run"]["id"]
        first = (await web.events(f"{ORCHESTRATOR}/WatchRun?run_id={run_id}", 1))[0]
        assert json.loads(first["data"])["transition"]["actor"] == "gateway"
        polled = await web.post("/api/v1/orchestrator.AgentService/Poll", {"request_id": "p", "agent_id": "a"})
        assert (polled.status, polled.json["error"]["metadata"]["role"]) == (403, "agent")


async def test_a_gateway_that_vouches_holds_its_callers_to_their_tokens(tmp_path: Path, authority: Authority) -> None:
    async with behind_certificates(tmp_path, authority, token_keys=authority.public_key) as web:
        listing, submit = f"{ORCHESTRATOR}/ListRuns", f"{ORCHESTRATOR}/Submit"
        body = {"request_id": "r", "message": WISH}
        assert (await web.get(listing)).status == 401
        assert (await web.get(listing, **bearer(authority, "viewer"))).status == 200
        assert (await web.post(submit, body, **bearer(authority, "viewer"))).status == 403
        assert (await web.post(submit, body, **bearer(authority, "operator"))).status == 200


async def test_without_a_certificate_such_services_stay_out_of_reach(tmp_path: Path, authority: Authority) -> None:
    async with behind_certificates(tmp_path, authority, peer_certificate=None, peer_key=None) as web:
        answer = await web.get(f"{ORCHESTRATOR}/ListRuns")
        assert (answer.status, answer.reason) == (503, "UNAVAILABLE")


def test_half_of_a_peer_certificate_is_refused(tmp_path: Path) -> None:
    pem = tmp_path / "any.pem"
    with pytest.raises(SystemExit, match="belong together"):
        GatewaySettings(peer_certificate=pem).shown_to_peers(ClientSettings(authority=pem))
    with pytest.raises(SystemExit, match="POINTSMAN_CLIENT_AUTHORITY"):
        GatewaySettings(peer_certificate=pem, peer_key=pem).shown_to_peers(ClientSettings())


def test_beyond_loopback_all_of_it_is_needed(tmp_path: Path) -> None:
    pem = tmp_path / "any.pem"
    for tokens_only in (GatewaySettings(host="0.0.0.0"), GatewaySettings(host="0.0.0.0", token_keys=pem)):
        with pytest.raises(SystemExit, match="needs TLS"):
            tokens_only.check_exposure()
    with pytest.raises(SystemExit, match="_TOKEN_KEYS"):
        GatewaySettings(host="0.0.0.0", tls_certificate=pem, tls_key=pem).check_exposure()
    GatewaySettings(host="0.0.0.0", tls_certificate=pem, tls_key=pem, token_keys=pem).check_exposure()
