"""The user's terms with real processes: several proofs, criteria in words, a pause after each step, and reasons."""

import json
import shlex
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.scenarios.commands import finished, running
from tests.unit.worker.repositories import repository

AGENTS = Path(__file__).parent / "agents"
FILES = {"Makefile": "check:\n\t@test -f log\n", "log": "start\n", ".gitignore": "__pycache__/\n"}
pytestmark = pytest.mark.timeout(240)


def command(agent: str) -> str:
    return shlex.join((sys.executable, "-I", str(AGENTS / agent)))


def words_with(output: str, start: str) -> str:
    return next(word for word in output.split() if word.startswith(start))


async def test_each_proof_is_run_apart_and_a_criterion_in_words_needs_a_claim_and_a_yes(tmp_path: Path) -> None:
    data, folder = {"POINTSMAN_DATA": str(tmp_path / "data")}, tmp_path / "user"
    await repository(folder, {**FILES, "hello": "start\n"})
    terms = ("--verify", "make check", "--verify", "test -f hello", "--accept", "the log is readable")
    arguments = ("run", "append to the log", "--action", "--repo", str(folder), *terms)
    code, output = finished(*arguments, "--command", command("forgetful.py"), "--read", str(AGENTS), **data)
    assert code == 4, output
    assert "failed (attempt 1): the agent's command failed" in output
    for words in ("T1: V1 passed, V2 passed", "no command proves A1 and no reviewer said yes"):
        assert words in output, output
    run_id = words_with(output, "run_")
    code, output = finished("answer", run_id, "accept", **data)
    assert code == 0, output
    code, output = finished("watch", run_id, "--repo", str(folder), **data)
    assert code == 0, output
    code, output = finished("show", run_id, **data)
    for words in (
        "COMPLETE",
        "the disk is full",
        "criterion V1 `make check` passed",
        "criterion V2 `test -f hello` passed",
        "claim CL1 supported",
        "accepted by the person",
    ):
        assert words in output, output


async def test_in_step_mode_the_run_pauses_after_each_task_says_why_and_goes_on(tmp_path: Path) -> None:
    data, folder = {"POINTSMAN_DATA": str(tmp_path / "data")}, tmp_path / "user"
    await repository(folder, FILES)
    with ExitStack() as stack:
        plane = stack.enter_context(running("up", "--port", "0", **data))
        server = ("--server", plane.line_with(" up at ").split(" up at ")[1].split()[0].rstrip("."))
        roles = [word for role in ("planner", "coder", "verifier", "surveyor") for word in ("--role", role)]
        options = ("--command", command("planning_appender.py"), "--read", str(AGENTS), "--repo", str(folder), *server)
        agent = stack.enter_context(running("agent", *roles, *options, **data))
        agent.line_with("working as")
        task = ("append twice", "--action", "--mode", "step", "--verify", "grep -q T2 log", "--repo", str(folder))
        code, output = finished("run", *task, *server, **data)
        assert code == 4, output
        assert "The workflow is paused: task 'T1' is done. RESUME goes on" in output
        run_id = words_with(output, "run_")
        code, output = finished("answer", run_id, "resume", *server, **data)
        assert code == 0, output
        code, output = finished("watch", run_id, *server, **data)
        assert code == 0, output
        code, shown = finished("show", run_id, "--json", *server, **data)
        run = json.loads(shown)
        assert (run["state"], run["execution_mode"]) == ("RUN_STATE_COMPLETE", "EXECUTION_MODE_STEP")
        assert [item["id"] for item in run["acceptance_criteria"]] == ["V1"]
        assert "T2-C1 passed" in output
        assert "V1 passed" in output
