"""Sees conflicts coming: tries the present trees of live runs against each other, without a working tree."""

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

from pointsman._shared.git import GitFailed, git
from pointsman.api.orchestrator.v1.landing_pb2 import Prediction, Snapshot
from pointsman.client import Client
from pointsman.worker.git import Clone

MAX_FILES = 64


async def predict(client: Client, clone: Clone, repository_id: str) -> Sequence[Prediction]:
    """Tries every pair of live trees of a repository, and tells both runs what is coming."""
    there = [one for one in await client.landing.snapshots(repository_id) if await _fetched(clone, one)]
    found = []
    for one, other in combinations(there, 2):
        files = await conflicts_of(clone.path, one.commit, other.commit)
        if files:
            found.append(Prediction(run_id=one.run_id, other_run_id=other.run_id, files=files[:MAX_FILES]))
    if there:
        await client.landing.put_predictions(repository_id, found)
    return found


async def conflicts_of(clone: Path, one: str, other: str) -> list[str]:
    """The files in which two commits conflict; none where they have nothing in common."""
    output = await git(
        clone, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", one, other, ok=(0, 1, 128)
    )
    _tree, *names = [part for part in output.decode(errors="replace").split("\0") if part] or [""]
    return list(dict.fromkeys(names))


async def _fetched(clone: Clone, snapshot: Snapshot) -> bool:
    """Brings a tree into the clone; one that cannot be had is left out."""
    try:
        if not await clone.has(snapshot.base_commit):
            await clone.fetch_source(snapshot.base_commit)
        if not await clone.has(snapshot.commit):
            await clone.take_bundle(snapshot.bundle, snapshot.commit)
    except GitFailed:
        return False
    return True
