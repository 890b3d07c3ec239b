"""The Claude Code hooks, as processes, with inputs of the documented shape, against a running service."""

import asyncio
import importlib
import json
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pointsman.api.pipeline.v1 import pipeline_pb2_grpc
from pointsman.api.pipeline.v1 import requests_pb2 as rq
from pointsman.api.pipeline.v1 import state_pb2 as sp
from pointsman.services.chassis.config import ServerSettings
from pointsman.services.chassis.db import Database
from pointsman.services.chassis.peer import open_channel
from pointsman.services.chassis.service import start
from pointsman.services.pipeline.__main__ import build_on
from pointsman.services.pipeline.config import PipelineSettings

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "integrations" / "claude-code"
RECORDED = ROOT / "tests" / "data" / "claude-code"
SESSION = "5f2c9a1e-7b7d-4c39-9a55-1f0d8a3f6c11"


sys.path.append(str(FOLDER))
HOOKS: Any = importlib.import_module("hook")


def recorded(name: str) -> dict[str, Any]:
    """What Claude Code sends, with every field that its reference names."""
    event: dict[str, Any] = json.loads((RECORDED / f"{name}.json").read_text())
    return event


@dataclass
class User:
    """A user's machine: a directory of their own and a control plane."""

    folder: Path
    address: str
    stub: pipeline_pb2_grpc.PipelineServiceStub

    async def hook(self, name: str, environment: dict[str, str] | None = None, **changes: Any) -> dict[str, Any]:
        """What a hook answers to a recorded input, in this process."""
        event = recorded(name) | changes
        handler = HOOKS.HANDLERS.get(event["hook_event_name"])
        answer: dict[str, Any] = await HOOKS.answered(handler, event, self._environment(environment)) if handler else {}
        return answer

    async def process(self, name: str, environment: dict[str, str] | None = None, **changes: Any) -> dict[str, Any]:
        """The same as Claude Code runs it: a process with JSON on standard input and output."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            str(FOLDER / "hook.py"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **self._environment(environment)},
        )
        out, err = await process.communicate(json.dumps(recorded(name) | changes).encode())
        assert (process.returncode, err.decode()) == (0, "")
        answer: dict[str, Any] = json.loads(out) if out.strip() else {}
        return answer

    def _environment(self, more: dict[str, str] | None) -> dict[str, str]:
        given = {"CLAUDE_CONFIG_DIR": str(self.folder), "POINTSMAN_SERVER": self.address, "GRPC_VERBOSITY": "NONE"}
        return given | (more or {})

    async def stop(self, agent_id: str, message: str) -> dict[str, Any]:
        """Let a sub-agent stop with a last message that is not in its transcript yet."""
        transcript = str(RECORDED / "agent-transcript.jsonl")
        return await self.hook(
            "subagent-stop", agent_id=agent_id, agent_transcript_path=transcript, last_assistant_message=message
        )

    async def pipeline(self) -> sp.Pipeline:
        """The session's newest pipeline."""
        listed = await self.stub.ListPipelines(rq.ListPipelinesRequest(run_id=SESSION))
        wanted = rq.GetPipelineRequest(pipeline_id=listed.pipelines[0].pipeline_id)
        return (await self.stub.GetPipeline(wanted)).pipeline


@pytest.fixture
async def user(tmp_path: Path) -> AsyncIterator[User]:
    """A user with a running pipeline service."""
    service = build_on(Database(f"sqlite:///{tmp_path / 'p.db'}", "pipeline"), PipelineSettings())
    running = await start(lambda _address: [service], ServerSettings(port=0))
    channel = open_channel(running.address)
    folder = tmp_path / "config"
    folder.mkdir()
    yield User(folder, running.address, pipeline_pb2_grpc.PipelineServiceStub(channel))
    await channel.close()
    await running.stop()


def marker(**fields: str) -> str:
    return f"One line.\n<!-- PIPELINE_ROUTE: {json.dumps(fields)} -->"


def context_of(answer: dict[str, Any]) -> str:
    text: str = answer["hookSpecificOutput"]["additionalContext"]
    return text


