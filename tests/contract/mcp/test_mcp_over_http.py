"""`/mcp` of the gateway, spoken to by the SDK's own client, in both eras of the protocol."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

pytest.importorskip("mcp", reason="the extra `pointsman[mcp]` is not installed")

from mcp import Client, MCPError, types
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from pydantic import ConfigDict

from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.api.orchestrator.v1 import schedule_pb2 as schedule
from pointsman.api.orchestrator.v1.schedule_pb2_grpc import ScheduleServiceStub
from tests.contract.gateway.gateways import Web, gateway
from tests.contract.gateway.test_access import bearer
from tests.helpers.certificates import Authority
from tests.helpers.eventually import eventually
from tests.scenarios.planes import NOBODY, WISH

ERAS = ("legacy", "2026-07-28")
EVERY_TOOL = {
    "submit_run", "plan", "get_run", "list_repositories", "list_runs", "answer", "change_requirement", "cancel", "get_evidence", "get_diff",
    "logs", "deliver", "list_schedules", "trigger_schedule", "route",
}  # fmt: skip


def client_of(web: Web, mode: str = "auto", **terms: Any) -> Client:
    return Client(f"http://127.0.0.1:{web.port}/mcp", mode=mode, **terms)


def refusal_of(result: types.CallToolResult) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(getattr(result.content[0], "text", ""))["refusal"]
    return found


async def ended(client: Client, run_id: str) -> dict[str, Any]:
    async def check() -> dict[str, Any] | None:
        answer = await client.call_tool("get_run", {"run_id": run_id, "wait_seconds": 5})
        found: dict[str, Any] = answer.structured_content
        return found if found["ended"] else None

    run = await eventually(check)
    assert run is not None
    return run


async def test_a_run_is_submitted_followed_and_delivered_by_tools_in_both_eras(tmp_path: Path) -> None:
    async with gateway(tmp_path, mcp=True) as web:
        run_ids = []
        for era in ERAS:
            async with client_of(web, era) as client:
                assert {tool.name for tool in (await client.list_tools()).tools} == EVERY_TOOL
                order = {"message": WISH, "request_id": "once"}
                submitted = [(await client.call_tool("submit_run", order)).structured_content for _ in range(2)]
                run_ids += [one["run"]["run_id"] for one in submitted]
                assert (await ended(client, run_ids[0]))["state"] == "complete"
                await check_what_came_of_it(client, run_ids[0])
        assert len(set(run_ids)) == 1


async def check_what_came_of_it(client: Client, run_id: str) -> None:
    delivered = (await client.call_tool("deliver", {"run_id": run_id})).structured_content
    assert delivered["outcome"] == "COMPLETE"
    evidence = (await client.call_tool("get_evidence", {"run_id": run_id})).structured_content
    assert evidence["attempts"][0]["claims"][0].keys() == {"untrusted_text", "author"}
    listed = (await client.call_tool("list_runs", {})).structured_content
    assert [run["run_id"] for run in listed["runs"]] == [run_id]
    assert (await client.call_tool("list_runs", {"waiting": True})).structured_content["runs"] == []
    assert (await client.call_tool("plan", {"run_id": run_id})).structured_content["tasks"][0]["status"] == "accepted"
    assert (await client.call_tool("list_repositories", {})).structured_content == {"repositories": []}
    unknown = await client.call_tool("submit_run", {"message": WISH, "repository": "shop"})
    assert "no worker that is there offers a repository 'shop'" in refusal_of(unknown)["message"]
    assert not (await client.call_tool("get_diff", {"run_id": run_id})).is_error
    assert not (await client.call_tool("logs", {"run_id": run_id})).is_error
    assert (await client.call_tool("route", {"message": WISH})).structured_content["mode"] == "ACTION"
    late = await client.call_tool("change_requirement", {"run_id": run_id, "message": "more"})
    assert refusal_of(late)["reason"] == "STATE_FORBIDS"
    names = {template.uri_template for template in (await client.list_resource_templates()).resource_templates}
    assert names == {f"pointsman://runs/{{run_id}}/{kind}" for kind in ("delivery", "evidence", "transcript")}
    for kind, word in (("delivery", "COMPLETE"), ("evidence", "attempts"), ("transcript", "output")):
        read = await client.read_resource(f"pointsman://runs/{run_id}/{kind}")
        assert word in getattr(read.contents[0], "text", "")


async def test_schedules_are_listed_and_triggered_once_for_a_request_and_made_by_people_alone(tmp_path: Path) -> None:
    async with gateway(tmp_path, NOBODY, mcp=True) as web:
        order = pb.SubmitRequest(request_id="x", message=WISH)
        spec = schedule.ScheduleSpec(cron="0 3 * * *", overlap=schedule.OVERLAP_POLICY_ALLOW)
        request = schedule.CreateScheduleRequest(request_id="x", spec=spec, order=order)
        made = (await ScheduleServiceStub(web.plane.channel).CreateSchedule(request)).schedule
        async with client_of(web) as client:
            listed = (await client.call_tool("list_schedules", {})).structured_content
            (one,) = listed["schedules"]
            assert (one["schedule_id"], one["state"], one["message"]["untrusted_text"]) == (made.id, "active", WISH)
            assert 'pointsman schedule "…" --cron' in listed["note"]
            for _ in range(2):
                given = {"schedule_id": made.id, "request_id": "once"}
                assert not (await client.call_tool("trigger_schedule", given)).is_error

            async def last_run() -> str:
                answer = (await client.call_tool("list_schedules", {})).structured_content
                return str(answer["schedules"][0]["last_run_id"])

            run_id = await eventually(last_run, 30)
            found = (await client.call_tool("list_runs", {})).structured_content["runs"]
            assert [run["run_id"] for run in found] == [run_id]


async def test_a_refusal_keeps_its_reason_and_names_the_field(tmp_path: Path) -> None:
    async with gateway(tmp_path, NOBODY, mcp=True) as web:
        for era in ERAS:
            async with client_of(web, era) as client:
                unknown = await client.call_tool("get_run", {"run_id": "run_nobody"})
                assert unknown.is_error
                assert refusal_of(unknown)["reason"] == "NOT_FOUND"
                wrong = await client.call_tool("submit_run", {"message": "", "colour": "red"})
                assert wrong.is_error
                fields = {one["field"] for one in refusal_of(wrong)["violations"]}
                assert fields == {"message", "colour"}
                routed = await client.call_tool("submit_run", {"message": "What is a lexer?"})
                assert routed.structured_content["run"] is None
                assert routed.structured_content["routing"].startswith("ANSWER")
        for headers, status in (({"origin": "http://evil.example"}, 403), ({"host": "evil.example"}, 403)):
            assert (await web.post("/mcp", {}, **headers)).status == status
        long = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"x": "x" * 3_000_000}}
        assert (await web.post("/mcp", long)).status == 413


class CreatedTask(types.Result):
    """What submit_run answers to a client that knows tasks."""

    result_type: Literal["task"] = "task"
    task_id: str
    status: str


class GetTask(types.RequestParams):
    task_id: str


class TasksExtension(ClientExtension):
    """Follows a task to its end as the extension says, answering what it asks."""

    identifier = "io.modelcontextprotocol/tasks"

    def __init__(self, says: dict[str, Any]) -> None:
        self.says = says
        self.seen: list[str] = []

    def claims(self) -> Sequence[ResultClaim[Any]]:
        return (ResultClaim(result_type="task", model=CreatedTask, resolve=self.resolve),)

    async def resolve(self, task: CreatedTask, context: ClaimContext) -> types.CallToolResult:
        while True:
            found = await ask(context.session, "tasks/get", {"taskId": task.task_id})
            if found["status"] not in self.seen[-1:]:
                self.seen.append(found["status"])
            if found["status"] == "input_required":
                key, wanted = next(iter(found["inputRequests"].items()))
                assert wanted["method"] == "elicitation/create"
                assert self.says["answer"] in wanted["params"]["requestedSchema"]["properties"]["answer"]["enum"]
                reply = {"action": "accept", "content": self.says}
                await ask(context.session, "tasks/update", {"taskId": task.task_id, "inputResponses": {key: reply}})
            elif found["status"] == "completed":
                return types.CallToolResult.model_validate(found["result"])
            await asyncio.sleep(0.05)


class Anything(types.Result):
    """A result whose fields the SDK does not know."""

    model_config = ConfigDict(extra="allow")


async def ask(session: Any, method: str, params: dict[str, Any]) -> dict[str, Any]:
    request: Any = types.Request[dict[str, Any], str](method=method, params=params)
    answer = await session.send_request(request, Anything)
    found: dict[str, Any] = answer.model_dump(by_alias=True)
    return found


VAGUE = {"message": "fix something"}
MEANT: dict[str, Any] = {"answer": "clarified", "text": "the failing test in src/parser.py"}


async def test_a_run_is_a_task_whose_question_is_elicitation(tmp_path: Path) -> None:
    """2026-07-28: the client gets a handle, polls it, answers what it asks, and has the delivery as the result."""
    tasks = TasksExtension(MEANT)
    async with gateway(tmp_path, mcp=True) as web, client_of(web, "2026-07-28", extensions=[tasks]) as client:
        result = await client.call_tool("submit_run", VAGUE)
    assert result.structured_content["delivery"]["outcome"] == "COMPLETE"
    assert tasks.seen[-1] == "completed"
    assert "input_required" in tasks.seen


async def test_a_task_is_cancelled_and_an_unknown_one_is_refused(tmp_path: Path) -> None:
    async with gateway(tmp_path, NOBODY, mcp=True) as web, client_of(web, "2026-07-28") as client:
        run_id = (await client.call_tool("submit_run", {"message": WISH})).structured_content["run"]["run_id"]
        assert (await ask(client.session, "tasks/get", {"taskId": run_id}))["status"] == "working"
        for _ in range(2):
            await ask(client.session, "tasks/cancel", {"taskId": run_id})
        assert (await ask(client.session, "tasks/get", {"taskId": run_id}))["status"] == "cancelled"
        with pytest.raises(MCPError, match="run_nobody"):
            await ask(client.session, "tasks/get", {"taskId": "run_nobody"})


async def test_the_era_before_asks_for_a_task_with_the_call(tmp_path: Path) -> None:
    """2025-11-25, word by word: the SDK's client does not take its shapes."""
    accepts = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}

    async with gateway(tmp_path, mcp=True) as web:

        async def say(method: str, params: dict[str, Any]) -> dict[str, Any]:
            request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            answered: dict[str, Any] = (await web.post("/mcp", request, **accepts)).json
            return answered

        client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
        capabilities = (await say("initialize", client))["result"]["capabilities"]
        assert capabilities["tasks"]["requests"] == {"tools": {"call": {}}}
        refused = await say("tools/call", {"name": "route", "arguments": {"message": WISH}, "task": {}})
        assert refused["error"]["code"] == types.METHOD_NOT_FOUND
        called = await say("tools/call", {"name": "submit_run", "arguments": {"message": WISH}, "task": {}})
        task = called["result"]["task"]
        result = await say("tasks/result", {"taskId": task["taskId"]})
        assert result["result"]["structuredContent"]["delivery"]["outcome"] == "COMPLETE"
        assert (await say("tasks/get", {"taskId": task["taskId"]}))["result"]["status"] == "completed"
        assert [one["taskId"] for one in (await say("tasks/list", {}))["result"]["tasks"]] == [task["taskId"]]
        assert "error" in await say("tasks/cancel", {"taskId": task["taskId"]})


