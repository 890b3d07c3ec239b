"""The Claude Code hooks, with inputs recorded from the real program (`make hook-recordings`), against running services."""

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
from pointsman.services.all_in_one import build_all
from pointsman.services.chassis.core.config import ServerSettings, StoreSettings
from pointsman.services.chassis.rpc.client import open_channel
from pointsman.services.chassis.runtime.service import start

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "integrations" / "claude-code"
RECORDED = ROOT / "tests" / "data" / "claude-code"
SESSION = "5f2c9a1e-7b7d-4c39-9a55-1f0d8a3f6c11"


sys.path.append(str(FOLDER))
HOOKS: Any = importlib.import_module("answering")
CONTROL: Any = importlib.import_module("control")


def recorded(name: str) -> dict[str, Any]:
    """What Claude Code sent."""
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
        answer: dict[str, Any] = await HOOKS.answered(recorded(name) | changes, self._environment(environment))
        return answer

    async def process(
        self,
        name: str,
        environment: dict[str, str] | None = None,
        python: tuple[str, ...] = (sys.executable,),
        **changes: Any,
    ) -> dict[str, Any]:
        """The same as Claude Code runs it: a process with JSON on standard input and output."""
        process = await asyncio.create_subprocess_exec(
            *python,
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
        given = {
            "CLAUDE_CONFIG_DIR": str(self.folder),
            "POINTSMAN_DATA": str(self.folder / "data"),
            "POINTSMAN_SERVER": self.address,
            "GRPC_VERBOSITY": "NONE",
        }
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
    """A user with a running control plane: the router and the pipeline service."""
    running = await start(build_all(StoreSettings(data=tmp_path), ("router", "pipeline")), ServerSettings(port=0))
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
    assert f"- Report: {report}" in reflection.read_text().splitlines()
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


async def failing_barrier(user: User, reports: dict[str, str]) -> str:
    """REVIEW and TEST fail with these reports; what DEV is given then."""
    await user.hook("user-prompt-submit")
    await user.hook("subagent-start")
    await user.stop("a1b2c3d4", marker(verdict="PASS", route="NEXT"))
    for stage, text in reports.items():
        agent_id, kind = f"{stage}-1", f"pointsman-{stage.lower()}"
        await user.hook("subagent-start", agent_id=agent_id, agent_type=kind)
        report = user.folder / f"pipeline-context-{SESSION}-{stage}.md"
        if text:
            report.write_text(text)
        words = marker(verdict="FAIL", route="DEV", severity="HIGH", context_file=str(report), hint=f"see {stage}")
        await user.stop(agent_id, words)
    return context_of(await user.hook("subagent-start", agent_id="d2"))


async def test_the_reports_of_all_that_failed_are_merged_into_one_file_that_dev_is_pointed_to(user: User) -> None:
    again = await failing_barrier(user, {"TEST": "H-1 a red test", "REVIEW": "C-1 the coupon is taken twice"})
    merged = user.folder / f"pipeline-context-{SESSION}-MERGED.md"
    assert merged.read_text() == "# REVIEW\n\nC-1 the coupon is taken twice\n\n# TEST\n\nH-1 a red test"
    assert f'"context_files":["{merged}"]' in again
    assert not [word for word in ("C-1", "H-1", "coupon", "red test") if word in again]


async def test_dev_goes_by_the_hint_where_no_report_was_left(user: User) -> None:
    again = await failing_barrier(user, {"TEST": "", "REVIEW": ""})
    assert '"hint":"see REVIEW"' in again
    assert not list(user.folder.glob("pipeline-context-*-MERGED.md"))
    said = await user.stop("d2", marker(verdict="PASS", route="NEXT"))
    assert said["systemMessage"].startswith("pointsman: DEV PASS, advanced")


AGENTS = sorted((FOLDER / "agents").glob("pointsman-*.md"))


@pytest.mark.parametrize("file", AGENTS, ids=lambda file: file.stem)
def test_each_agent_is_told_to_read_its_reports_and_to_end_with_one_marker(file: Path) -> None:
    words = " ".join(file.read_text().split())
    stage = file.stem.removeprefix("pointsman-").upper()
    assert f"Runs the {stage} stage" in words
    assert "Read the files in `context_files` and, after a failure, the one in `retryContext.reflectionFile`" in words
    assert "If a file is not there, go by the `hint` and look for yourself." in words
    assert "End with exactly one marker" in words
    reports = "Write your full report to the file that you were given at the start. Your answer itself has one line"
    assert (reports in words) is (stage in ("REVIEW", "TEST", "QA", "E2E"))
    assert "PIPELINE_VERDICT" not in words


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("session-start", {"source"}),
        ("user-prompt-submit", {"prompt"}),
        ("subagent-start", {"agent_id", "agent_type"}),
        ("subagent-stop", {"agent_id", "agent_type", "agent_transcript_path", "last_assistant_message"}),
        ("pre-tool-use-write", {"tool_name", "tool_input"}),
        ("pre-tool-use-write-by-agent", {"tool_name", "tool_input", "agent_id"}),
        ("post-tool-use-agent", {"tool_name", "tool_input", "tool_response"}),
    ],
)
def test_recordings_have_every_field_that_a_hook_reads_and_nothing_of_a_machine(name: str, fields: set[str]) -> None:
    event = recorded(name)
    assert event.keys() >= {"session_id", "transcript_path", "cwd", "hook_event_name"} | fields
    assert event["session_id"] == SESSION
    assert event["cwd"] == "/home/user/shop"


