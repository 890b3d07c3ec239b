"""Which command has a control plane inside, how others find it, and how it moves: real processes, real kills."""

import json
import os
import signal
from pathlib import Path

import pytest

from pointsman.cli.session.control_plane import Absent, control_plane
from pointsman.client import Client
from pointsman.credentials.location import LOCK, owner_of
from pointsman.worker.git import git
from tests.helpers.eventually import eventually_now
from tests.helpers.hello_repository import example_repository
from tests.scenarios.commands import PATIENT, Running, finished, open_gate, patient, processes_with, running

pytestmark = pytest.mark.timeout(300)


def coder(gate: Path) -> str:
    return patient(gate)


def at_the_gate(gate: Path) -> list[int]:
    return processes_with(f"{PATIENT}\0{gate}")


def task_on(folder: Path, gate: Path) -> tuple[str, ...]:
    task = ("run", "add a greeting to the hello module", "--action", "--repo", str(folder))
    return (*task, "--command", coder(gate))


def idle_agents(address: str, data: dict[str, str]) -> set[str]:
    code, printed = finished("agents", "--json", "--server", address, **data)
    assert code == 0, printed
    return {one["id"] for one in json.loads(printed) if one["state"] == "AGENT_STATE_IDLE"}


def address_of(plane: Running) -> str:
    return plane.line_with(" up at ").split()[4]


async def test_an_agent_waits_for_a_control_plane_and_never_becomes_one(tmp_path: Path) -> None:
    folder, data = await example_repository(tmp_path), {"POINTSMAN_DATA": str(tmp_path / "d")}
    with running("agent", "--repo", str(folder), "--name", "first", **data) as agent:
        told = agent.line_with("waiting for a control plane")
        assert "pointsman up" in told
        assert owner_of(tmp_path / "d" / LOCK) is None
        with running("up", "--port", "0", **data) as plane:
            address = address_of(plane)
            agent.line_with("working as first-verifier")
            eventually_now(lambda: {"first-verifier", "first-surveyor"} <= idle_agents(address, data), 60)
            assert [line for line in agent.lines if "waiting for a control plane" in line] == [told]


async def test_after_kill_9_of_up_and_a_worker_everybody_meets_at_the_new_address(tmp_path: Path) -> None:
    folder, data = await example_repository(tmp_path), {"POINTSMAN_DATA": str(tmp_path / "d")}

    def agent(name: str) -> tuple[str, ...]:
        return ("agent", "--repo", str(folder), "--name", name)

    with running("up", "--port", "0", **data) as plane, running(*agent("steady"), **data) as steady:
        first = address_of(plane)
        steady.line_with("working as")
        with running(*agent("victim"), **data) as victim:
            victim.line_with("working as")
            victim.kill()
        plane.kill()
        with running(*agent("newcomer"), **data) as newcomer, running("up", "--port", "0", **data) as again:
            second = address_of(again)
            assert second != first
            newcomer.line_with("working as")
            here = {"steady-verifier", "newcomer-verifier"}
            eventually_now(lambda: here <= idle_agents(second, data), 120)


async def test_up_takes_over_from_a_run_that_embeds_and_the_run_goes_on_there(tmp_path: Path) -> None:
    folder, gate, data = await example_repository(tmp_path), tmp_path / "gate", {"POINTSMAN_DATA": str(tmp_path / "d")}
    with running(*task_on(folder, gate), **data) as command:
        command.line_with("this command has one inside")
        eventually_now(lambda: at_the_gate(gate), 60)
        with running("up", "--port", "0", **data) as plane:
            address = address_of(plane)
            command.line_with("moved to `pointsman up`")
            assert at_the_gate(gate)
            open_gate(gate)
            assert command.wait(120) == 0, command.lines
            assert not plane.ended
            code, printed = finished("runs", "--state", "complete", "--server", address, **data)
            assert (code, printed.count("COMPLETE")) == (0, 1), printed
    assert not [line for line in command.lines if "failed (attempt" in line]


async def test_a_run_goes_on_with_a_control_plane_of_its_own_when_the_one_it_used_is_killed(tmp_path: Path) -> None:
    folder, gate, data = await example_repository(tmp_path), tmp_path / "gate", {"POINTSMAN_DATA": str(tmp_path / "d")}
    with running("up", "--port", "0", **data) as plane:
        address_of(plane)
        with running(*task_on(folder, gate), **data) as command:
            eventually_now(lambda: at_the_gate(gate), 60)
            assert not [line for line in command.lines if "has one inside" in line]
            plane.kill()
            command.line_with("this command has one inside")
            open_gate(gate)
            assert command.wait(120) == 0, command.lines


async def test_watch_does_not_advise_to_start_an_agent_that_is_there(tmp_path: Path) -> None:
    data = {"POINTSMAN_DATA": str(tmp_path / "d")}
    folder, other = await example_repository(tmp_path), await example_repository(tmp_path)
    (other / "more").touch()
    await git(other, "checkout", "-q", "--orphan", "another")
    await git(other, "add", "-A")
    await git(other, "commit", "-q", "-m", "another root")
    with running("up", "--port", "0", **data) as plane:
        address_of(plane)
        with running("agent", "--repo", str(other), "--name", "far", **data) as agent:
            agent.line_with("working as")
            task = ("run", "add a greeting to the hello module", "--action", "--detach", "--repo", str(folder))
            code, printed = finished(*task, **data)
            assert code == 0, printed
            run_id = next(word for word in printed.split() if word.startswith("run_"))
            with running("watch", run_id, **data) as watching:
                watching.line_with("far-surveyor can do the work of a surveyor and is there, but does not take it")
                assert not [line for line in watching.lines if "start both" in line]


def test_a_second_up_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    data = {"POINTSMAN_DATA": str(tmp_path)}
    with running("up", "--port", "0", **data) as plane:
        address = address_of(plane)
        code, printed = finished("up", "--port", "0", **data)
        assert (code, address in printed) == (1, True), printed
        assert not plane.ended


async def test_a_short_command_opens_the_stores_for_itself_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POINTSMAN_DATA", str(tmp_path))
    async with control_plane(absent=Absent.PRIVATE) as plane:
        assert plane.embedded
        assert [run async for run in Client(plane.channels["orchestrator"]).runs.all()] == []
        owner = owner_of(tmp_path / LOCK)
        assert owner is not None
        assert (owner.pid, owner.address) == (os.getpid(), "")


async def test_a_run_that_nobody_drives_is_not_watched_but_named_with_the_ways_to_go_on(tmp_path: Path) -> None:
    folder, gate, data = await example_repository(tmp_path), tmp_path / "gate", {"POINTSMAN_DATA": str(tmp_path / "d")}
    with running(*task_on(folder, gate), **data) as command:
        eventually_now(lambda: at_the_gate(gate), 60)
        os.kill(command.pid, signal.SIGTERM)
        command.wait()
    run_id = next(word for line in command.lines for word in line.split() if word.startswith("run_"))
    code, printed = finished("watch", run_id, **data)
    assert code == 3, printed
    assert "pointsman up" in printed
    assert f"watch {run_id} --repo" in printed


@pytest.mark.parametrize("command", [("workflow", "watch", "w"), ("pipeline", "watch", "p")])
def test_what_is_followed_for_long_needs_a_control_plane_that_runs(command: tuple[str, ...], tmp_path: Path) -> None:
    code, printed = finished(*command, POINTSMAN_DATA=str(tmp_path))
    assert code == 3, printed
    assert f"no control plane runs on {tmp_path}; start one: pointsman up" in printed