async def test_a_session_drives_its_sub_agents_through_a_pipeline(user: User) -> None:
    begun = await user.hook("user-prompt-submit")
    assert "delegate DEV to the pointsman-dev agent" in context_of(begun)
    handed = context_of(await user.hook("subagent-start"))
    assert handed.startswith("Run stage DEV.")
    assert '"next":["REVIEW","TEST"]' in handed
    said = await user.stop("a1b2c3d4", marker(verdict="PASS", route="NEXT"))
    assert said["systemMessage"].startswith("pointsman: DEV PASS, advanced; next REVIEW")
    for tool in ("Agent", "Task"):
        told = context_of(await user.hook("post-tool-use-agent", tool_name=tool))
        assert "delegate REVIEW to the pointsman-review agent; delegate TEST to the pointsman-test agent" in told

    review = context_of(await user.hook("subagent-start", agent_id="r1", agent_type="pointsman:pointsman-review"))
    report = user.folder / f"pipeline-context-{SESSION}-REVIEW.md"
    assert str(report) in review
    report.write_text("C-1 the coupon is taken twice")
    await user.hook("subagent-start", agent_id="t1", agent_type="pointsman-test")
    failed = await user.stop("r1", marker(verdict="FAIL", route="DEV", severity="CRITICAL", hint="coupon twice"))
    assert failed["systemMessage"] == "pointsman: REVIEW FAIL, wait"
    await user.stop("t1", marker(verdict="PASS", route="NEXT"))

    report.unlink()
    again = context_of(await user.hook("subagent-start", agent_id="d2"))
    assert again.startswith("REVIEW FAIL -> DEV, round 1.")
    assert report.read_text() == "C-1 the coupon is taken twice"
    assert "C-1" not in again
    reflection = user.folder / f"reflection-memory-{SESSION}-REVIEW.md"
    assert "coupon twice" in reflection.read_text()
    assert f'"context_files":["{report}"]' in again
    assert f'"reflectionFile":"{reflection}"' in again

    await user.stop("d2", marker(verdict="PASS", route="NEXT"))
    for agent_id, kind in (("r2", "review"), ("t2", "test")):
        await user.hook("subagent-start", agent_id=agent_id, agent_type=f"pointsman-{kind}")
    assert not report.exists()
    await user.stop("r2", marker(verdict="PASS", route="NEXT"))
    assert not reflection.exists()
    await user.stop("t2", marker(verdict="PASS", route="NEXT"))
    assert (await user.pipeline()).summary.state == sp.PIPELINE_STATE_COMPLETED
    assert sorted(path.name for path in user.folder.iterdir() if path.name.startswith(".")) == []


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("session-start", {"source", "model"}),
        ("user-prompt-submit", {"permission_mode", "prompt"}),
        ("subagent-start", {"agent_id", "agent_type"}),
        (
            "subagent-stop",
            {
                "permission_mode", "effort", "prompt_id", "stop_hook_active", "agent_id", "agent_type",
                "agent_transcript_path", "last_assistant_message", "background_tasks", "session_crons",
            },
        ),
        ("pre-tool-use-write", {"permission_mode", "tool_name", "tool_input", "tool_use_id"}),
        (
            "post-tool-use-agent",
            {"permission_mode", "tool_name", "tool_input", "tool_response", "tool_use_id", "duration_ms"},
        ),
    ],
)  # fmt: skip
def test_inputs_have_the_fields_that_the_reference_of_hooks_names(name: str, fields: set[str]) -> None:
    common = {"session_id", "transcript_path", "cwd", "hook_event_name"}
    assert recorded(name).keys() == common | fields


