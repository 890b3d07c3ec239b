"""The main job with real processes, real git and real tests: complete, and the same after kill -9 of anything."""

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from pointsman.api.orchestrator.v1.run_pb2 import Repository
from pointsman.cli.commands.audit import findings
from pointsman.cli.session.delivery_branch import put_on_branch
from pointsman.client import Client, Order, Terms, connect
from pointsman.worker.git import git, repository_id, text, uncommitted
from tests.helpers.eventually import eventually_now
from tests.helpers.hello_repository import example_repository
from tests.helpers.limits import scaled
from tests.scenarios.commands import PATIENT, Running, finished, open_gate, patient, processes_with, running

VERIFY = ("python3", "-m", "unittest", "discover", "-q")
pytestmark = pytest.mark.timeout(240)


@dataclass(slots=True)
class World:
    """A user's repository, a data directory, a gate that the coder waits at, and the processes."""

    repository: Path
    gate: Path
    environment: dict[str, str]
    stack: ExitStack
    plane: Running | None = None
    coder: Running | None = None
    address: str = ""

    def start_plane(self) -> None:
        """The control plane; again on the same port once it had one."""
        port = self.address.rpartition(":")[2] or "0"
        self.plane = self.stack.enter_context(running("up", "--port", port, **self.environment))
        self.stack.callback(_report, self.plane)
        self.address = self.plane.line_with(" up at ").split(" up at ")[1].split()[0].rstrip(".")

    def start_agent(self, *options: str) -> Running:
        """A worker on the user's repository."""
        arguments = ("agent", *options, "--repo", str(self.repository))
        agent = self.stack.enter_context(running(*arguments, **self.environment))
        agent.line_with("working as")
        return agent

    def start_coder(self) -> None:
        """The coder that waits at the gate."""
        command = patient(self.gate)
        self.coder = self.start_agent("--role", "coder", "--name", "box", "--command", command)

    def wait_for_the_coder(self) -> None:
        """Until the coder's command is at the gate."""
        eventually_now(self.at_the_gate, 60)

    def at_the_gate(self) -> list[int]:
        """Processes of the coder's command itself, not of whoever started it."""
        return processes_with(f"{PATIENT}\0{self.gate}")


def _report(plane: Running) -> None:
    """Prints what a control plane said and whether it still runs, for a test that fails."""
    print("the control plane", "has ended:" if plane.ended else "still runs:", plane.lines)


@pytest.fixture
async def world(tmp_path: Path) -> Iterator[World]:  # type: ignore[misc]
    repository = await example_repository(tmp_path)
    environment = {"POINTSMAN_DATA": str(tmp_path / "data"), "POINTSMAN_ORCHESTRATOR_LEASE_SECONDS": str(scaled(3))}
    with ExitStack() as stack:
        yield World(repository, tmp_path / "gate", environment, stack)


async def submitted(world: World, client: Client) -> str:
    """A run on the user's repository."""
    base = await text(world.repository, "rev-parse", "HEAD")
    repository = Repository(id=await repository_id(world.repository), base_commit=base)
    order = Order("add a greeting to the hello module", repository, [VERIFY], as_action=True)
    return (await client.runs.submit(order)).run.id


async def check_delivery(world: World, client: Client, run_id: str) -> None:
    """COMPLETE, accepted once, the journal whole, the result on a branch, the user's tree as it was."""
    journal = [transition async for transition in client.runs.watch(run_id)]
    assert journal[-1].to_state == "COMPLETE", (journal[-1], world.plane and world.plane.lines)
    assert findings(journal, await client.runs.machine(), "local") == []
    judged = [json.loads(row.payload_json)["accepted"] for row in journal if row.event == "task_judged"]
    assert judged == [True]
    assert [row.event for row in journal].count("work_handed_in") == 1
    branch = f"pointsman/{run_id}"
    await put_on_branch(client, run_id, world.repository, branch)
    assert b'f"Hello, {name}!"' in await git(world.repository, "show", f"{branch}:hello/__init__.py")
    assert await uncommitted(world.repository) == ()
    assert await text(world.repository, "branch", "--show-current") == "main"


@pytest.mark.parametrize("victims", [("plane",), ("coder",), ("plane", "coder")], ids="+".join)
async def test_after_kill_9_the_same_delivery_and_nothing_twice(victims: tuple[str, ...], world: World) -> None:
    world.start_plane()
    world.start_agent("--name", "box")
    world.start_coder()
    data = Path(world.environment["POINTSMAN_DATA"])
    async with connect("", Terms(patience_seconds=scaled(60)), data=data) as client:
        run_id = await submitted(world, client)
        world.wait_for_the_coder()
        for victim in victims:
            getattr(world, victim).kill()
        if "coder" in victims:
            eventually_now(lambda: not world.at_the_gate(), 10)
        if "plane" in victims:
            world.start_plane()
        if "coder" in victims:
            world.start_coder()
        open_gate(world.gate)
        await check_delivery(world, client, run_id)


def test_make_run_shows_a_crew_a_lie_a_collision_and_a_review_and_ends_proven(tmp_path: Path) -> None:
    code, output = finished("demo", POINTSMAN_DATA=str(tmp_path), PATH=os.environ["PATH"])
    assert code == 0, output
    for words in (
        "plan of 3 tasks",
        "-coder-2 writes the code",
        "total() has no docstring: say what it is for",
        "T2: sent back at TEST",
        "only the author's changes of tests hide it: tests.test_stock.StockTest.test_left",
        "T2 rejected by the verifier: conflict in shop/__init__.py",
        "T1 accepted by the verifier, PROVEN",
        "T3 accepted by the verifier, PROVEN",
        "COMPLETE  run_",
        ", PROVEN",
        "your working tree is as it was",
        'run "…" --agent claude',
        "trace ",
        " audit run_",
    ):
        assert words in output


async def test_a_run_that_only_a_person_can_accept_waits_with_exit_4(world: World) -> None:
    command = patient(world.gate)
    open_gate(world.gate)
    await git(world.repository, "rm", "-q", "-r", "tests")
    await git(world.repository, "commit", "-q", "-m", "no tests")
    arguments = ("run", "write a greeting in hello/__init__.py", "--action", "--repo", str(world.repository))
    code, output = finished(*arguments, "--command", command, **world.environment)
    assert code == 4, output
    assert "pointsman answer run_" in output
    run_id = next(word for word in output.split() if word.startswith("run_"))
    code, output = finished("answer", run_id, "accept", **world.environment)
    assert code == 0, output


async def test_a_repository_that_ignores_nothing_can_be_worked_on(world: World) -> None:
    command = patient(world.gate)
    open_gate(world.gate)
    await git(world.repository, "rm", "-q", ".gitignore")
    await git(world.repository, "commit", "-q", "-m", "nothing is ignored")
    arguments = ("run", "add a greeting to the hello module", "--action", "--repo", str(world.repository))
    code, output = finished(*arguments, "--command", command, **world.environment)
    assert code == 0, output
    assert "T1: changed hello/__init__.py\n" in output
    run_id = next(word for word in output.split() if word.startswith("run_"))
    given = ("--repo", str(world.repository / "hello"), "--branch", "mine", "--json")
    code, output = finished("deliver", run_id, *given, **world.environment)
    assert code == 0, output
    assert json.loads(output) == {
        "run_id": run_id,
        "branch": "mine",
        "commit": await text(world.repository, "rev-parse", "mine"),
    }
