"""The contract over HTTP: every RPC, the same words, never a 500."""

import asyncio
import base64
import hashlib
import http.client
import json
import re
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

from pointsman.services.chassis.core.config import PeerSettings
from pointsman.services.chassis.core.supervision import Loops
from pointsman.services.gateway.contract import METHODS
from pointsman.services.orchestrator.config import MockSettings
from tests.contract.gateway.gateways import ARTIFACTS, JSON, ORCHESTRATOR, WORKFLOW, Web, free_gateway, gateway
from tests.helpers.limits import scaled
from tests.scenarios.planes import NOBODY, WISH, plane

NASTY: tuple[Any, ...] = (
    {}, [], None, 1, "x", {"request_id": None}, {"request_id": 5}, {"request_id": "r", "page": {"page_size": -1}},
    {"request_id": "r" * 4000}, {"request_id": "\u0000"}, {"page": {"page_token": "zzz"}}, {"unknown": 1},
    {"request_id": "engine:1"}, {"run_id": "../../etc"}, {"workflow_id": "'; --"}, {"request_id": "r", "run_id": "r"},
)  # fmt: skip


async def test_every_rpc_answers_to_every_nasty_body_without_a_bug(tmp_path: Path) -> None:
    async with gateway(tmp_path, NOBODY) as web:
        for path, method in METHODS.items():
            if method.streams_out or method.name == "Poll":
                continue
            for body in NASTY:
                kind = {"content-type": "application/x-ndjson"} if method.streams_in else JSON
                answer = await web.send("POST", path, json.dumps(body).encode(), kind)
                assert answer.status in (200, 400, 404, 409), (path, body, answer)
                assert answer.status == 200 or answer.reason, (path, body, answer)


ODD_QUERIES = (
    "", "a=b", "run_id=%00", "run_id=%ED%A0%80", "page.page_size=x", "page=1", "page.page_token=zz", "after_seq=-1", "=",
    "states=1&states=zz", "run_id=a&run_id=b", "window.start=soon", "run_id.x=1", "&&&", "%ff=%fe", "run_id=" + "x" * 5000,
)  # fmt: skip


async def test_every_read_answers_to_every_odd_query_without_a_bug(tmp_path: Path) -> None:
    async with gateway(tmp_path, NOBODY) as web:
        for path, method in METHODS.items():
            if not method.is_read or method.streams_out:
                continue
            for query in ODD_QUERIES:
                answer = await web.get(f"{path}?{query}")
                assert answer.status in (200, 400, 404), (path, query, answer)
        assert (await web.send("HEAD", f"{ORCHESTRATOR}/WatchChanges")).status == 200
        assert (await web.send("PUT", f"{ORCHESTRATOR}/GetRun", b"{}", JSON)).status == 405


async def test_an_answer_on_a_kept_connection_does_not_wait_for_the_callers_receipt(tmp_path: Path) -> None:
    """Head and body leave in two writes: without TCP_NODELAY the second one waits 40 ms for the receipt of the first."""
    async with gateway(tmp_path, NOBODY) as web:
        assert await asyncio.to_thread(_sends_at_once, web.port)


def _sends_at_once(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=scaled(30))
    connection.request("POST", f"{ORCHESTRATOR}/GetRun", b"{", JSON)
    connection.getresponse().read()
    (at_once,) = _nodelay_towards(connection.sock.getsockname())
    connection.close()
    return at_once


def _nodelay_towards(caller: object) -> list[bool]:
    """TCP_NODELAY of the gateway's end of the connection, which is an open file of this process."""
    found = []
    for file in Path("/dev/fd").iterdir():
        with suppress(OSError):
            end = socket.socket(fileno=int(file.name))
            try:
                if end.getpeername() == caller:
                    found.append(bool(end.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)))
            finally:
                end.detach()
    return found


async def test_malformed_bodies_are_refused(tmp_path: Path) -> None:
    duplicate, nan, half = b'{"run_id": "a", "run_id": "b"}', b'{"run_id": NaN}', b'{"run_id": "\\ud800"}'
    async with gateway(tmp_path, NOBODY) as web:
        for body in (b"", b"{", b"\xff", b"[" * 100_000, duplicate, nan, half):
            answer = await web.send("POST", f"{ORCHESTRATOR}/GetRun", body, JSON)
            assert answer.status == 400, body[:40]
            assert answer.reason in ("MALFORMED_MESSAGE", "INVALID_FIELD")


