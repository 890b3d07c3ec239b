"""The rules of the thinking specification, tried with `pointsman thinking` on real files."""

import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pointsman.cli.commands.thinking import app
from pointsman.services.chassis.core.clock import SystemClock
from tests.unit.router.test_command_line import think, write

NEEDS_RESEARCH = "needs: [RESEARCH]\nenvelope: {status: OK, timestamp: '2025-12-28T10:00:00Z'}\n"
RESEARCHED = "envelope: {status: OK, timestamp: '2025-12-28T11:00:00Z'}\n"
SEARCH_FAILED = "envelope: {status: ERROR, timestamp: '2025-12-28T11:00:00Z'}\n"
LEAK = "needs: [RESEARCH]\nenv_check: {DATABASE_URL: 'postgres://host/db'}\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".claude" / "state" / "thinking").mkdir(parents=True)
    return tmp_path


def latch(minutes: int, pid: int) -> str:
    """A latch of this age."""
    created = SystemClock().now() - timedelta(minutes=minutes)
    return f"pid: {pid}\ncreated_at: {created:%Y-%m-%dT%H:%M:%SZ}\nreason: BASH_FAILED\n"


ALIVE, GONE = os.getpid(), 999_999_999
ROWS: dict[str, tuple[dict[str, Any], str | None, str, str | None]] = {
    "active latch": ({"latch": (58, ALIVE)}, "thingking", "OK", None),
    "latch of an hour": ({"latch": (61, ALIVE)}, "thingking", "OK", "STALE_LOCK"),
    "latch without its process": ({"latch": (1, GONE)}, "thingking", "OK", "STALE_LOCK"),
    "latch before blocker": ({"latch": (1, ALIVE), "blocker": NEEDS_RESEARCH}, "thingking", "OK", None),
    "no blocker": ({"trail": "steps: []\n"}, "thingking", "OK", None),
    "blocker needs research": ({"blocker": NEEDS_RESEARCH}, "thingking_web", "OK", None),
    "no delta": (
        {"blocker": NEEDS_RESEARCH, "research": RESEARCHED, "plan": "ready: true\n"},
        "thingking_web", "OK", None,
    ),
    "incomplete delta": (
        {"blocker": NEEDS_RESEARCH, "research": RESEARCHED, "delta": "complete: false\n", "plan": "ready: true\n"},
        "thingking_web", "OK", None,
    ),
    "no plan": (
        {"blocker": NEEDS_RESEARCH, "research": RESEARCHED, "delta": "complete: true\n"},
        "thingking_web", "OK", None,
    ),
    "plan not ready": (
        {"blocker": NEEDS_RESEARCH, "research": RESEARCHED, "delta": "complete: true\n", "plan": "ready: false\n"},
        "thingking_web", "OK", None,
    ),
    "all ready": (
        {"blocker": NEEDS_RESEARCH, "research": RESEARCHED, "delta": "complete: true\n", "plan": "ready: true\n"},
        None, "OK", None,
    ),
    "failed search": ({"blocker": NEEDS_RESEARCH, "research": SEARCH_FAILED}, None, "ERROR", "SEARCH_FAILED"),
    "failed search under a latch": (
        {"latch": (1, ALIVE), "blocker": NEEDS_RESEARCH, "research": SEARCH_FAILED},
        None, "ERROR", "SEARCH_FAILED",
    ),
    "leak": ({"blocker": LEAK}, None, "ERROR", "SECRET_LEAK"),
    "leak under a latch": ({"latch": (1, ALIVE), "blocker": LEAK}, None, "ERROR", "SECRET_LEAK"),
    "nothing to go on": ({"blocker": "needs: []\n"}, None, "ERROR", "MISSING_ARTIFACT"),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
def test_each_rule_routes_the_files_that_it_describes(project: Path, row: str) -> None:
    files, routed_to, status, error_code = ROWS[row]
    for name, content in files.items():
        if name == "latch":
            (project / "latch.lock").write_text(latch(*content), encoding="utf-8")
        else:
            write(project, name, content)
    code, envelope = think(project)
    assert (envelope["routed_to"], envelope["status"], envelope["error_code"]) == (routed_to, status, error_code)
    assert code == (1 if status == "ERROR" else 0)


def test_the_latch_is_looked_for_below_the_home_and_stays_there(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(project))
    file = project / ".claude" / "latch.lock"
    file.write_text(latch(90, ALIVE), encoding="utf-8")
    result = CliRunner().invoke(app, ["--dir", str(project), "--json"])
    envelope = json.loads(result.stdout)
    assert (envelope["routed_to"], envelope["error_code"]) == ("thingking", "STALE_LOCK")
    assert "remove it by hand" in envelope["warn"]
    assert file.exists()


@pytest.mark.parametrize("signal", ["last_bash_exit_code: 1", "last_tool_exit_code: 1", "external_signal: RESEARCH"])
@pytest.mark.parametrize("artifact", ["blocker", "trail", "research", "delta", "plan"])
def test_the_withdrawn_signals_decide_nothing(project: Path, signal: str, artifact: str) -> None:
    ready = {
        "blocker": NEEDS_RESEARCH,
        "trail": "steps: []\n",
        "research": RESEARCHED,
        "delta": "complete: true\n",
        "plan": "ready: true\n",
    }
    for name, content in ready.items():
        write(project, name, content + (f"{signal}\n" if name == artifact else ""))
    code, envelope = think(project)
    assert (code, envelope["routed_to"], envelope["next"]) == (0, None, "execute the plan")


@pytest.mark.parametrize("signal", ["last_bash_exit_code: 1", "last_tool_exit_code: 1", "external_signal: RESEARCH"])
def test_a_withdrawn_signal_alone_routes_nowhere(project: Path, signal: str) -> None:
    write(project, "blocker", f"needs: []\n{signal}\n")
    assert think(project)[1]["error_code"] == "MISSING_ARTIFACT"


@pytest.mark.parametrize("option", ["--force", "--skip", "--verbose"])
def test_the_withdrawn_options_are_refused(project: Path, option: str) -> None:
    result = CliRunner().invoke(app, ["--dir", str(project), option])
    assert result.exit_code == 2
    assert f"No such option: {option}" in result.stderr


def test_the_decision_depends_on_files_only_and_is_the_same_each_time(project: Path) -> None:
    write(project, "blocker", NEEDS_RESEARCH)
    first, second = think(project)[1], think(project)[1]
    assert {**first, "timestamp": ""} == {**second, "timestamp": ""}
    assert first["artifacts_written"] == []
    assert sorted(path.name for path in (project / ".claude" / "state" / "thinking").iterdir()) == [
        "blocker.latest.yaml"
    ]


def step(project: Path, name: str, artifacts: str) -> str:
    """A command that notes its name and writes these artifacts."""
    written = " ".join(f".claude/state/thinking/{artifact}.latest.yaml" for artifact in artifacts.split())
    return f"sh -c 'echo {name} >> {project}/steps; touch {project}/steps {written}'"


def test_full_runs_the_local_analysis_before_the_web(project: Path) -> None:
    commands = [
        "--web-command", step(project, "thingking_web", "research delta plan"),
        "--local-command", step(project, "thingking", "blocker trail"),
    ]  # fmt: skip
    result = CliRunner().invoke(app, ["full", "--dir", str(project), *commands])
    assert result.exit_code == 0, result.output
    assert (project / "steps").read_text() == "thingking\nthingking_web\n"


def test_full_stops_where_a_step_leaves_an_artifact_out(project: Path) -> None:
    commands = [
        "--local-command", step(project, "thingking", "blocker"),
        "--web-command", step(project, "thingking_web", "research delta plan"),
    ]  # fmt: skip
    result = CliRunner().invoke(app, ["full", "--dir", str(project), *commands])
    assert result.exit_code == 1
    assert "step thingking stopped (missing: trail.latest.yaml)" in result.stderr
    assert (project / "steps").read_text() == "thingking\n"