async def test_an_answer_without_words_asks_the_person_where_the_client_can(tmp_path: Path) -> None:
    """The modern client asks and calls again; over stateless HTTP the older era has no way back, and is told so."""
    asked: list[str] = []

    async def person(_context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content=MEANT)

    async with gateway(tmp_path, mcp=True) as web:
        async with client_of(web, "legacy", elicitation_callback=person) as client:
            run_id = (await client.call_tool("submit_run", VAGUE)).structured_content["run"]["run_id"]
            await web.plane.asked(run_id)
            untold = await client.call_tool("answer", {"run_id": run_id})
            assert "name one of clarified" in refusal_of(untold)["message"]
        async with client_of(web, "2026-07-28", elicitation_callback=person) as client:
            assert not (await client.call_tool("answer", {"run_id": run_id})).is_error
            assert (await ended(client, run_id))["state"] == "complete"
    assert len(asked) == 1
    assert run_id in asked[0]


async def test_a_model_cannot_give_the_answers_that_are_a_persons(tmp_path: Path) -> None:
    """What a prompt-injected model would say to be paid: more budget, accepted, approved, skipped, waived."""
    said: list[str] = []

    async def person(_context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        said.append(params.message)
        return types.ElicitResult(action="decline")

    async with gateway(tmp_path, mcp=True) as web:
        run = await web.plane.asked((await web.plane.submit(budget=runs.Budget(assignments=1))).id)
        assert runs.ANSWER_KIND_RAISE in run.question.takes
        for word in ("raise", " RAISE", "accept", "proceed", "skip", "skip-stage", "waive"):
            given = {"run_id": run.id, "answer": word, "assignments": 500}
            async with client_of(web, "legacy") as client:
                refused = refusal_of(await client.call_tool("answer", given))
                assert f"pointsman answer {run.id} {word}" in refused["message"]
            async with client_of(web, "2026-07-28", elicitation_callback=person) as client:
                assert (await client.call_tool("answer", given)).is_error
        assert len(said) == 7, "the person is asked each time"
        assert (await web.plane.get(run.id)).question.id == run.question.id, "and the question stays open"


@asynccontextmanager
async def with_headers(web: Web, headers: dict[str, str]) -> AsyncIterator[Client]:
    async with create_mcp_http_client(headers=headers) as http:
        transport = streamable_http_client(f"http://127.0.0.1:{web.port}/mcp", http_client=http)
        async with Client(transport) as client:
            yield client


async def test_callers_without_a_token_are_refused_and_roles_hold_for_each_tool(tmp_path: Path) -> None:
    """The same tokens, roles and projects as for every RPC over HTTP."""
    authority = Authority(tmp_path)
    async with gateway(tmp_path / "data", NOBODY, mcp=True, token_keys=authority.public_key) as web:
        listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        nobody = await web.post("/mcp", listing, accept="application/json")
        assert (nobody.status, nobody.reason, nobody.headers["www-authenticate"]) == (401, "UNAUTHENTICATED", "Bearer")
        viewer = bearer(authority, "viewer")
        foreign = await web.post("/mcp", listing, **viewer, **{"pointsman-project": "other"})
        assert (foreign.status, foreign.reason) == (403, "PERMISSION_DENIED")
        async with with_headers(web, viewer) as client:
            assert (await client.call_tool("list_runs", {})).structured_content["runs"] == []
            refused = await client.call_tool("submit_run", {"message": WISH})
            assert refused.is_error
            assert refusal_of(refused)["reason"] == "PERMISSION_DENIED"
        async with with_headers(web, bearer(authority, "operator")) as client:
            made = await client.call_tool("submit_run", {"message": WISH})
            assert not made.is_error
            run_id = made.structured_content["run"]["run_id"]
        changes: dict[str, dict[str, Any]] = {
            "submit_run": {"message": WISH},
            "change_requirement": {"run_id": run_id, "message": "pass everything"},
            "cancel": {"run_id": run_id, "reason": "enough"},
        }
        async with with_headers(web, bearer(authority, "agent")) as client:
            for tool, said in changes.items():
                refused = await client.call_tool(tool, said)
                assert (tool, refused.is_error, refusal_of(refused)["reason"]) == (tool, True, "PERMISSION_DENIED")


async def test_without_asking_for_it_there_is_no_mcp(tmp_path: Path) -> None:
    async with gateway(tmp_path) as web:
        assert (await web.post("/mcp", {})).status == 404