async def test_a_transcript_is_found_in_the_users_home(
    user: User, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    line = {"type": "assistant", "message": {"role": "assistant", "content": marker(verdict="PASS", route="NEXT")}}
    (tmp_path / "agent-a1b2c3d4.jsonl").write_text(json.dumps(line) + "\n")
    await user.hook("user-prompt-submit")
    await user.hook("subagent-start")
    named: dict[str, Any] = {"agent_transcript_path": "~/agent-a1b2c3d4.jsonl", "last_assistant_message": None}
    said = await user.hook("subagent-stop", **named)
    assert said["systemMessage"].startswith("pointsman: DEV PASS, advanced")


async def test_a_marker_in_tool_output_does_not_count(user: User) -> None:
    await user.hook("user-prompt-submit", prompt="[pipeline:review-only] look at it")
    await user.hook("subagent-start", agent_type="pointsman-review")
    said = await user.stop("a1b2c3d4", "Looks fine to me.")
    assert "repeated" in said["systemMessage"]
    assert (await user.pipeline()).stages[0].crashes == 1


async def test_sub_agents_of_other_kinds_and_sessions_are_left_alone(user: User) -> None:
    assert await user.hook("subagent-start") == {}
    await user.hook("user-prompt-submit")
    assert await user.hook("subagent-start", agent_type="Explore") == {}
    assert await user.hook("subagent-start", session_id="another") == {}
    assert await user.hook("subagent-stop", agent_id="unknown") == {}
    assert await user.hook("user-prompt-submit", prompt="just a question", session_id="other") == {}


async def test_the_guard_is_off_by_default_and_lets_sub_agents_write(user: User) -> None:
    on = {"POINTSMAN_GUARD": "1"}
    assert await user.hook("pre-tool-use-write", on) == {}
    await user.hook("user-prompt-submit")
    assert await user.hook("pre-tool-use-write") == {}
    denied = (await user.hook("pre-tool-use-write", on))["hookSpecificOutput"]
    assert denied["permissionDecision"] == "deny"
    assert "pointsman pipeline cancel" in denied["permissionDecisionReason"]
    assert await user.hook("pre-tool-use-write", on, agent_id="sub") == {}
    assert await user.hook("pre-tool-use-write", on, tool_name="Bash") == {}
    await user.hook("subagent-start")
    assert await user.hook("pre-tool-use-write", on) == {}


async def test_a_new_session_cleans_up_files_over_three_days(user: User) -> None:
    kinds = ("pipeline-context-{}-A.md", "reflection-memory-{}-B.md", "barrier-state-{}.json")
    old = [user.folder / kind.format("old") for kind in kinds]
    young = [user.folder / kind.format("young") for kind in kinds]
    foreign = user.folder / "x.md"
    for path in (*old, *young, foreign):
        path.write_text("x")
    for path in (*old, foreign):
        os.utime(path, (1, 1))
    assert await user.hook("session-start") == {}
    assert [path.exists() for path in (*old, *young, foreign)] == [False] * 3 + [True] * 4
    await user.hook("user-prompt-submit")
    assert "delegate DEV" in context_of(await user.hook("session-start", source="resume"))


async def test_hooks_run_as_processes(user: User) -> None:
    begun = await user.process("user-prompt-submit")
    assert "delegate DEV to the pointsman-dev agent" in context_of(begun)
    assert context_of(await user.process("subagent-start")).startswith("Run stage DEV.")
    assert await user.process("session-start", hook_event_name="Unknown") == {}


@pytest.mark.parametrize("name", ["session-start", "user-prompt-submit", "subagent-start", "subagent-stop"])
async def test_a_hook_that_cannot_reach_the_service_says_so_and_goes_on(user: User, name: str) -> None:
    answer = await user.hook(name, {"POINTSMAN_SERVER": "127.0.0.1:1"})
    assert "cannot be reached" in answer["systemMessage"]


async def test_a_process_that_cannot_reach_the_service_exits_with_zero(user: User) -> None:
    answer = await user.process("subagent-stop", {"POINTSMAN_SERVER": "127.0.0.1:1"})
    assert "cannot be reached" in answer["systemMessage"]


@pytest.mark.parametrize("changes", [{"hook_event_name": "Unknown"}, {"session_id": None}, {"prompt": ""}])
async def test_odd_input_is_passed_over(user: User, changes: dict[str, Any]) -> None:
    assert await user.hook("user-prompt-submit", **{"prompt": "question", **changes}) == {}
