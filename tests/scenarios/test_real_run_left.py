"""A run that its command leaves: it goes on in the background, or it waits and says how to go on; no attempt is lost."""

import os
import shlex
import signal
from pathlib import Path

import pytest

from pointsman.worker.git import text
from tests.helpers.eventually import eventually_now
from tests.helpers.hello_repository import example_repository
from tests.scenarios.commands import PATIENT, finished, open_gate, patient, processes_with, running

pytestmark = pytest.mark.timeout(240)


def coder(gate: Path) -> str:
    return patient(gate)


def at_the_gate(gate: Path) -> list[int]:
    return processes_with(f"{PATIENT}\0{gate}")


def run_in(output: str) -> str:
    return next(word for word in output.split() if word.startswith("run_"))


async def test_a_detached_run_goes_on_without_its_command_and_is_put_on_a_branch(tmp_path: Path) -> None:
    folder, gate, data = await example_repository(tmp_path), tmp_path / "gate", tmp_path / "data"
    task = ("run", "add a greeting to the hello module", "--action", "--detach", "--repo", str(folder))
    code, output = finished(*task, "--command", coder(gate), POINTSMAN_DATA=str(data))
    assert code == 0, output
    run_id = run_in(output)
    eventually_now(lambda: at_the_gate(gate), 60)
    open_gate(gate)
    code, output = finished("watch", run_id, POINTSMAN_DATA=str(data))
    assert code == 0, output
    log = data / "detached" / f"{run_id}.log"
    eventually_now(lambda: "your working tree is as it was" in log.read_text(), 30)
    assert await text(folder, "branch", "--list", f"pointsman/{run_id}")


async def test_a_run_that_is_interrupted_in_a_pipe_says_how_to_go_on_and_loses_no_attempt(tmp_path: Path) -> None:
    folder, gate, data = await example_repository(tmp_path), tmp_path / "gate", {"POINTSMAN_DATA": str(tmp_path / "d")}
    task = ("run", "add a greeting to the hello module", "--action", "--repo", str(folder))
    with running(*task, "--command", coder(gate), **data) as command:
        eventually_now(lambda: at_the_gate(gate), 60)
        os.kill(command.pid, signal.SIGINT)
        assert command.wait() == 130, command.lines
        (told,) = [line for line in command.lines if "Go on: " in line]
    open_gate(gate)
    resume_command = shlex.split(told.partition("Go on: ")[2])
    code, output = finished(*resume_command[1:], **data)
    assert code == 0, output
    assert "failed (attempt" not in output
    code, output = finished("show", run_in(output), **data)
    assert "the worker was stopped" not in output


async def test_work_that_nobody_takes_is_named_with_the_command_that_starts_somebody(tmp_path: Path) -> None:
    folder, data = await example_repository(tmp_path), {"POINTSMAN_DATA": str(tmp_path / "d")}
    with running("up", "--port", "0", **data) as plane:
        plane.line_with(" up at ")
        task = ("run", "add a greeting to the hello module", "--action", "--detach", "--repo", str(folder))
        code, output = finished(*task, **data)
        assert code == 0, output
        with running("watch", run_in(output), **data) as watching:
            watching.line_with("nobody takes the work of a surveyor; start both: pointsman agent --repo .")


async def test_an_answer_is_told_when_nobody_works_on_the_run_any_more(tmp_path: Path) -> None:
    folder, gate, data = await example_repository(tmp_path), tmp_path / "gate", {"POINTSMAN_DATA": str(tmp_path / "d")}
    open_gate(gate)
    terms = ("--budget", "assignments=1", "--repo", str(folder), "--command", coder(gate))
    code, output = finished("run", "add a greeting to the hello module", "--action", *terms, **data)
    assert code == 4, output
    (told,) = [line for line in output.splitlines() if " raise --budget assignments=2" in line]
    code, output = finished(*shlex.split(told)[1:], **data)
    assert code == 0, output
    assert "nobody works on it now; go on" in output
