"""The resident workers of `pointsman up`: work that is started elsewhere is done, and all ends with `up`."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from pointsman.api.orchestrator.v1.run_pb2 import RUN_STATE_COMPLETE, Repository
from pointsman.client import Client, Order
from pointsman.worker.git import git, repository_id, text
from tests.helpers.eventually import eventually, eventually_now
from tests.helpers.hello_repository import example_repository
from tests.helpers.limits import scaled
from tests.helpers.loopback import open_as
from tests.scenarios.commands import PATIENT, Running, finished_in, open_gate, patient, processes_with

ALL_ROLES = Path(__file__).parent / "agents" / "all_roles.py"
ROLES = ("planner", "researcher", "designer", "coder", "reviewer")
CREW = "[crew]\n" + "".join(f'{role} = "claude"\n' for role in ROLES)
VERIFY = [["python3", "-m", "unittest", "discover", "-q"]]
pytestmark = pytest.mark.timeout(300)


class Up:
    """`pointsman up` in a repository."""

    def __init__(self, folder: Path, data: Path, *arguments: str, **environment: str) -> None:
        self.data = data
        self.settings = {"POINTSMAN_DATA": str(data), **environment}
        self.process = Running(("up", "--port", "0", *arguments), self.settings, folder)
        self.address = self.process.line_with(" up at ").split()[4]

    def __enter__(self) -> "Up":
        return self

    def __exit__(self, *_: object) -> None:
        if not self.process.ended:
            self.process.kill()

    def down(self) -> int:
        """Ends it by `pointsman down`; its own exit code."""
        code, printed = finished_in(self.data, "down", **self.settings)
        assert code == 0, printed
        return self.process.wait()

    async def submit(self, folder: Path, verify: Sequence[Sequence[str]] = ()) -> str:
        """Starts a run as the console does: with a repository and a commit, and no crew of its own."""
        repository = Repository(id=await repository_id(folder), base_commit=await text(folder, "rev-parse", "HEAD"))
        order = Order("add a greeting to the hello module", repository, as_action=True, verify_commands=verify)
        async with open_as(self.data, self.address) as channel:
            return (await Client(channel).runs.submit(order)).run.id

    async def agents(self) -> set[str]:
        """The roles of the agents that are there, without the name of the machine."""
        async with open_as(self.data, self.address) as channel:
            return {one.id.split("-up-")[-1] async for one in Client(channel).agents.all()}

    async def completes(self, run_id: str) -> None:
        async def ended() -> bool:
            async with open_as(self.data, self.address) as channel:
                run = await Client(channel).runs.get(run_id)
            assert not run.HasField("question"), run.question.text
            return run.state == RUN_STATE_COMPLETE

        await eventually(ended, 120)


def fake_claude(folder: Path, script: Path) -> str:
    """A PATH on which `claude` is one of our scripts."""
    folder.mkdir()
    program = folder / "claude"
    program.write_text(f"#!{sys.executable} -I\n{script.read_text()}")
    program.chmod(0o755)
    return os.pathsep.join((str(folder), os.environ["PATH"]))


async def with_crew(parent: Path) -> Path:
    folder = await example_repository(parent)
    (folder / "pointsman.toml").write_text(CREW)
    await git(folder, "add", "-A")
    await git(folder, "commit", "-q", "-m", "name a crew")
    return folder


def waiting_at(gate: Path) -> Sequence[int]:
    return processes_with(f"{PATIENT}\0{gate}")


async def _all_are_there(up: Up, roles: set[str]) -> bool:
    return await up.agents() == roles


async def test_up_does_the_work_that_somebody_else_submits_and_down_ends_it(tmp_path: Path) -> None:
    folder, path = await with_crew(tmp_path), fake_claude(tmp_path / "bin", ALL_ROLES)
    with Up(folder, tmp_path / "data", PATH=path) as up:
        assert "planner claude" in up.process.line_with("crew: ")
        await eventually(lambda: _all_are_there(up, {*ROLES, "coder-2", "verifier", "surveyor"}), 60)
        assert processes_with(str(tmp_path / "bin" / "claude")) == [], "an idle worker starts no agent"
        await up.completes(await up.submit(folder))
        assert up.down() == 0


async def test_a_resident_coder_ends_with_up_and_goes_on_with_the_next(tmp_path: Path) -> None:
    folder, gate = await example_repository(tmp_path), tmp_path / "gate"
    crew = ("--coder", f"cmd:{patient(gate)}", "--read", str(gate))
    short = {"POINTSMAN_ORCHESTRATOR_LEASE_SECONDS": str(scaled(3))}
    with Up(folder, tmp_path / "data", *crew, **short) as up:
        run_id = await up.submit(folder, VERIFY)
        eventually_now(lambda: waiting_at(gate), 60)
        assert up.down() == 0
    eventually_now(lambda: not waiting_at(gate), 30)
    with Up(folder, tmp_path / "data", *crew, **short):
        eventually_now(lambda: waiting_at(gate), 60)
    eventually_now(lambda: not waiting_at(gate), 30)  # after kill -9, which is how the block ends
    with Up(folder, tmp_path / "data", *crew, **short) as up:
        open_gate(gate)
        await up.completes(run_id)


async def test_without_a_crew_up_has_no_agent_and_a_missing_program_is_said_at_once(tmp_path: Path) -> None:
    folder = await with_crew(tmp_path)
    with Up(folder, tmp_path / "data", "--no-crew", PATH=_plain_path()) as up:
        assert await up.agents() == set()
        assert up.down() == 0
    code, printed = finished_in(folder, "up", "--port", "0", POINTSMAN_DATA=str(tmp_path / "data"), PATH=_plain_path())
    assert (code, "`pointsman up --no-crew` starts without workers" in printed) == (2, True), printed


def _plain_path() -> str:
    """A PATH without `claude`."""
    folders = os.environ["PATH"].split(os.pathsep)
    return os.pathsep.join(one for one in folders if not (Path(one) / "claude").exists())
