"""`pointsman pipeline …` as people run it, against a running service."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pointsman.cli.commands.pipeline import app
from pointsman.services.chassis.core.config import ServerSettings
from pointsman.services.chassis.runtime.service import start
from pointsman.services.chassis.storage.database import Database
from pointsman.services.pipeline.__main__ import build_on
from pointsman.services.pipeline.config import PipelineSettings

MARKER = '<!-- PIPELINE_ROUTE: {"verdict":"FAIL","route":"DEV","hint":"x"} -->'


@dataclass(frozen=True)
class Shell:
    """Runs the command, in this process, with a control plane at hand."""

    address: str

    async def run(self, *arguments: str, exit_code: int = 0, stdin: str = "") -> str:
        """What the command prints."""
        environment = {"POINTSMAN_SERVER": self.address}
        result = await asyncio.to_thread(CliRunner().invoke, app, list(arguments), stdin, environment)
        assert result.exit_code == exit_code, (result.output, result.exception)
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result.output


@pytest.fixture
async def shell(tmp_path: Path) -> AsyncIterator[Shell]:
    """A shell beside a running pipeline service."""
    service = build_on(Database(f"sqlite:///{tmp_path / 'p.db'}", "pipeline"), PipelineSettings())
    running = await start(lambda _address: [service], ServerSettings(port=0))
    yield Shell(running.address)
    await running.stop()


async def test_a_pipeline_is_driven_drawn_and_followed(shell: Shell, tmp_path: Path) -> None:
    assert "DEV#1 -> me" in await shell.run("start", "quick-dev", "--id", "p1", "--agent", "me")
    await shell.run("complete", "p1", "DEV#1", "--verdict", "PASS", "--agent", "me")
    (tmp_path / "out.txt").write_text(MARKER)
    waiting = await shell.run("complete", "p1", "TEST#1", "--transcript", str(tmp_path / "out.txt"), "--agent", "me")
    assert waiting.startswith("WAIT")
    drawn = await shell.run("show", "p1")
    assert "● REVIEW (by me, in post-dev)   ✗ TEST (in post-dev)" in drawn
    assert "\x1b" not in drawn
    shown = json.loads(await shell.run("show", "p1", "--json"))
    assert shown["summary"]["state"] == "PIPELINE_STATE_ACTIVE"
    assert "CANCELLED" in await shell.run("cancel", "p1")
    followed = await shell.run("watch", "p1")
    assert "PIPELINE_STARTED" in followed
    assert "PIPELINE_CANCELLED" in followed
    assert "p1" in await shell.run("list")


@pytest.mark.parametrize(
    "before",
    ["x" * 3_000_000, "\0\n", "語" * 600_000, "\ud800"],
    ids=["too long", "NUL", "too many bytes", "half a character"],
)
async def test_of_a_transcript_that_no_request_takes_the_end_is_sent(shell: Shell, tmp_path: Path, before: str) -> None:
    await shell.run("start", "fix", "--id", "p1", "--agent", "me")
    (tmp_path / "out.txt").write_bytes(f"{before}\n{MARKER}".encode(errors="surrogatepass"))
    said = await shell.run("complete", "p1", "DEV#1", "--transcript", str(tmp_path / "out.txt"), "--agent", "me")
    assert said.startswith("REPEATED")
    assert "DEV#2" in said


async def test_parse_and_templates_need_no_control_plane() -> None:
    shell = Shell("127.0.0.1:1")
    route = json.loads(await shell.run("parse", "-", stdin=MARKER))
    assert list(route) == [
        "verdict", "route", "severity", "context_file", "hint", "barrier_group", "source", "warnings"
    ]  # fmt: skip
    assert (route["verdict"], route["hint"], route["source"]) == ("FAIL", "x", "MARKER")
    assert (await shell.run("parse", exit_code=1, stdin="nothing")).strip() == "null"
    assert "TEST:write DEV TEST:verify" in await shell.run("templates")
    assert json.loads(await shell.run("templates", "--json"))["fix"]["stages"] == ["DEV"]


async def test_files_go_in_and_out(shell: Shell, tmp_path: Path) -> None:
    await shell.run("start", "fix", "--id", "p1")
    (tmp_path / "state.json").write_text(await shell.run("export", "p1"))
    assert (await shell.run("import", str(tmp_path / "state.json"), "--id", "p2")).strip() == "p2"
    both = json.loads(await shell.run("export", "p2", "--json"))
    assert (json.loads(both["state_json"])["version"], json.loads(both["barrier_json"])) == (4, {})
    again = json.loads(await shell.run("import", str(tmp_path / "state.json"), "--id", "p4", "--json"))
    assert (again["pipeline_id"], again["migrated"]) == ("p4", False)
    assert (await shell.run("import", "-", "--id", "p3", stdin=(tmp_path / "state.json").read_text())).strip() == "p3"
    (tmp_path / "dag.json").write_text('{"nodes":[{"stage":"DEV","next":["DOCS"]},{"stage":"DOCS"}]}')
    assert "DEV waits to be delegated" in await shell.run("start", str(tmp_path / "dag.json"), "--id", "p5")


async def test_people_decide_and_refusals_say_why(shell: Shell) -> None:
    await shell.run("start", "review-only", "--id", "p1", "--agent", "me", "--strict")
    for number in (1, 2):
        await shell.run("complete", "p1", f"REVIEW#{number}", "--agent", "me")
    await shell.run("complete", "p1", "REVIEW#3", "--agent", "me", exit_code=4)
    assert "! REVIEW" in await shell.run("show", "p1", exit_code=4)
    assert "ACTIVE" in await shell.run("restart", "p1", "REVIEW")
    assert "REVIEW#4" in await shell.run("delegate", "p1", "REVIEW", "--agent", "you")
    assert "COMPLETED" in await shell.run("skip", "p1", "REVIEW", "--reason", "seen by hand")
    assert "no pipeline 'p9'" in await shell.run("show", "p9", exit_code=1)
    assert "known are full, standard" in await shell.run("start", "bogus", exit_code=1)
    assert "cleaned 0 pipelines" in await shell.run("clean-up")
    assert "fix (rule: small-fix)" in await shell.run("classify", "fix a typo")


async def test_a_corrupt_barrier_file_is_rebuilt_and_the_pipeline_goes_on(shell: Shell, tmp_path: Path) -> None:
    await shell.run("start", "standard", "--id", "p1", "--agent", "me")
    for stage in ("PLAN", "ARCH", "DEV", "REVIEW"):
        await shell.run("complete", "p1", f"{stage}#1", "--verdict", "PASS", "--agent", "me")
    state, barriers = tmp_path / "new" / "state.json", tmp_path / "barriers.json"
    said = await shell.run("export", "p1", "--output", str(state), "--barrier-file", str(barriers))
    assert (said, json.loads(barriers.read_text())["post-dev"]["completed"]) == ("", ["REVIEW"])
    barriers.write_bytes(barriers.read_bytes()[:20])
    again = ("import", str(state), "--barrier-file", str(barriers), "--id", "p2", "--json")
    assert json.loads(await shell.run(*again))["barriers_rebuilt"] is True
    assert "DOCS#1 -> me" in await shell.run("complete", "p2", "TEST#1", "--verdict", "PASS", "--agent", "me")
    for name in (str(tmp_path), "a\0b", "/proc/nowhere/state.json"):
        assert "cannot write" in await shell.run("export", "p1", "-o", name, exit_code=2)


LIMITED = """
import resource, runpy, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))
sys.argv = ["pointsman", *sys.argv[1:]]
runpy.run_module("pointsman.cli", run_name="__main__")
"""


async def test_a_command_that_is_killed_while_it_writes_a_state_file_leaves_the_old_one(
    shell: Shell, tmp_path: Path
) -> None:
    await shell.run("start", "standard", "--id", "p1", "--agent", "me")
    target = tmp_path / "state.json"
    await shell.run("export", "p1", "-o", str(target))
    before = target.read_text()
    await shell.run("complete", "p1", "PLAN#1", "--verdict", "PASS", "--agent", "me")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-B", "-c", LIMITED, "pipeline", "export", "p1", "-o", str(target),
        env={**os.environ, "POINTSMAN_SERVER": shell.address}, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    assert await process.wait() == -signal.SIGXFSZ
    assert target.read_text() == before
    await shell.run("export", "p1", "-o", str(target))
    assert json.loads(target.read_text())["stages"]["PLAN"]["status"] == "completed"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("implement OAuth login", "standard (rule: feature)"),
        ("make it faster [pipeline:test-first]", "test-first (rule: explicit)"),
        ("更新文件說明", "docs-only (rule: docs-only)"),
    ],
)
async def test_a_task_is_classified_with_its_rule(shell: Shell, text: str, said: str) -> None:
    assert (await shell.run("classify", text)).strip() == said


async def test_an_unknown_pipeline_in_a_text_is_refused_with_the_known_ones(shell: Shell) -> None:
    said = await shell.run("classify", "[pipeline:bogus] x", exit_code=1)
    assert "unknown pipeline 'bogus'; known are full, standard" in said


def spoken(**fields: str) -> str:
    return f"<!-- PIPELINE_ROUTE: {json.dumps(fields)} -->"


@pytest.mark.parametrize(
    ("words", "options", "route", "codes"),
    [
        ({"verdict": "PASS", "route": "DEV"}, (), "NEXT", ["pass-cannot-return"]),
        ({"verdict": "FAIL", "route": "NEXT", "severity": "LOW"}, (), "DEV", ["fail-cannot-go-on"]),
        ({"verdict": "FAIL", "route": "COMPLETE", "severity": "LOW"}, (), "DEV", ["fail-cannot-go-on"]),
        ({"verdict": "FAIL", "route": "ABORT", "severity": "LOW"}, (), "ABORT", []),
        ({"verdict": "PASS", "route": "COMPLETE"}, (), "COMPLETE", []),
        ({"verdict": "PASS", "route": "COMPLETE"}, ("standard", "DEV"), "NEXT", ["complete-before-the-end"]),
        ({"verdict": "PASS", "route": "NEXT"}, ("standard", "REVIEW"), "BARRIER", ["barrier-member"]),
        ({"verdict": "FAIL", "route": "NEXT", "severity": "LOW"}, ("docs-only", "DOCS"), "NEXT", ["forced-on"]),
        ({"verdict": "FAIL", "route": "DEV", "severity": "LOW"}, ("ui-only", "QA", "3"), "NEXT", ["retry-exhausted"]),
    ],
)
async def test_parse_prints_the_route_that_counts(
    words: dict[str, str], options: tuple[str, ...], route: str, codes: list[str]
) -> None:
    named = [item for pair in zip(("--template", "--stage", "--retries"), options, strict=False) for item in pair]
    shown = json.loads(await Shell("127.0.0.1:1").run("parse", *named, stdin=spoken(**words)))
    assert (shown["route"], [warning["code"] for warning in shown["warnings"]]) == (route, codes)


@pytest.mark.parametrize(
    "arguments",
    [
        ("parse", "/no/such/file"),
        ("parse", "/"),
        ("parse", "a\0b"),
        ("parse", "--kind", "COOK"),
        ("parse", "--template", "fix"),
        ("parse", "--template", "fix", "--stage", "TEST"),
        ("parse", "--template", "none", "--stage", "DEV"),
        ("parse", "--template", "bogus", "--stage", "DEV"),
        ("import", "/"),
        ("import", "/no/such/file"),
        ("start", "/no/such/dag.json"),
        ("start", "fix", "--barrier-timeout", "nan"),
        ("start", "fix", "--barrier-timeout", "inf"),
        ("complete", "p", "DEV#1", "--report", "/"),
        ("complete", "p", "DEV#1", "--transcript", "/"),
        ("complete", "p", "DEV#1", "--transcript", "-", "--verdict", "PASS"),
        ("complete", "p", "DEV#1", "--verdict", "PASS", "--route", "HOME"),
        ("complete", "p", "DEV#1", "--route", "ABORT"),
        ("clean-up", "--days", "nan"),
        ("watch", "p", "--after-seq", "99999999999999999999"),
    ],
)
async def test_a_wrong_use_is_exit_code_two_and_never_a_traceback(arguments: tuple[str, ...]) -> None:
    said = await Shell("127.0.0.1:1").run(*arguments, exit_code=2)
    assert "Traceback" not in said


async def test_with_a_nonce_required_only_those_who_know_it_are_believed(shell: Shell) -> None:
    begun = json.loads(await shell.run("start", "fix", "--id", "p1", "--agent", "me", "--require-nonce", "--json"))
    done = ("complete", "p1", "DEV#1", "--agent", "me", "--verdict", "FAIL", "--route", "ABORT", "--hint", "not mine")
    assert json.loads(await shell.run("show", "p1", "--json"))["require_nonce"] is True
    shown = json.loads(await shell.run(*done, "--nonce", begun["next"][0]["nonce"], "--json"))
    assert shown["state"] == "PIPELINE_STATE_ABORTED"
    assert shown["route"]["severity"] == "SEVERITY_MEDIUM"
    await shell.run("start", "fix", "--id", "p2", "--agent", "me", "--require-nonce")
    said = await shell.run("complete", "p2", "DEV#1", "--agent", "me", "--verdict", "FAIL", "--route", "ABORT")
    assert said.startswith("ENDED\n  warning: no route was found")
    assert "COMPLETED" in await shell.run("show", "p2")


async def test_a_typed_route_may_say_complete(shell: Shell) -> None:
    await shell.run("start", "fix", "--id", "p1", "--agent", "me")
    said = await shell.run("complete", "p1", "DEV#1", "--verdict", "PASS", "--route", "COMPLETE", "--agent", "me")
    assert said.startswith("ENDED")


async def test_reports_and_reflections_are_read_by_those_they_are_for(shell: Shell, tmp_path: Path) -> None:
    await shell.run("start", "ui-only", "--id", "p1", "--agent", "me")
    await shell.run("complete", "p1", "DESIGN#1", "--verdict", "PASS", "--agent", "me")
    await shell.run("complete", "p1", "DEV#1", "--verdict", "PASS", "--agent", "me")
    (tmp_path / "report.md").write_text("the button is red")
    failed = ("--verdict", "FAIL", "--severity", "HIGH", "--hint", "red", "--report", str(tmp_path / "report.md"))
    await shell.run("complete", "p1", "QA#1", *failed, "--agent", "me")
    assert (await shell.run("context", "p1", "DEV#2", "context:QA")).strip() == "the button is red"
    assert json.loads(await shell.run("context", "p1", "DEV#2", "context:QA", "--json"))["body"] == "the button is red"
    assert "- Key problem: red" in await shell.run("reflection", "p1", "QA")
    assert json.loads(await shell.run("reflection", "p1", "QA", "--json"))["rounds"] == 1
    assert "no reflection 'DEV'" in await shell.run("reflection", "p1", "DEV", exit_code=1)


async def test_a_server_out_of_reach_is_exit_code_three() -> None:
    assert "cannot reach" in await Shell("127.0.0.1:1").run("list", exit_code=3)


async def test_the_command_works_as_a_process_of_its_own() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "pointsman.cli", "pipeline", "parse", "-",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, _ = await process.communicate(MARKER.encode())
    assert (process.returncode, json.loads(out)["verdict"]) == (0, "FAIL")
