"""From a pull request to its merge with real services: red checks and a review become runs that repair the work."""

import shlex
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from pointsman.api.orchestrator.v1 import landing_pb2 as pb
from pointsman.api.orchestrator.v1.assignment_pb2 import CAPABILITY_CODE, CAPABILITY_RESOLVE
from pointsman.api.orchestrator.v1.run_pb2 import RUN_STATE_COMPLETE
from pointsman.client import Client, connect
from pointsman.worker.git import git, text
from tests.helpers.eventually import eventually
from tests.helpers.forge_server import Forge, forge_of
from tests.helpers.github import check_run, review
from tests.helpers.hello_repository import example_repository
from tests.scenarios.commands import Running, finished, running

pytestmark = pytest.mark.timeout(300)
REPAIRER = Path(__file__).parent / "agents" / "repairer.py"
COMMAND = shlex.join((sys.executable, "-I", str(REPAIRER)))
TOKEN = "ghp_forge_token_that_nobody_else_may_see"
BRANCHED = "pointsman/"


async def proposed(client: Client, deliver: Running, links: int) -> pb.Entry:
    """The entry, once its pull request is open after so many linked runs."""

    async def there() -> pb.Entry | None:
        assert not deliver.ended, deliver.lines
        entries = [one async for one in client.landing.all()]
        found = [one for one in entries if one.state == pb.ENTRY_STATE_PROPOSED and len(one.links) == links]
        return found[0] if found else None

    entry = await eventually(there, 120)
    assert entry is not None
    return entry


async def live_until_merged(client: Client, deliver: Running, forge: Forge) -> pb.Entry:
    """The life of the pull request: red, repaired, a review, repaired, one more, resolved, green, merged by a person."""
    entry = await proposed(client, deliver, 0)
    fake, (pull,) = forge.github, forge.github.pulls
    fake.logs[7] = "flake8\nE999 no line about parting\n"
    fake.checks[entry.proposal.head] = [check_run(7, "failure")]
    entry = await proposed(client, deliver, 1)
    fake.checks[entry.proposal.head] = [check_run(8, "success")]
    pull.reviews.append(review(entry.proposal.head, "please name the author"))
    entry = await proposed(client, deliver, 2)
    pull.reviews.append(review(entry.proposal.head, "please name the year"))
    entry = await proposed(client, deliver, 3)
    fake.checks[entry.proposal.head] = [check_run(9, "success")]
    await git(forge.bare, "update-ref", "refs/heads/main", entry.proposal.head)
    pull.state, pull.merged = "closed", entry.proposal.head
    assert deliver.wait() == 0, deliver.lines
    return await client.landing.get(entry.id)


async def test_red_checks_and_a_review_become_runs_that_repair_the_work_until_it_is_merged(tmp_path: Path) -> None:
    repository = await example_repository(tmp_path)
    data = tmp_path / "data"
    with ExitStack() as stack:
        forge = stack.enter_context(forge_of(repository, tmp_path / "served"))
        await git(repository, "remote", "add", "origin", forge.remote)
        environment = {"POINTSMAN_DATA": str(data), "POINTSMAN_WORKER_FORGE_SECONDS": "0.5", "GH_TOKEN": TOKEN}
        environment |= forge.variables
        plane = stack.enter_context(running("up", "--port", "0", **environment))
        plane.line_with(" up at ")
        wanted = ("run", "write a greeting in hello/__init__.py", "--action", "--solo", "--repo", str(repository))
        code, output = finished(*wanted, "--command", COMMAND, **environment)
        assert code == 0, output
        terms = ("--repo", str(repository), "--onto", "main", "--push", "origin", "--pr")
        crew = ("--command", COMMAND, "--resolver", f"cmd:{COMMAND}")
        deliver = stack.enter_context(running("deliver", "last", *terms, *crew, **environment))
        async with connect("", data=data) as client:
            entry = await live_until_merged(client, deliver, forge)
            runs = [await client.runs.get(link.run_id) for link in entry.links]
            writers = [await writer_of(client, run.id) for run in runs]
        assert [run.state for run in runs] == [RUN_STATE_COMPLETE] * 3
        assert [run.parent_entry for run in runs] == [entry.id] * 3
        assert writers == ["coder", "coder", "resolver"], "two runs of the crew, then one of the resolver"
        kinds = [pb.FINDING_KIND_CHECKS_FAILED, *[pb.FINDING_KIND_CHANGES_REQUESTED] * 2]
        assert (entry.state, [link.kind for link in entry.links]) == (pb.ENTRY_STATE_LANDED, kinds)
        module = await text(forge.bare, "show", "main:hello/__init__.py")
        assert all(words in module for words in ("greeting", "parting", "AUTHOR", "YEAR"))
        history = await text(forge.bare, "log", "-p", "--all")
        assert ("POINTSMAN_HANDOFF=" in history, TOKEN in history) == (True, False), "agents print what they are given"
        nothing_twice(forge)
        story = finished("queue", "show", entry.id, **environment)[1]
        assert all(run.id in story for run in runs)
        plane.stop()
        secret_is_nowhere(tmp_path, forge, "".join((*plane.lines, *deliver.lines, output, story)))
    code, output = finished("audit", "--all", **environment)
    assert code == 0, output


async def writer_of(client: Client, run_id: str) -> str:
    """The role of the agent that wrote a run's code."""
    wrote = (CAPABILITY_CODE, CAPABILITY_RESOLVE)
    (one,) = [item async for item in client.agents.assignments(run_id) if item.capability in wrote]
    return one.agent_id.rpartition("-")[2]


def nothing_twice(forge: Forge) -> None:
    """One pull request, one comment for each repair, no request that the description does not know."""
    (pull,) = forge.github.pulls
    ours = [said for said in pull.comments if "<!-- pointsman:" in said]
    assert (len(ours), len(set(ours)), forge.github.problems) == (3, 3, [])
    assert {name for name in forge.heads() if name != "main"} == {pull.branch}
    assert pull.branch.startswith(BRANCHED)


def secret_is_nowhere(root: Path, forge: Forge, printed: str) -> None:
    """The forge saw its token; no store, log, bundle, handoff, commit or output did."""
    assert forge.credentials == {f"Bearer {TOKEN}"}
    assert TOKEN not in f"{printed}{forge.github.pulls}", "neither printed nor written into a pull request"
    for path in root.rglob("*"):
        if path.is_file() and not path.is_symlink():
            assert TOKEN.encode() not in path.read_bytes(), path