async def test_a_run_is_submitted_read_and_listed_with_the_protos_names(tmp_path: Path) -> None:
    async with gateway(tmp_path) as web:
        submitted = await web.post(
            f"{ORCHESTRATOR}/Submit", {"request_id": "one", "message": WISH, "labels": {"a": "b"}}
        )
        run_id = submitted.json["run"]["id"]
        await web.plane.ended(run_id)
        read = (await web.get(f"{ORCHESTRATOR}/GetRun?run_id={run_id}")).json["run"]
        assert (read["state"], read["labels"], read["usage"]["tokens"]) == ("RUN_STATE_COMPLETE", {"a": "b"}, "0")
        listed = await web.get(f"{ORCHESTRATOR}/ListRuns?labels.a=b&states=RUN_STATE_COMPLETE&page.page_size=5")
        assert [run["id"] for run in listed.json["runs"]] == [run_id]
        again = await web.post(f"{ORCHESTRATOR}/Submit", {"request_id": "one", "message": WISH, "labels": {"a": "b"}})
        assert again.json["run"]["id"] == run_id


async def test_a_read_that_has_not_changed_is_not_sent_again(tmp_path: Path) -> None:
    async with gateway(tmp_path) as web:
        path = f"{ORCHESTRATOR}/ListRuns"
        first = await web.get(path)
        known = {"if-none-match": first.headers["etag"]}
        same = await web.send("GET", path, headers=known)
        assert (same.status, same.body, same.headers["cache-control"]) == (304, b"", "no-store")
        await web.plane.ended((await web.plane.submit()).id)
        changed = await web.send("GET", path, headers=known)
        assert (changed.status, len(changed.json["runs"])) == (200, 1)
        assert "etag" not in (await web.post(path, {})).headers


async def test_refusals_keep_their_reason_metadata_and_fields(tmp_path: Path) -> None:
    async with gateway(tmp_path, NOBODY) as web:
        missing = await web.get(f"{ORCHESTRATOR}/GetRun?run_id=nobody")
        assert (missing.status, missing.reason) == (404, "NOT_FOUND")
        assert missing.json["error"]["metadata"] == {"kind": "run", "id": "nobody"}
        invalid = await web.post(f"{ORCHESTRATOR}/Submit", {"request_id": "r", "priority": 2000})
        assert (invalid.status, invalid.reason) == (400, "INVALID_FIELD")
        assert set(invalid.fields) == {"message", "priority"}
        plan = {"request_id": "p", "workflow_id": "w", "tasks": [{"task_id": "a", "name": "a", "depends": ["zz"]}]}
        assert (await web.post(f"{WORKFLOW}/UpsertPlan", plan)).fields == ["tasks[0].depends"]
        plan["tasks"] = [{"task_id": "a", "name": "a"}]
        assert (await web.post(f"{WORKFLOW}/UpsertPlan", {**plan, "request_id": "q"})).status == 200
        early = await web.post(f"{WORKFLOW}/Resume", {"request_id": "s", "workflow_id": "w"})
        assert (early.status, early.reason, early.json["error"]["metadata"]["state"]) == (
            409,
            "STATE_FORBIDS",
            "planned",
        )
        reused = await web.post(f"{WORKFLOW}/UpsertPlan", {**plan, "request_id": "q", "title": "other"})
        assert (reused.status, reused.reason) == (409, "REQUEST_ID_REUSED")


async def test_what_http_has_words_for(tmp_path: Path) -> None:
    async with gateway(tmp_path, NOBODY, max_body_bytes=2000) as web:
        path = f"{ORCHESTRATOR}/Submit"
        assert (await web.get("/api/v1/nothing")).status == 404
        wrong = await web.get(path)
        assert (wrong.status, wrong.headers["allow"]) == (405, "POST")
        assert (await web.send("POST", path, b"{}", {"content-type": "text/plain"})).status == 415
        assert (await web.send("POST", path, b"{}")).status == 415
        large = await web.post(path, {"request_id": "r", "message": "x" * 3000})
        assert (large.status, large.fields) == (413, ["body"])
        exact = json.dumps({"request_id": "r", "message": ""}).encode()
        filled = exact.replace(b'""', b'"' + b"y" * (2000 - len(exact)) + b'"')
        assert (len(filled), (await web.send("POST", path, filled, JSON)).status) == (2000, 200)


