"""Webhooks: a signed delivery wakes the integrators, once; nothing else does, and nothing in it is believed."""

import asyncio
import hashlib
import hmac
from pathlib import Path

import pytest

from pointsman.api.orchestrator.v1 import landing_pb2 as pb
from pointsman.api.orchestrator.v1.landing_pb2_grpc import LandingServiceStub
from pointsman.services.gateway.webhooks import MAX_BODY_BYTES, read_secret
from tests.contract.access.loopbacks import Loopback, loopback
from tests.contract.gateway.gateways import Web
from tests.scenarios.planes import clients

SECRET = b"a secret of sixteen bytes and more"
BODY = b'{"action": "completed"}'


def signed(body: bytes = BODY, delivery: str = "d1", secret: bytes = SECRET) -> dict[str, str]:
    digest = hmac.new(secret, body, hashlib.sha256).hexdigest()
    return {"x-hub-signature-256": f"sha256={digest}", "x-github-delivery": delivery, "x-github-event": "check_run"}


async def woken(there: Loopback, *, seconds: float) -> bool:
    """Whether an integrator is woken before the time is over."""
    stub = LandingServiceStub(await there.channel("integrator/one"))
    request = pb.WaitForForgeRequest(agent_id="one")
    request.wait.FromMilliseconds(round(seconds * 1000))
    return bool((await stub.WaitForForge(request)).woken)


async def test_a_signed_delivery_wakes_the_integrator_once_and_nothing_else_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "webhook.secret"
    file.write_bytes(SECRET + b"\n")
    file.chmod(0o600)
    monkeypatch.setenv("POINTSMAN_GATEWAY_WEBHOOK_SECRET", str(file))
    async with loopback(tmp_path / "data", monkeypatch) as there:
        forge = Web(int(there.gateway.address.rpartition(":")[2]), clients(await there.channel()))

        async def send(name: str, headers: dict[str, str], body: bytes = BODY) -> int:
            return (await forge.send("POST", f"/webhooks/{name}", body, headers)).status

        refused = (
            await send("github", {}),
            await send("github", signed(), b'{"action": "created"}'),
            await send("github", signed(secret=b"another secret of sixteen bytes")),
            await send("github", {**signed(), "x-hub-signature-256": "sha256=é"}),
            await send("gitlab", {"x-gitlab-token": "x"}),
            await send("gitlab", {}),
            await send("bitbucket", signed()),
            await send("github", signed(), b" " * (MAX_BODY_BYTES + 1)),
        )
        assert refused == (401, 401, 401, 401, 401, 401, 404, 413)
        assert not await woken(there, seconds=0.05)
        waiting = asyncio.create_task(woken(there, seconds=50.0))
        numbers = iter(range(1000))
        while not waiting.done():  # a delivery before the wait began wakes nobody, which polling makes good
            assert await send("github", signed(delivery=f"n{next(numbers)}")) == 202
        assert await waiting
        assert await send("github", signed(delivery="n0")) == 200, "taken before"
        token = {"x-gitlab-token": SECRET.decode(), "x-gitlab-event-uuid": "n0"}
        assert [await send("gitlab", token), await send("gitlab", token)] == [202, 200]
        file.write_bytes(b"a new secret of sixteen bytes")
        assert await send("github", signed(delivery="late")) == 401, "a changed secret counts at once"


@pytest.mark.parametrize(
    ("content", "mode", "problem"), [(SECRET, 0o640, "read by others"), (b"short", 0o600, "less than")]
)
def test_a_secret_that_others_can_read_or_that_is_short_is_refused(
    content: bytes, mode: int, problem: str, tmp_path: Path
) -> None:
    file = tmp_path / "secret"
    file.write_bytes(content)
    file.chmod(mode)
    with pytest.raises(ValueError, match=problem):
        read_secret(file)
