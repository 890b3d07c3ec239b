"""A stack of merge requests on a GitLab over HTTP, with real services: changed, restacked, killed, merged from below."""

import shlex
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from pointsman.api.orchestrator.v1 import landing_pb2 as pb
from pointsman.client import Client, connect
from pointsman.landing.steps import ARMED_BY, Step
from pointsman.worker.git import git, text
from tests.helpers.eventually import eventually
from tests.helpers.forge_server import Forge, forge_of
from tests.helpers.github import check_run
from tests.helpers.gitlab import FakeGitLab
from tests.helpers.limits import scaled
from tests.scenarios.commands import Running, finished, running
from tests.unit.worker.repositories import repository

pytestmark = pytest.mark.timeout(300)
AGENTS = Path(__file__).parent / "agents"
COMMAND = shlex.join((sys.executable, "-I", str(AGENTS / "planning_appender.py")))
ROLES = [word for role in ("planner", "coder", "verifier", "surveyor") for word in ("--role", role)]
CREW = (*ROLES, "--command", COMMAND, "--read", str(AGENTS))
FILES = {
    "Makefile": "check:\n\t@test -f log\n", "log": "start\n", ".gitignore": "__pycache__/\n",
    "pointsman.toml": '[proof]\nverify = ["make check"]\n',
}  # fmt: skip
TOKEN = "glpat-that-nobody-else-may-see"


PROPOSED, LANDED = pb.ENTRY_STATE_PROPOSED, pb.ENTRY_STATE_LANDED
Wanted = tuple[pb.EntryState.ValueType, int, bool]
"""A state, after so many linked runs, on another layer or not."""


async def layers(client: Client, *wanted: Wanted, by: Running) -> Sequence[pb.Entry]:
    """All layers, the lowest first, once each is as wanted."""

    async def there() -> Sequence[pb.Entry]:
        assert not by.ended, by.lines
        found = sorted([one async for one in client.landing.all()], key=lambda one: one.stack.number)
        shown = [(one.state, len(one.links), bool(one.stack.on_branch)) for one in found]
        return found if shown == list(wanted) else []

    return await eventually(there, 90)


async def squash(forge: Forge, number: int) -> None:
    """A person merges a merge request as one new commit."""
    pull = forge.github.pulls[number - 1]
    assert pull.target == "main", "it was retargeted"
    tree = await text(forge.bare, "merge-tree", "--write-tree", "main", pull.branch)
    made = await text(forge.bare, "commit-tree", tree, "-p", "main", "-m", f"squashed {number}")
    await git(forge.bare, "update-ref", "refs/heads/main", made)
    pull.state, pull.merged = "closed", made


async def test_a_stack_on_gitlab_is_changed_restacked_and_merged_from_below_whenever_it_is_killed(
    tmp_path: Path,
) -> None:
    folder, data = tmp_path / "user", tmp_path / "data"
    await repository(folder, FILES)
    with ExitStack() as stack:
        forge = stack.enter_context(forge_of(folder, tmp_path / "served", FakeGitLab))
        await git(folder, "remote", "add", "origin", forge.remote)
        environment = {
            "POINTSMAN_DATA": str(data), "POINTSMAN_WORKER_FORGE_SECONDS": "0.5", "GITLAB_TOKEN": TOKEN,
            "POINTSMAN_ORCHESTRATOR_LEASE_SECONDS": str(scaled(3)), **forge.variables,
        }  # fmt: skip
        stack.enter_context(running("up", "--port", "0", "--no-crew", **environment)).line_with(" up at ")
        agent = stack.enter_context(running("agent", *CREW, "--repo", str(folder), **environment))
        agent.line_with("working as")
        code, output = finished("run", "append twice", "--action", "--repo", str(folder), **environment)
        assert code == 0, output
        deliver = ("deliver", "last", "--repo", str(folder), "--onto", "main", "--push", "origin", "--stack")
        code, output = finished(*deliver, **environment, **{ARMED_BY: f"{Step.REQUEST_OPENED}:2"})
        assert code == -9, f"it died behind the second merge request: {output}"
        work = ("queue", "work", "--repo", str(folder), "--push", "origin")
        worker = stack.enter_context(running(*work, **environment))
        async with connect("", data=data) as client:
            first, _ = await layers(client, (PROPOSED, 0, False), (PROPOSED, 0, True), by=worker)
            forge.github.logs[7], forge.github.checks[first.proposal.head] = "red", [check_run(7, "failure")]
            first, second = await layers(client, (PROPOSED, 1, False), (PROPOSED, 1, True), by=worker)
            assert second.links[0].kind == pb.FINDING_KIND_CONFLICTED, "both appended to the same file"
            assert second.stack.on_commit == first.proposal.head
            assert await text(forge.bare, "rev-list", "--count", second.proposal.branch) == "3", "one commit each"
            await squash(forge, 1)
            await layers(client, (LANDED, 1, False), (PROPOSED, 1, False), by=worker)
            await squash(forge, 2)
            await layers(client, (LANDED, 1, False), (LANDED, 1, False), by=worker)
        log = (await text(forge.bare, "show", "main:log")).splitlines()
        assert (log[0], "append T1" in log, len(log)) == ("start", True, 4), log
        assert [pull.branch.rpartition("-")[2] for pull in forge.github.pulls] == ["1", "2"], "one for each layer"
        assert (forge.github.problems, forge.credentials) == ([], {f"Bearer {TOKEN}"})
        shown = finished("queue", "show", second.id, **environment)[1]
        assert "layer 2 of 2" in shown
    code, output = finished("audit", "--all", **environment)
    assert code == 0, output