async def test_projects_do_not_see_each_other(tmp_path: Path) -> None:
    async with gateway(tmp_path, NOBODY) as web:
        body = {"request_id": "r", "message": WISH}
        made = await web.post(f"{ORCHESTRATOR}/Submit", body, **{"pointsman-project": "mine"})
        run_id = made.json["run"]["id"]
        assert (await web.get(f"{ORCHESTRATOR}/GetRun?run_id={run_id}")).status == 404
        mine = await web.get(f"{ORCHESTRATOR}/GetRun?run_id={run_id}", **{"pointsman-project": "mine"})
        assert mine.status == 200
        bad = await web.get(f"{ORCHESTRATOR}/ListRuns", **{"pointsman-project": "no spaces please"})
        assert (bad.status, bad.fields) == (400, ["pointsman-project"])


async def test_a_stream_is_numbered_resumes_and_says_its_end(tmp_path: Path) -> None:
    async with gateway(tmp_path) as web:
        run = await web.plane.ended((await web.plane.submit()).id)
        path = f"{ORCHESTRATOR}/WatchRun?run_id={run.id}"
        seen = await web.events(path, 1000)
        assert [event.get("id") for event in seen[:-1]] == [str(number) for number in range(1, run.seq + 1)]
        assert (seen[-1], json.loads(seen[0]["data"])["transition"]["event"]) == (
            {"event": "end", "data": "{}"},
            "submitted",
        )
        later = await web.events(f"{path}&after_seq=2", 3, **{"Last-Event-ID": str(run.seq - 1)})
        assert [event.get("id") for event in later] == [str(run.seq), None]
        changes = await web.events(f"{ORCHESTRATOR}/WatchChanges?after_position=3", 2)
        assert [event["id"] for event in changes] == ["4", "5"]


async def test_a_stream_that_is_refused_says_why(tmp_path: Path) -> None:
    async with gateway(tmp_path, NOBODY, keep_alive_seconds=0.05) as web:
        (refusal,) = await web.events(f"{ORCHESTRATOR}/WatchRun?run_id=nobody", 5)
        assert (refusal["event"], json.loads(refusal["data"])["error"]["reason"]) == ("refusal", "NOT_FOUND")
        assert (await web.get(f"{ORCHESTRATOR}/WatchRun")).fields == ["run_id"]
        assert (await web.get(f"{ORCHESTRATOR}/WatchChanges?after_position=-1")).fields == ["after_position"]
        bad = await web.get(f"{ORCHESTRATOR}/WatchChanges", **{"Last-Event-ID": "x"})
        assert (bad.status, bad.fields) == (400, ["Last-Event-ID"])


async def test_artifacts_go_up_in_lines_and_come_back_in_events(tmp_path: Path) -> None:
    async with gateway(tmp_path, NOBODY) as web:
        body = bytes(range(256)) * 5000
        artifact = {"sha256": hashlib.sha256(body).hexdigest(), "size_bytes": len(body), "media_type": "text/plain"}
        halves = [{"chunk": base64.b64encode(half).decode()} for half in (body[:700_000], body[700_000:])]
        lines = "\n".join(json.dumps(line) for line in ({"start": {"artifact": artifact}}, *halves)).encode()
        kind = {"content-type": "application/x-ndjson"}
        put = await web.send("POST", f"{ARTIFACTS}/Put", lines, kind)
        assert put.json["artifact"]["size_bytes"] == str(len(body))
        events = await web.events(f"{ARTIFACTS}/Get?sha256={artifact['sha256']}", 100)
        assert b"".join(base64.b64decode(json.loads(one["data"])["chunk"]) for one in events[:-1]) == body
        broken = await web.send("POST", f"{ARTIFACTS}/Put", lines[:-9] + b'*"}', kind)
        assert (broken.status, broken.fields) == (400, ["chunk"])


async def test_the_mock_policy_has_its_own_two_paths(tmp_path: Path) -> None:
    path = "/api/v1/agents/debug/mock-policy"
    async with gateway(tmp_path, NOBODY) as web:
        before = (await web.get(path)).json["policies"]
        assert {one["role"]: one["outcome"] for one in before} == dict.fromkeys(
            ("executor", "reviewer", "searcher"), "success"
        )
        changed = await web.post(path, {"role": "reviewer", "outcome": "failure"})
        assert [one["outcome"] for one in changed.json["policies"] if one["role"] == "reviewer"] == ["failure"]
        everybody = await web.post(path, {"role": "all", "outcome": "no_evidence"})
        assert {one["outcome"] for one in everybody.json["policies"]} == {"no_evidence"}
        assert (await web.post(path, {"role": "boss", "outcome": "failure"})).fields == ["role"]
        assert (await web.post(path, {"role": "all", "outcome": "Success"})).fields == ["outcome"]
        assert (await web.post(path, {"role": 1, "extra": 2})).fields == ["extra", "role", "outcome"]
        assert (await web.post(path, [])).status == 400
        assert (await web.send("DELETE", path)).status in (404, 405)


