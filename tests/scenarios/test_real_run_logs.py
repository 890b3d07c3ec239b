"""What agents print, from a real process to `pointsman logs`: whole, whose it is, and without secrets."""

import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pointsman.api.orchestrator.v1.run_pb2 import Repository
from pointsman.cli.commands.logs import _show
from pointsman.cli.render.run_progress import PlainView, state_name
from pointsman.cli.session.control_plane import control_plane
from pointsman.cli.session.delivery_branch import put_on_branch
from pointsman.cli.session.follow import follow
from pointsman.cli.session.workers import WorkerSpec, profile_for, worker_for, worker_running, workspace_for
from pointsman.client import Client, Order
from pointsman.worker.git import repository_id, text
from tests.scenarios.test_real_run_waves import FILES
from tests.unit.worker.repositories import repository

AGENT = Path(__file__).parent / "agents" / "talkative.py"
pytestmark = pytest.mark.timeout(150)
SECRET = "the-key-of-the-box"


async def test_the_logs_of_a_run_are_what_its_agents_printed_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POINTSMAN_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("BOX_KEY", SECRET)
    folder = tmp_path / "user"
    base = await repository(folder, FILES)
    profile = profile_for("", shlex.join((sys.executable, "-I", str(AGENT))), ["BOX_KEY"])
    assert profile is not None
    profile = replace(profile, readable=(str(AGENT.parent),))
    spec = WorkerSpec(("coder", "verifier", "surveyor"), profile, name="box")
    wanted = Repository(id=await repository_id(folder), base_commit=base)
    async with control_plane() as plane:
        client = Client(plane.channels["orchestrator"])
        async with worker_running(client, worker_for(await workspace_for([folder]), spec)):
            order = Order("append to the log", wanted, verify_commands=[["make", "check"]], as_action=True)
            run_id = (await client.runs.submit(order)).run.id
            run = await follow(client, run_id, PlainView())
        capsys.readouterr()
        await _show(client, "last", "", follow=False, as_json=False)
        shown = capsys.readouterr().out
        await _show(client, run_id, "T7", follow=True, as_json=False)
        nothing = capsys.readouterr()
        await put_on_branch(client, run_id, folder, "result")
    assert state_name(run) == "COMPLETE"
    message = await text(folder, "log", "-1", "--format=%B", "result")
    assert message.endswith(f"Pointsman-Run: {run_id}\nPointsman-Task: {run.tasks[0].task_id}")
    assert "- CL1: appended" in message
    label = f"{run.tasks[0].task_id} DEV box-coder | "
    lines = [line.removeprefix(label) for line in shown.splitlines() if line.startswith(label)]
    assert lines[0] == "reads the task"
    assert lines[1] == "uses *** and ***"
    assert lines[-1] == "done"
    assert "\x1b" not in shown
    assert SECRET not in shown
    assert nothing.out == ""
    assert "has printed anything for task T7; see" in nothing.err
