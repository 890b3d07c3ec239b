"""The console opens by a one-time code: a cookie and a proof together, or a bearer token, or nothing at all."""

import asyncio
import re
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from pointsman.credentials.console_code import CODE_SECONDS, make_code
from pointsman.credentials.folder import CredentialRole
from pointsman.credentials.tokens import Identity, mint
from pointsman.services.chassis.core import clock
from pointsman.services.gateway import sessions
from tests.contract.access.loopbacks import Loopback, loopback
from tests.contract.gateway.gateways import JSON, ORCHESTRATOR, Web
from tests.helpers.eventually import eventually
from tests.helpers.limits import within
from tests.scenarios.planes import clients

LIST = f"{ORCHESTRATOR}/ListRuns"
STREAMS = "pointsman_event_streams"
Headers = dict[str, str]


async def web(there: Loopback) -> Web:
    """A client of the gateway that has nothing."""
    return Web(int(there.gateway.address.rpartition(":")[2]), clients(await there.channel()))


def code(there: Loopback) -> str:
    return make_code(there.folder.read_secret(CredentialRole.GATEWAY), there.gateway.address)


async def log_in(browser: Web, given: str) -> Headers:
    """The headers of a browser that has opened the link."""
    answer = await browser.send("GET", f"/login?code={given}")
    assert answer.status == 200, answer.body
    cookie = answer.headers["set-cookie"]
    assert {"httponly", "samesite=strict", "path=/"} <= {part.strip().lower() for part in cookie.split(";")}
    assert "domain" not in cookie.lower()
    proof = re.search(r'<meta name="proof" content="([^"]+)">', answer.body.decode())
    assert proof is not None
    return {"cookie": cookie.partition(";")[0], sessions.PROOF: proof[1]}


async def test_without_session_and_token_there_is_nothing_but_the_way_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with loopback(tmp_path, monkeypatch) as there:
        browser = await web(there)
        for view in ("/", "/runs", "/runs/run_1", "/people", "/agents", "/router"):
            page = await browser.send("GET", view)
            assert page.status == 401
            assert b"pointsman console" in page.body
        for verb, path in (("GET", LIST), ("POST", LIST), ("GET", "/api/v1/mock/policy")):
            refused = await browser.send(verb, path, b"{}" if verb == "POST" else None, JSON)
            assert refused.status in (401, 404)
        assert (await browser.send("GET", LIST)).reason == "UNAUTHENTICATED"
        assert (await browser.send("GET", "/healthz")).status == 200


async def test_a_code_opens_the_console_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with loopback(tmp_path, monkeypatch) as there:
        browser, given = await web(there), code(there)
        session = await log_in(browser, given)
        assert (await browser.send("GET", LIST, headers=session)).status == 200
        assert (await browser.send("GET", "/runs", headers=session)).status == 200
        again = await browser.send("GET", f"/login?code={given}")
        assert (again.status, "set-cookie" in again.headers) == (401, False)
        assert b"pointsman console" in again.body
        assert (await browser.send("GET", LIST, headers=session)).status == 200, "the session of the first use goes on"


async def test_a_cookie_alone_is_not_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with loopback(tmp_path, monkeypatch) as there:
        browser = await web(there)
        session, other = await log_in(browser, code(there)), await log_in(browser, code(there))
        stolen = {"cookie": session["cookie"]}
        assert (await browser.send("GET", LIST, headers=stolen)).status == 401
        mixed = {**stolen, sessions.PROOF: other[sessions.PROOF]}
        assert (await browser.send("GET", LIST, headers=mixed)).status == 401
        assert (await browser.send("GET", LIST, headers={sessions.PROOF: session[sessions.PROOF]})).status == 401


async def test_old_codes_and_codes_of_an_earlier_gateway_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with loopback(tmp_path, monkeypatch) as there:
        browser, early = await web(there), code(there)
        made_at = clock.SystemClock().now().timestamp()
        with monkeypatch.context() as later:
            later.setattr(sessions, "_now", lambda: made_at + CODE_SECONDS + 1)
            assert (await browser.send("GET", f"/login?code={early}")).status == 401
        before = sessions.Sessions(there.folder, there.gateway.address)
        with monkeypatch.context() as later:
            later.setattr(sessions, "_now", lambda: made_at + 1)
            restarted = sessions.Sessions(there.folder, there.gateway.address)
        assert restarted.exchange(early) is None, "its first gateway may have taken it"
        assert before.exchange("") is None


async def test_a_bearer_token_of_the_data_directory_is_taken_and_handed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with loopback(tmp_path, monkeypatch) as there:
        browser = await web(there)
        coder = {"authorization": f"Bearer {mint(Identity(there.folder, CredentialRole.CODER, 'box-1'))}"}
        assert (await browser.send("GET", LIST, headers=coder)).status == 200
        submit = await browser.send("POST", f"{ORCHESTRATOR}/Submit", b"{}", {**JSON, **coder})
        assert (submit.status, submit.reason) == (403, "PERMISSION_DENIED")
        assert (await browser.send("GET", LIST, headers={"authorization": "Bearer a.b.c"})).status == 401


@pytest.mark.parametrize("how", ["logout", "rotation", "time"])
async def test_an_event_stream_ends_with_its_session(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with loopback(tmp_path, monkeypatch) as there:
        browser = await web(there)
        session = await log_in(browser, code(there))
        stream = asyncio.create_task(browser.events(f"{ORCHESTRATOR}/WatchChanges", 1000, **session))

        async def is_streaming() -> bool:
            return REGISTRY.get_sample_value(STREAMS) == 1

        await eventually(is_streaming)
        if how == "logout":
            assert (await browser.send("POST", "/logout", headers=session)).status == 204
        elif how == "rotation":
            there.folder.rotate(CredentialRole.GATEWAY)
        else:
            ends_at = clock.SystemClock().now().timestamp() + sessions.SESSION_SECONDS
            monkeypatch.setattr(sessions, "_now", lambda: ends_at)
        async with within(30):
            last = (await stream)[-1]
        assert last["event"] == "refusal"
        assert "UNAUTHENTICATED" in last["data"]
        assert (await browser.send("GET", LIST, headers=session)).status == 401
