"""kill -9 of the integrator at every step and of the control plane between commits: real processes, real remotes."""

from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from pointsman.api.orchestrator.v1 import landing_pb2 as pb
from pointsman.client import Client, connect
from pointsman.landing.steps import ARMED_BY, Step
from pointsman.services.chassis.core.crash import ARMED_BY as PLANE_ARMED_BY
from pointsman.worker.git import git, repository_id, text
from tests.helpers.eventually import eventually
from tests.helpers.forge_server import Forge, forge_of
from tests.helpers.hello_repository import example_repository
from tests.helpers.limits import scaled
from tests.scenarios.commands import Running, finished, open_gate, patient, running

pytestmark = pytest.mark.timeout(400)
STEPS = (
    Step.TAKEN, Step.FETCHED, Step.PLACED, Step.PROVED, Step.CANDIDATE_REPORTED, Step.PUSHED, Step.LANDED_REPORTED,
)  # fmt: skip
FORGE_STEPS = (
    Step.BRANCH_PUSHED, Step.REQUEST_LOOKED_UP, Step.REQUEST_OPENED, Step.REQUEST_REPORTED, Step.FORGE_READ,
)  # fmt: skip
PLANE_POINTS = ("answers_written:1", "batch_committed:2", "journal_written:3")
"""During the taking, after the candidate was recorded, during the next commit."""


class Stage:
    """A finished run, a remote on disk, a forge over HTTP, and the commands that work on them."""

    def __init__(self, folder: Path, repository: Path, files: Path, forge: Forge) -> None:
        self.folder, self.repository, self.files, self.forge = folder, repository, files, forge
        self.environment = {
            "POINTSMAN_DATA": str(folder / "data"), "POINTSMAN_ORCHESTRATOR_LEASE_SECONDS": str(scaled(3)),
            "POINTSMAN_WORKER_FORGE_SECONDS": "0.5", "GH_TOKEN": "a-token", **forge.variables,
        }  # fmt: skip

    def command(self, *arguments: str, **more: str) -> Running:
        """A command that may be armed."""
        return Running(arguments, {**self.environment, **more})

    def worker(self, **more: str) -> Running:
        allowed = ("--push", "files", "--push", "forge")
        return self.command("queue", "work", "--repo", str(self.repository), *allowed, **more)

    async def enqueue(self, client: Client, name: str, *, pull_request: bool = False) -> pb.Entry:
        """Puts the run's work into the queue of a branch of its own."""
        (run,) = [one async for one in client.runs.all()]
        bare = self.forge.bare if pull_request else self.files
        await git(bare, "branch", name, "main")
        way = pb.LANDING_WAY_PULL_REQUEST if pull_request else pb.LANDING_WAY_FAST_FORWARD
        terms = pb.LandingTerms(
            repository_id=await repository_id(self.repository), target=name, way=way,
            remote="forge" if pull_request else "files",
        )  # fmt: skip
        return await client.landing.enqueue(run.id, terms)

    async def tips(self, name: str) -> list[str]:
        """Every commit that a branch on disk was moved to."""
        moves = (await text(self.files, "reflog", "--format=%H", f"refs/heads/{name}")).splitlines()
        return moves[:-1]


async def staged(folder: Path, stack: ExitStack) -> Stage:
    repository = await example_repository(folder)
    forge = stack.enter_context(forge_of(repository, folder / "served"))
    files = folder / "files.git"
    await git(folder, "clone", "-q", "--bare", str(repository), str(files))
    await git(files, "config", "core.logAllRefUpdates", "always")
    await git(repository, "remote", "add", "files", str(files))
    await git(repository, "remote", "add", "forge", forge.remote)
    return Stage(folder, repository, files, forge)


async def entries(client: Client) -> AsyncIterator[pb.Entry]:
    async for entry in client.landing.all():
        yield entry


async def reached(client: Client, *states: pb.EntryState.ValueType) -> Sequence[pb.Entry]:
    """All entries, once each is in one of the states."""

    async def check() -> Sequence[pb.Entry]:
        found = [entry async for entry in entries(client)]
        return found if all(entry.state in states for entry in found) else []

    return await eventually(check, 120)


async def test_whenever_integrator_or_control_plane_are_killed_all_lands_once_and_proven(tmp_path: Path) -> None:
    with ExitStack() as stack:
        there = await staged(tmp_path, stack)
        plane = stack.enter_context(running("up", "--port", "0", **there.environment))
        port = plane.line_with(" up at ").split(" up at ")[1].split()[0].rpartition(":")[2]
        gate = tmp_path / "gate"
        open_gate(gate)
        wanted = ("run", "write a greeting in hello/__init__.py", "--action", "--solo", "--repo", str(there.repository))
        code, output = finished(*wanted, "--command", patient(gate), **there.environment)
        assert code == 0, output
        async with connect("", data=tmp_path / "data") as client:
            for step in (*STEPS, *FORGE_STEPS):
                await there.enqueue(client, f"t-{step}", pull_request=step in FORGE_STEPS)
                assert there.worker(**{ARMED_BY: step}).wait() == -9, f"it died at {step}"
            last = [await there.enqueue(client, f"p-{number}") for number, _ in enumerate(PLANE_POINTS)]
        assert plane.stop() == 0
        worker = there.worker()
        stack.callback(worker.kill)
        for point in PLANE_POINTS:
            dying = there.command("up", "--port", port, **{PLANE_ARMED_BY: point})
            assert dying.wait(120) == -9, f"it died at {point}: {dying.lines}"
        stack.enter_context(running("up", "--port", port, **there.environment)).line_with(" up at ")
        async with connect("", data=tmp_path / "data") as client:
            found = await reached(client, pb.ENTRY_STATE_LANDED, pb.ENTRY_STATE_PROPOSED)
            await merge_all(there.forge, found)
            found = await reached(client, pb.ENTRY_STATE_LANDED)
        assert len(found) == len(STEPS) + len(FORGE_STEPS) + len(last)
        await once_and_proven(there, found)
    code, output = finished("audit", "--all", **there.environment)
    assert code == 0, output


async def merge_all(forge: Forge, found: Sequence[pb.Entry]) -> None:
    """A person merges every pull request: there is one for each entry."""
    proposed = {entry.terms.target: entry for entry in found if entry.proposal.number}
    assert sorted(pull.target for pull in forge.github.pulls) == sorted(proposed)
    for pull in forge.github.pulls:
        head = proposed[pull.target].proposal.head
        await git(forge.bare, "update-ref", f"refs/heads/{pull.target}", head)
        pull.state, pull.merged = "closed", head
    assert (len(proposed), forge.github.problems) == (len(FORGE_STEPS), [])


async def once_and_proven(there: Stage, found: Sequence[pb.Entry]) -> None:
    """Each branch on disk moved once, to the commit that was proven."""
    for entry in found:
        assert entry.candidate.grade == "PROVEN"
        if entry.terms.remote == "files":
            assert await there.tips(entry.terms.target) == [entry.candidate.tip], entry.terms.target
