"""The work folder of a worker that is killed: removed when the next worker starts, or by `pointsman clean`."""

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.helpers.eventually import eventually_now
from tests.helpers.hello_repository import example_repository
from tests.helpers.limits import scaled
from tests.scenarios.commands import PATIENT, finished, open_gate, patient, processes_with, running

pytestmark = pytest.mark.timeout(300)


def folders(data: Path) -> list[Path]:
    return [path for path in (data / "worker" / "assignments").glob("*") if path.is_dir()]


async def test_what_a_killed_worker_left_is_removed_by_clean_and_by_the_next_worker(tmp_path: Path) -> None:
    folder, data = await example_repository(tmp_path), tmp_path / "d"
    settings = {"POINTSMAN_DATA": str(data)}

    def killed_at_work(number: int) -> Path:
        """Submit a run, let a coder begin, kill its worker; the folder that stays."""
        gate, before = tmp_path / f"gate{number}", set(folders(data))
        command = patient(gate)
        with running("agent", "--role", "coder", "--command", command, "--repo", str(folder), **settings) as coder:
            task = ("run", "add a greeting to the hello module", "--action", "--detach", "--repo", str(folder))
            code, printed = finished(*task, "--session", f"s{number}", **settings)
            assert code == 0, printed
            eventually_now(lambda: processes_with(f"{PATIENT}\0{gate}"), 120)
            coder.kill()
        eventually_now(lambda: not processes_with(f"{PATIENT}\0{gate}"), 60)
        (left,) = set(folders(data)) - before
        return left

    with ExitStack() as stack:
        stack.enter_context(running("up", "--port", "0", **settings)).line_with(" up at ")
        helper = stack.enter_context(running("agent", "--repo", str(folder), "--name", "helper", **settings))
        helper.line_with("working as")
        left = killed_at_work(1)
        code, printed = finished("clean", "--dry-run", "--json", **settings)
        assert (code, [one["path"] for one in json.loads(printed)["folders"]]) == (0, [str(left)]), printed
        assert left.exists()
        code, printed = finished("clean", **settings)
        assert (code, f"removed  {left}" in printed, left.exists()) == (0, True, False), printed
        assert finished("clean", **settings) == (0, "nothing is left behind\n")
        again = killed_at_work(2)
        with running("agent", "--repo", str(folder), "--name", "next", **settings) as following:
            following.line_with(f"removed {again}, left by a worker that was killed")
            assert not again.exists()


def test_clean_says_what_is_wrong_with_the_directory_it_is_given(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code, printed = finished("clean", "--data", str(tmp_path / "missing"))
    assert (code, printed) == (2, f"pointsman: --data: there is no directory {tmp_path / 'missing'}\n")
    code, printed = finished("clean", POINTSMAN_DATA=str(tmp_path / "file"))
    assert (code, printed) == (2, f"pointsman: POINTSMAN_DATA: there is no directory {tmp_path / 'file'}\n")
    assert finished("clean", POINTSMAN_DATA=str(tmp_path / "new")) == (0, "nothing is left behind\n")


async def test_a_lost_lease_is_told_to_those_who_watch_the_run(tmp_path: Path) -> None:
    folder, gate = await example_repository(tmp_path), tmp_path / "gate"
    settings = {"POINTSMAN_DATA": str(tmp_path / "d"), "POINTSMAN_ORCHESTRATOR_LEASE_SECONDS": str(scaled(5))}
    command = patient(gate)
    coder = ("agent", "--role", "coder", "--command", command, "--repo", str(folder), "--name")
    task = ("run", "add a greeting to the hello module", "--action", "--repo", str(folder))
    with ExitStack() as stack:
        stack.enter_context(running("up", "--port", "0", **settings)).line_with(" up at ")
        first = stack.enter_context(running(*coder, "first", **settings))
        run = stack.enter_context(running(*task, **settings))
        eventually_now(lambda: processes_with(f"{PATIENT}\0{gate}"), 120)
        first.kill()
        run.line_with("first-coder is gone (attempt 1): no heartbeat came; its work is offered again")
        open_gate(gate)
        stack.enter_context(running(*coder, "second", **settings))
        assert run.wait(120) == 0, run.lines
        assert [line for line in run.lines if "T1: changed hello/__init__.py" in line], run.lines
