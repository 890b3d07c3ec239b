"""A worker's disk: its private clones, and folders for each assignment, removed when the assignment ends."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pointsman._shared.removal import remove_tree
from pointsman.api.handoff.v1.handoff_pb2 import ArtifactRef, CoderResult
from pointsman.client import Client
from pointsman.project import ProjectFile
from pointsman.worker.base_project import project_at
from pointsman.worker.bounds import TreeLimits
from pointsman.worker.folders import never, work_folder
from pointsman.worker.git import Clone, GitFailed
from pointsman.worker.handoff import safe_name
from pointsman.worker.sdk import GiveUp, Job
from pointsman.worker.sessions import SCRATCH, TREE, Sessions


@dataclass(frozen=True, slots=True)
class AssignmentFolders:
    """The folders of one assignment."""

    tree: Path
    handoff: Path
    scratch: Path
    answers: Path
    """What people answered to the agent, which it can only read."""
    session: str = ""
    """The agent's session that was interrupted here, with which it goes on; empty where it begins."""

    @property
    def place(self) -> Path:
        """The folder around them, which the agent cannot write."""
        return self.tree.parent

    def remove_leftovers(self, names: Iterable[str]) -> None:
        """Removes the agent's own files from the working tree: they are no part of the work."""
        for name in names:
            with suppress(OSError):
                remove_tree(self.tree / name)


def assignments_folder(root: Path) -> Path:
    """The parent of all assignment folders below a worker's root."""
    return root / "assignments"


class Workspace:
    """The clones and assignment folders of a worker."""

    def __init__(self, root: Path, repositories: Mapping[str, Path], limits: TreeLimits | None = None) -> None:
        self._root = root
        self._folders = dict(repositories)
        self._work = assignments_folder(root)
        self._clones = {
            name: Clone(root / "repositories" / f"{safe_name(name)}.git", source, self._work, limits)
            for name, source in repositories.items()
        }

    @property
    def locks(self) -> Path:
        """The folder of locks that all workers of the data directory share."""
        return self._root / "locks"

    @property
    def private_places(self) -> tuple[Path, ...]:
        """What no agent may see: the data directory around the clones and assignments, and the users' repositories."""
        return (self._root.parent, *self._folders.values())

    @property
    def folders_of_users(self) -> Mapping[str, Path]:
        """The users' repositories by id."""
        return self._folders

    @property
    def repository_ids(self) -> tuple[str, ...]:
        """The repositories' ids."""
        return tuple(self._clones)

    @asynccontextmanager
    async def folders(self, job: Job, sessions: Sessions | None = None) -> AsyncIterator[AssignmentFolders]:
        """Folders for an assignment, new or with a session that was interrupted, removed at the end of the block."""
        name = safe_name(f"{job.assignment.id}-{job.lease.epoch}")
        with work_folder(self._work, name, sessions.is_left_in if sessions else never) as place:
            session = sessions.left_in(place) if sessions else ""
            if sessions and session:
                await asyncio.to_thread(sessions.empty_but_session, place)
            folders = AssignmentFolders(place / TREE, place / "handoff", place / SCRATCH, place / "answers", session)
            for folder in (folders.handoff, folders.scratch, folders.answers):
                folder.mkdir(exist_ok=True)
            yield folders

    async def clone_for(self, job: Job) -> Clone:
        """The clone of the assignment's repository, which has its base commit."""
        repository = job.assignment.repository
        clone = self._clones.get(repository.id)
        if clone is None:
            raise GiveUp(f"this worker does not have the repository {repository.id}")
        await clone.prepare()
        await self._require(clone, job, repository.base_commit)
        return clone

    def has_repository(self, job: Job) -> bool:
        """Whether this worker has the assignment's repository."""
        return job.assignment.repository.id in self._clones

    @property
    def root(self) -> Path:
        """The worker's folder in the data directory."""
        return self._root

    def user_folder(self, job: Job) -> Path | None:
        """The user's working tree of the assignment's repository, if this worker has it."""
        return self._folders.get(job.assignment.repository.id)

    async def project_of(self, job: Job, clone: Clone) -> ProjectFile:
        """The project file of the commit that the user submitted, whatever was accepted since."""
        return await project_at(clone.path, await self.submitted_commit(job, clone))

    async def submitted_commit(self, job: Job, clone: Clone) -> str:
        """The commit that the user submitted; the clone has it."""
        if job.assignment.base_bundle.sha256:
            return await self._prepare_for_bundle(clone, job)
        return job.assignment.repository.base_commit

    async def _require(self, clone: Clone, job: Job, commit: str) -> None:
        """Fetches a commit that the clone lacks: from the run's accepted bundle, else from the user's repository."""
        if await clone.has(commit):
            return
        bundle = job.assignment.base_bundle
        try:
            if bundle.sha256:
                await fetch_commit(
                    job.client, clone, CommitRef(commit, bundle), await self._prepare_for_bundle(clone, job)
                )
            else:
                await clone.fetch_source(commit)
        except GitFailed as error:
            raise GiveUp(f"the base commit {commit} cannot be had: {error}") from None
        if not await clone.has(commit):
            raise GiveUp(f"the base commit {commit} is in neither the repository nor the accepted work")

    async def _prepare_for_bundle(self, clone: Clone, job: Job) -> str:
        """Fetches the run's base commit, on which every bundle builds, and returns it."""
        base = (await job.client.runs.get(job.assignment.run_id)).repository.base_commit
        if not await clone.has(base):
            await clone.fetch_source(base)
        return base


@dataclass(frozen=True, slots=True)
class CommitRef:
    """A commit that another worker made, and the bundle that holds it."""

    commit: str
    bundle: ArtifactRef


async def fetch_commit(client: Client, clone: Clone, wanted: CommitRef, base: str) -> None:
    """Fetches another worker's commit into a clone; refuses one that exceeds the bounds over its base."""
    if not await clone.has(wanted.commit):
        if not wanted.bundle.sha256:
            raise GitFailed("the work has no bundle")
        await clone.take_bundle(await client.artifacts.get(wanted.bundle), wanted.commit)
    await clone.require_bounds(wanted.commit, base)


async def fetch_result(job: Job, clone: Clone, made: CoderResult) -> None:
    """Fetches a coder's result into a clone and checks its tree hash."""
    base = job.assignment.repository.base_commit
    await fetch_commit(job.client, clone, CommitRef(made.result_commit, made.bundle), base)
    actual = await clone.tree_of(made.result_commit)
    if actual != made.tree_hash:
        raise GitFailed(f"the work's tree is {actual}, not {made.tree_hash} as was said")