async def test_without_mocks_the_policy_is_not_offered(tmp_path: Path) -> None:
    async with gateway(tmp_path, MockSettings()) as web:
        answer = await web.get("/api/v1/agents/debug/mock-policy")
        assert (answer.status, answer.reason) == (501, "UNIMPLEMENTED")


async def test_foreign_pages_can_neither_read_nor_change(tmp_path: Path) -> None:
    async with gateway(tmp_path, NOBODY) as web:
        body = json.dumps({"request_id": "r", "message": WISH}).encode()
        for headers in ({"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}, {"host": "evil.example"}):
            answer = await web.send("POST", f"{ORCHESTRATOR}/Submit", body, JSON | headers)
            assert (answer.status, answer.reason) == (403, "PERMISSION_DENIED")
        assert (await web.get("/", host="evil.example:7461")).status == 403
        preflight = await web.send("OPTIONS", f"{ORCHESTRATOR}/Submit", None, {"origin": "http://evil.example"})
        assert preflight.status == 403
        assert "access-control-allow-origin" not in preflight.headers
        assert (await web.get(f"{ORCHESTRATOR}/ListRuns")).json["runs"] == []


async def test_the_console_is_served_from_memory_with_its_policy(tmp_path: Path) -> None:
    async with gateway(tmp_path, NOBODY) as web:
        for path in ("/", "/runs", "/runs/run_1/with/slashes", "/people", "/agents", "/queue", "/schedules", "/router"):
            page = await web.get(path)
            assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
            assert "script-src 'self'" in page.headers["content-security-policy"]
            assert b"<script type=" in page.body
            assert b"style=" not in page.body
        again = await web.get("/", **{"if-none-match": page.headers["etag"]})
        assert (again.status, again.body) == (304, b"")
        script = re.search(rb'src="(/console/[0-9a-f]{24}/console.js)"', page.body)
        assert script is not None
        kept = await web.get(script[1].decode())
        assert (kept.status, "immutable" in kept.headers["cache-control"]) == (200, True)
        assert (await web.get("/console/../__main__.py")).status == 404
        assert (await web.get("/console/%2e%2e/config.py")).status == 404
        assert (await web.get("/openapi.json")).json["openapi"] == "3.1.0"
        assert (await web.get("/healthz")).body == b"ok\n"


async def test_a_service_that_is_away_is_a_503_with_a_hint(tmp_path: Path) -> None:
    async with plane(tmp_path, NOBODY) as here:
        with free_gateway() as server:
            service = server.service(PeerSettings().all_at("127.0.0.1:9"))
            loops = Loops()
            loops.start(*service.loops[0])
            web = Web(int(server.address.rpartition(":")[2]), here)
            answer = await web.get(f"{ORCHESTRATOR}/ListRuns")
            assert (answer.status, answer.reason, answer.headers["retry-after"]) == (503, "UNAVAILABLE", "1")
            assert b"127.0.0.1" not in answer.body
            (refusal,) = await web.events(f"{ORCHESTRATOR}/WatchChanges", 5)
            assert json.loads(refusal["data"])["error"]["reason"] == "UNAVAILABLE"
            await loops.stop()
            assert service.close is not None
            await service.close()


async def test_the_page_of_a_run_says_what_to_fetch_before_its_script_is_there(tmp_path: Path) -> None:
    async with gateway(tmp_path, NOBODY) as web:
        page = await web.get("/runs/r%C3%A4%2F1'")
        assert "GetRun?run_id=r%C3%A4%2F1'>; rel=preload; as=fetch" in page.headers["link"]
        for path in ("/runs", "/runs/r?project=other", "/runs/" + "r" * 200):
            assert "link" not in (await web.get(path)).headers, path
        again = await web.get("/runs/r", **{"if-none-match": page.headers["etag"]})
        assert (again.status, again.body) == (304, b"")
        assert "GetRun?run_id=r>" in again.headers["link"]