async def test_the_session_that_was_recorded_brings_its_stage_home(user: User) -> None:
    assert await user.process("session-start") == {}
    assert "delegate DEV" in context_of(await user.process("user-prompt-submit"))
    assert context_of(await user.process("subagent-start")).startswith("Run stage DEV.")
    on = {"POINTSMAN_GUARD": "1"}
    assert await user.process("pre-tool-use-write-by-agent", on) == {}
    transcript = str(RECORDED / "agent-transcript-recorded.jsonl")
    named: dict[str, Any] = {"agent_transcript_path": transcript, "last_assistant_message": None}
    assert "DEV PASS, advanced" in (await user.process("subagent-stop", **named))["systemMessage"]
    assert "delegate REVIEW" in context_of(await user.process("post-tool-use-agent"))
    assert "permissionDecision" in (await user.process("pre-tool-use-write", on))["hookSpecificOutput"]


async def test_the_router_decides_before_the_model_is_called(user: User) -> None:
    action = context_of(await user.hook("user-prompt-submit", prompt="fix the failing test in src/cart.py"))
    assert action.startswith("pointsman: this prompt is ACTION")
    answer = context_of(await user.hook("user-prompt-submit", prompt="what is a coupon?"))
    assert answer.startswith("pointsman: this prompt is ANSWER")
    on = {"POINTSMAN_START_PIPELINES": "1"}
    assert "delegate" not in context_of(await user.hook("user-prompt-submit", on, prompt="what is a coupon?"))
    begun = context_of(await user.hook("user-prompt-submit", on, prompt="fix the failing test in src/cart.py"))
    assert "delegate DEV to the pointsman-dev agent. Wait for each (run_in_background: false)." in begun


async def test_where_a_nonce_is_required_a_marker_without_it_does_not_count(user: User) -> None:
    await user.hook("user-prompt-submit", {"POINTSMAN_REQUIRE_NONCE": "1"}, prompt="[pipeline:review-only] look")
    handed = context_of(await user.hook("subagent-start", agent_type="pointsman:pointsman-review"))
    assert "repeated" in (await user.hook("subagent-stop"))["systemMessage"]
    handed = context_of(await user.hook("subagent-start", agent_type="pointsman:pointsman-review"))
    nonce = handed.partition('"nonce":"')[2].partition('"')[0]
    said = await user.stop("a1b2c3d4", marker(verdict="PASS", route="NEXT", nonce=nonce))
    assert said["systemMessage"] == "pointsman: REVIEW PASS, ended"


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
    told = context_of(await user.hook("user-prompt-submit", prompt="just a question", session_id="other"))
    assert "delegate" not in told


async def test_the_guard_is_off_by_default_and_lets_sub_agents_write(user: User) -> None:
    on = {"POINTSMAN_GUARD": "1"}
    assert await user.hook("pre-tool-use-write", on) == {}
    await user.hook("user-prompt-submit")
    assert await user.hook("pre-tool-use-write") == {}
    denied = (await user.hook("pre-tool-use-write", on))["hookSpecificOutput"]
    assert denied["permissionDecision"] == "deny"
    assert "pointsman pipeline cancel" in denied["permissionDecisionReason"]
    assert await user.hook("pre-tool-use-write-by-agent", on) == {}
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


async def test_the_guard_lets_people_write_when_the_service_cannot_be_reached(user: User) -> None:
    answer = await user.process("pre-tool-use-write", {"POINTSMAN_SERVER": "127.0.0.1:1", "POINTSMAN_GUARD": "1"})
    assert answer.keys() == {"systemMessage"}
    assert "cannot be reached" in answer["systemMessage"]


async def test_a_lock_that_cannot_be_read_does_not_stand_in_the_way(user: User, tmp_path: Path) -> None:
    (tmp_path / "data" / "pointsman.lock").mkdir(parents=True)
    answer = await user.process("session-start", {"POINTSMAN_SERVER": "", "POINTSMAN_DATA": str(tmp_path / "data")})
    assert "cannot be reached; going on without it" in answer["systemMessage"]


@pytest.mark.parametrize("name", ["session-start", "pre-tool-use-write", "subagent-stop"])
async def test_a_python_without_pointsman_says_so_and_exits_with_zero(user: User, name: str) -> None:
    answer = await user.process(name, python=(sys.executable, "-S"))
    assert "cannot run the hook (ModuleNotFoundError" in answer["systemMessage"]
    assert "POINTSMAN_PYTHON" in answer["systemMessage"]


@pytest.mark.parametrize("changes", [{"hook_event_name": "Unknown"}, {"session_id": None}, {"prompt": ""}])
async def test_odd_input_is_passed_over(user: User, changes: dict[str, Any]) -> None:
    told = await user.hook("user-prompt-submit", **{"prompt": "question", **changes})
    assert not told or "delegate" not in context_of(told)


def test_two_sessions_never_share_a_name_however_long_or_odd_theirs_are() -> None:
    names = [SESSION, "a/b", "a_b", "s" * 64 + "1", "s" * 64 + "2"]
    kept = [CONTROL.session_of({"session_id": name}) for name in names]
    assert (kept[0], len(set(kept))) == (SESSION, len(names))
    assert all(len(name) <= 100 and "/" not in name for name in kept)
