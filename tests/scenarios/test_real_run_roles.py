"""One command-line agent in every role, in the full pipeline: plan, research, design, code, review, test, verify."""

import shlex
import sys
from pathlib import Path

import pytest

from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1.run_pb2 import Repository
from pointsman.cli.render.run_progress import PlainView, state_name
from pointsman.cli.session.control_plane import control_plane
from pointsman.cli.session.follow import follow
from pointsman.cli.session.workers import WorkerSpec, profile_for, worker_for, worker_running, workspace_for
from pointsman.client import Client, Order
from pointsman.worker.git import repository_id, text
from tests.helpers.hello_repository import example_repository

AGENT = Path(__file__).parent / "agents" / "all_roles.py"
ROLES = ("planner", "critic", "researcher", "designer", "coder", "reviewer", "verifier")
pytestmark = pytest.mark.timeout(150)


async def test_one_command_plays_every_role_to_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTSMAN_DATA", str(tmp_path / "data"))
    folder = await example_repository(tmp_path)
    spec = WorkerSpec(ROLES, profile_for("", shlex.join((sys.executable, "-I", str(AGENT)))), name="box")
    repository = Repository(id=await repository_id(folder), base_commit=await text(folder, "rev-parse", "HEAD"))
    async with control_plane() as plane:
        client = Client(plane.channels["orchestrator"])
        async with worker_running(client, worker_for(await workspace_for([folder]), spec)):
            order = Order("add a greeting to the hello module", repository, as_action=True)
            run_id = (await client.runs.submit(order)).run.id
            run = await follow(client, run_id, PlainView())
        assigned = {(a.purpose, a.stage, a.agent_id) async for a in client.agents.assignments(run_id)}
        delivery = await client.runs.delivery(run_id)
    assert state_name(run) == "COMPLETE"
    assert run.usage.tokens == 100 * run.usage.assignments, "the verifier starts no agent"
    assert (assignments.PURPOSE_STAGE, "TEST", "box-verifier") in assigned
    assert delivery.deliverables[0].proof_reused, "the tree of TEST is the tree that is delivered"
    assert {agent_id for _, _, agent_id in assigned} >= {f"box-{role}" for role in ROLES if role != "critic"}
    assert [claim.id for claim in delivery.deliverables[0].claims] == ["C1", "C2"]
