"""A hostile agent is contained and named: real processes, real git, a real control plane."""

import shlex
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pointsman.api.orchestrator.v1.run_pb2 import Repository
from pointsman.cli.session.control_plane import control_plane
from pointsman.cli.session.workers import WorkerSpec, profile_for, worker_for, worker_running, workspace_for
from pointsman.client import Client, Order
from pointsman.sandbox import Level, available_level
from pointsman.worker import Limits
from pointsman.worker.git import repository_id, text, uncommitted
from tests.helpers.hello_repository import example_repository
from tests.helpers.limits import scaled, within
from tests.scenarios.commands import processes_with

AGENT = Path(__file__).parent / "agents" / "hostile.py"
WRITTEN_NOWHERE = "claims.json: is missing" if available_level() >= Level.NAMESPACES else "Permission denied"
"""In namespaces it writes into a folder that only the sandbox has."""
VERIFY = ("python3", "-m", "unittest", "discover", "-q")
# One after the other: each looks for processes that the agent of all of them may have left behind.
pytestmark = [pytest.mark.timeout(120), pytest.mark.xdist_group("hostile")]


@dataclass(frozen=True, slots=True)
class Stage:
    """Where a hostile agent plays: a control plane, and a user's repository."""

    client: Client
    repository: Path
    victim: Path


@pytest.fixture
async def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    monkeypatch.setenv("POINTSMAN_DATA", str(tmp_path / "data"))
    folder = await example_repository(tmp_path)
    async with control_plane() as plane:
        yield Stage(Client(plane.channels["orchestrator"]), folder, tmp_path / "victim")


async def first_failure(stage: Stage, how: str, limits: Limits) -> str:
    """What the journal says about the first attempt."""
    command = shlex.join((sys.executable, "-I", str(AGENT), how, str(stage.victim)))
    spec = WorkerSpec(("verifier", "surveyor", "coder"), profile_for("", command), limits, name="box")
    repository = Repository(
        id=await repository_id(stage.repository), base_commit=await text(stage.repository, "rev-parse", "HEAD")
    )
    order = Order("add a greeting to the hello module", repository, [VERIFY], as_action=True)
    run_id = (await stage.client.runs.submit(order)).run.id
    async with worker_running(stage.client, worker_for(await workspace_for([stage.repository]), spec)):
        async for transition in stage.client.runs.watch(run_id):
            if transition.event == "assignment_retried" or (
                transition.event == "task_judged" and '"accepted":false' in transition.payload_json
            ):
                break
    await stage.client.runs.cancel(run_id)
    return transition.payload_json


@pytest.mark.parametrize(
    ("how", "named"),
    [
        ("writes_outside", WRITTEN_NOWHERE),
        ("floods", "printed past its output limit"),
        ("ignores_time", "ran past its time limit"),
        ("invents_files", "names files that did not change: hello/__init__.py"),
        ("lies_about_exit_codes", "but here it ended with exit code 1"),
        ("proves_nothing", "`true` is no command that the verifier runs"),
        ("forks", "exit code 1"),
        ("plants_a_hook", "exit code 1"),
    ],
)
async def test_a_hostile_agent_is_contained_and_named_when_it(how: str, named: str, stage: Stage) -> None:
    if how == "writes_outside" and available_level() is Level.NONE:
        pytest.skip("nothing is isolated here")
    limits = Limits(seconds=scaled(3 if how == "ignores_time" else 60), output_bytes=100_000)
    async with within(100):
        payload = await first_failure(stage, how, limits)
    assert named in payload
    assert not stage.victim.exists()
    assert await uncommitted(stage.repository) == ()
    assert not processes_with("sleep\x00987654")
    assert not processes_with(str(AGENT))
