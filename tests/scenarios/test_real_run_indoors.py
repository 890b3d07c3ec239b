"""An agent that can write nowhere but in its working tree: of what is in there only the work is taken."""

import sys
from pathlib import Path

import pytest

from pointsman.api.orchestrator.v1.run_pb2 import Repository
from pointsman.cli.render.run_progress import PlainView, state_name
from pointsman.cli.session.control_plane import control_plane
from pointsman.cli.session.follow import follow
from pointsman.cli.session.workers import WorkerSpec, worker_for, worker_running, workspace_for
from pointsman.client import Client, Order
from pointsman.profiles import Profile
from pointsman.worker.git import repository_id, text
from tests.helpers.hello_repository import example_repository

AGENT = Path(__file__).parent / "agents" / "indoors.py"
VERIFY = ("python3", "-m", "unittest", "discover", "-q")
pytestmark = pytest.mark.timeout(120)


async def test_neither_its_handoff_folder_nor_its_cache_is_delivered_and_the_diff_is_there_to_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POINTSMAN_DATA", str(tmp_path / "data"))
    folder = await example_repository(tmp_path)
    command = (sys.executable, "-I", str(AGENT))
    profile = Profile("indoors", command, leftovers=(".cache-of-its-own", ".not-there"), handoff_inside=True)
    spec = WorkerSpec(("verifier", "surveyor", "coder"), profile, name="box")
    repository = Repository(id=await repository_id(folder), base_commit=await text(folder, "rev-parse", "HEAD"))
    async with control_plane() as plane:
        client = Client(plane.channels["orchestrator"])
        async with worker_running(client, worker_for(await workspace_for([folder]), spec)):
            run_id = (await client.runs.submit(Order("greet", repository, [VERIFY], as_action=True))).run.id
            run = await follow(client, run_id, PlainView())
        delivery = await client.runs.delivery(run_id)
        (attempt,) = [one async for one in client.runs.evidence(run_id)]
        diff = (await client.artifacts.get(attempt.work.diff)).decode()
    assert state_name(run) == "COMPLETE"
    assert [file.path for file in delivery.deliverables[0].changed_files] == ["hello/__init__.py"]
    assert attempt.work.diff.media_type == "text/x-diff"
    assert diff.startswith("diff --git a/hello/__init__.py b/hello/__init__.py\n")
    assert diff.count("\ndiff --git ") == 0
