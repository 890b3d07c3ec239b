"""By MCP alone, over standard input and output, while every process is killed between the steps: the handle stays good."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the extra `pointsman[mcp]` is not installed")

from mcp import Client, StdioServerParameters, types
from pydantic import ConfigDict

from tests.helpers.eventually import eventually
from tests.helpers.loopback import with_credentials
from tests.scenarios.commands import ROOT, Running
from tests.scenarios.processes import mocked

MEANT: dict[str, Any] = {"answer": "clarified", "text": "the failing test in src/parser.py"}


async def declines(_context: Any, _params: Any) -> types.ElicitResult:
    """A person who leaves the question open."""
    return types.ElicitResult(action="decline")


async def says(_context: Any, _params: Any) -> types.ElicitResult:
    """A person who answers."""
    return types.ElicitResult(action="accept", content=MEANT)


def refusal_of(result: types.CallToolResult) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(getattr(result.content[0], "text", ""))["refusal"]
    return found


class Everything:
    """`pointsman up` with mock agents, and MCP servers that clients start; each can be killed."""

    def __init__(self, data: Path) -> None:
        self.environment = {"POINTSMAN_DATA": str(data), "POINTSMAN_GATEWAY_PORT": "0", **mocked()}
        self.up = self._start()

    def _start(self) -> Running:
        process = Running(("up", "--port", "0"), self.environment)
        process.line_with("is up at")
        return process

    def kill(self) -> None:
        """Kill the control plane, and start it on what is left."""
        self.up.kill()
        self.up = self._start()

    @asynccontextmanager
    async def client(self, mode: str, person: Any = None) -> AsyncIterator[Client]:
        """A client whose server is another process each time; it is gone at the end of the block."""
        server = StdioServerParameters(
            command=sys.executable,
            args=["-m", "pointsman.cli", "mcp"],
            env=with_credentials(**self.environment),
            cwd=ROOT.parent,
        )
        async with Client(server, mode=mode, elicitation_callback=person) as client:
            yield client


class Anything(types.Result):
    """A result whose fields the SDK does not know."""

    model_config = ConfigDict(extra="allow")


async def ask(client: Client, method: str, params: dict[str, Any]) -> dict[str, Any]:
    request: Any = types.Request[dict[str, Any], str](method=method, params=params)
    answer = await client.session.send_request(request, Anything)
    found: dict[str, Any] = answer.model_dump(by_alias=True)
    return found


async def test_a_handle_survives_the_death_of_every_process_between_submit_question_answer_and_delivery(
    tmp_path: Path,
) -> None:
    here = Everything(tmp_path)
    try:
        async with here.client("legacy") as client:
            order = {"message": "fix something", "request_id": "once"}
            run_id = (await client.call_tool("submit_run", order)).structured_content["run"]["run_id"]
        here.kill()
        async with here.client("2026-07-28", declines) as client:
            again = await client.call_tool("submit_run", order)
            assert again.structured_content["run"]["run_id"] == run_id

            async def asks() -> bool:
                return bool((await ask(client, "tasks/get", {"taskId": run_id}))["status"] == "input_required")

            await eventually(asks)
            declined = await client.call_tool("answer", {"run_id": run_id})
            assert refusal_of(declined)["reason"] == "STATE_FORBIDS"
        here.kill()
        async with here.client("legacy", says) as client:
            result = await ask(client, "tasks/result", {"taskId": run_id})
            assert result["structuredContent"]["delivery"]["outcome"] == "COMPLETE"
        here.kill()
        async with here.client("2026-07-28") as client:
            assert (await ask(client, "tasks/get", {"taskId": run_id}))["status"] == "completed"
            delivered = await client.call_tool("deliver", {"run_id": run_id})
            assert delivered.structured_content["outcome"] == "COMPLETE"
    finally:
        here.up.kill()


async def test_without_a_control_plane_a_tool_says_how_to_start_one(tmp_path: Path) -> None:
    environment = with_credentials(POINTSMAN_DATA=str(tmp_path))
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "pointsman.cli", "mcp"], env=environment, cwd=tmp_path
    )
    async with Client(server) as client:
        refused = await client.call_tool("list_runs", {})
        assert refused.is_error
        assert "pointsman up" in refusal_of(refused)["message"]
