"""Access over HTTP: the same tokens, roles and projects as over gRPC; the gateway's own identity helps nobody."""

import asyncio
import ssl
import urllib.request
from pathlib import Path

import pytest

from pointsman.services.chassis.config import PeerSettings, ServerSettings
from pointsman.services.chassis.service import start
from pointsman.services.gateway.__main__ import GatewayServer
from pointsman.services.gateway.config import GatewaySettings
from pointsman.services.orchestrator.config import OrchestratorSettings
from tests.contract.gateways import ORCHESTRATOR, gateway
from tests.helpers.certificates import Authority
from tests.scenarios.planes import NOBODY, WISH, builder


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


def test_beyond_loopback_all_of_it_is_needed(tmp_path: Path) -> None:
    pem = tmp_path / "any.pem"
    for tokens_only in (GatewaySettings(host="0.0.0.0"), GatewaySettings(host="0.0.0.0", token_keys=pem)):
        with pytest.raises(SystemExit, match="needs TLS"):
            tokens_only.check_exposure()
    with pytest.raises(SystemExit, match="_TOKEN_KEYS"):
        GatewaySettings(host="0.0.0.0", tls_certificate=pem, tls_key=pem).check_exposure()
    GatewaySettings(host="0.0.0.0", tls_certificate=pem, tls_key=pem, token_keys=pem).check_exposure()
