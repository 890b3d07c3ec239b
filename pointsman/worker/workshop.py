"""A worker's place: its private clones, and a folder for each assignment that is gone when the work is handed in."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from pointsman.api.handoff.v1.handoff_pb2 import ArtifactRef, CoderResult
from pointsman.client import Client
from pointsman.worker.folders import work_folder
from pointsman.worker.git import Clone, GitFailed
from pointsman.worker.handoff import safe_name
from pointsman.worker.sdk import GiveUp, Job


@dataclass(frozen=True, slots=True)
class Bench:
    """The folders of one assignment."""

    tree: Path
    handoff: Path
    scratch: Path


def work_place(root: Path) -> Path:
    """Where workers that share a root have the folders of their assignments."""
    return root / "assignments"


class Workshop:
    """Which repositories a worker has, and where it works."""

    def __init__(self, root: Path, repositories: Mapping[str, Path]) -> None:
        self._work = work_place(root)
        self._clones = {
            name: Clone(root / "repositories" / f"{safe_name(name)}.git", source, self._work)
            for name, source in repositories.items()
        }

    @property
    def repository_ids(self) -> tuple[str, ...]:
        """The repositories' ids."""
        return tuple(self._clones)

    @asynccontextmanager
    async def bench(self, job: Job) -> AsyncIterator[Bench]:
        """Fresh folders for an assignment; removed at the end, whatever the end is."""
        with work_folder(self._work, safe_name(f"{job.assignment.id}-{job.lease.epoch}")) as place:
            bench = Bench(place / "tree", place / "handoff", place / "tmp")
            for folder in (bench.handoff, bench.scratch):
                folder.mkdir()
            yield bench

    async def clone_for(self, job: Job) -> Clone:
        """The clone of the assignment's repository, with the commit that the work starts from."""
        repository = job.assignment.repository
        clone = self._clones.get(repository.id)
        if clone is None:
            raise GiveUp(f"this worker does not have the repository {repository.id}")
        await clone.prepare()
        await self._require(clone, job, repository.base_commit)
        return clone

    def has_repository(self, job: Job) -> bool:
        """Whether the assignment is about a repository that this worker has to show."""
        return job.assignment.repository.id in self._clones

    async def _require(self, clone: Clone, job: Job, commit: str) -> None:
        """A commit comes from the clone, else from the run's accepted bundle, else from the user's repository."""
        if await clone.has(commit):
            return
        bundle = job.assignment.base_bundle
        try:
            if bundle.sha256:
                await self._prepare_for_bundle(clone, job)
                await take_artifact(job.client, clone, bundle, commit)
            else:
                await clone.fetch_source(commit)
        except GitFailed as error:
            raise GiveUp(f"the base commit {commit} cannot be had: {error}") from None
        if not await clone.has(commit):
            raise GiveUp(f"the base commit {commit} is in neither the repository nor the accepted work")

    async def _prepare_for_bundle(self, clone: Clone, job: Job) -> None:
        """A bundle begins at the commit that the run was submitted with."""
        run = await job.client.runs.get(job.assignment.run_id)
        if not await clone.has(run.repository.base_commit):
            await clone.fetch_source(run.repository.base_commit)


async def take_artifact(client: Client, clone: Clone, bundle: ArtifactRef, commit: str) -> None:
    """Fetch a bundle from the control plane into a clone."""
    await clone.take_bundle(await client.artifacts.get(bundle), commit)


async def take_work(client: Client, clone: Clone, made: CoderResult) -> None:
    """Fetch a coder's result into a clone, and check that its tree is the one that was named."""
    if not await clone.has(made.result_commit):
        if not made.bundle.sha256:
            raise GitFailed("the work has no bundle")
        await take_artifact(client, clone, made.bundle, made.result_commit)
    actual = await clone.tree_of(made.result_commit)
    if actual != made.tree_hash:
        raise GitFailed(f"the work's tree is {actual}, not {made.tree_hash} as was said")
