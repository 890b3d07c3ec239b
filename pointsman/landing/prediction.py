"""Sees conflicts coming: tries the present trees of live runs against each other and against what waits or has landed."""

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path

from google.protobuf.timestamp_pb2 import Timestamp

from pointsman._shared.git import GitFailed, git
from pointsman._shared.globs import overlap
from pointsman.api.orchestrator.v1 import landing_pb2 as pb
from pointsman.client import Client, NotFound
from pointsman.landing.touched import Touched, touched_by
from pointsman.landing.work import fetch_work
from pointsman.worker.git import Clone

MAX_FILES = 64
TREES = "refs/pointsman/trees"
"""Refs of live trees in the private clone; deleted when a newer tree has come, or the work has ended."""
MAX_PREDICTIONS = 256
MAX_LANDED = 50
"""Landed entries that live trees are tried against, the newest ones."""
WAITING = tuple(
    state
    for state in pb.EntryState.values()
    if state not in (0, pb.ENTRY_STATE_LANDED, pb.ENTRY_STATE_REJECTED, pb.ENTRY_STATE_CANCELLED)
)
"""States of entries whose work is not in its target yet."""


@dataclass(frozen=True, slots=True)
class Side:
    """Work that could meet other work: the tree of a task, or an entry of a merge queue."""

    run_id: str
    base: str
    commit: str
    task_id: str = ""
    declared: tuple[str, ...] = ()
    is_live: bool = True
    own_runs: frozenset[str] = frozenset()
    """Runs that work on the same thing: those that were started for the entry."""
    landed: str = ""
    """The commit of the target that holds it; empty as long as none does."""


@dataclass(slots=True)
class Predictor:
    """Tries pairs of one repository; a pair that was tried is not tried again until one of its trees changes."""

    clone: Clone
    repository_id: str
    _as_of: Timestamp | None = None
    _stored: bool = True
    """Whether predictions may be stored that hold no more; an earlier predictor may have left some."""
    _touched: dict[str, Touched] = field(default_factory=dict)
    _tried: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    async def predict(self, client: Client, wait_seconds: float = 0.0) -> Sequence[pb.Prediction]:
        """Tries every pair with a live tree, and stores what is predicted for both runs; waits for a new tree."""
        live = await self._live(client, wait_seconds)
        sides = [*live, *([one async for one in self._queued(client)] if live else ())]
        found = [one for pair in combinations(sides, 2) if (one := await self._pair(*pair)) is not None]
        known = {side.commit for side in sides}
        self._touched = {commit: one for commit, one in self._touched.items() if commit in known}
        self._tried = {pair: files for pair, files in self._tried.items() if known.issuperset(pair)}
        await self.clone.drop_refs(TREES, known)
        if found or self._stored:
            await client.landing.put_predictions(self.repository_id, found[:MAX_PREDICTIONS])
        self._stored = bool(found)
        return found

    async def _live(self, client: Client, wait_seconds: float) -> list[Side]:
        """The trees of live tasks that could be had."""
        trees: dict[str, Side] = {}
        more = True
        while more:
            answer = await client.landing.snapshots(self.repository_id, list(self._touched), self._as_of, wait_seconds)
            fetched = [one for one in answer.snapshots if await self._fetched(one)]
            more, wait_seconds = answer.more and any(one.bundle for one in answer.snapshots), 0.0
            trees = {f"{one.run_id}/{one.task_id}/{one.commit}": _side(one) for one in fetched}
            self._as_of = answer.as_of
        return list(trees.values())

    async def _fetched(self, snapshot: pb.Snapshot) -> bool:
        """Brings a tree into the clone; one that cannot be had is left out."""
        if snapshot.commit in self._touched:
            return True
        try:
            if not await self.clone.has(snapshot.base_commit):
                await self.clone.fetch_source(snapshot.base_commit)
            if snapshot.bundle and not await self.clone.has(snapshot.commit):
                await self.clone.take_bundle(snapshot.bundle, snapshot.commit, TREES)
            await self._touch(snapshot.base_commit, snapshot.commit)
        except GitFailed:
            return False
        return True

    async def _queued(self, client: Client) -> AsyncIterator[Side]:
        """Work that waits in the repository's queues, and what has landed last."""
        waiting = [one async for one in client.landing.all(WAITING, repository_id=self.repository_id)]
        landed: list[pb.Entry] = []
        async for entry in client.landing.all((pb.ENTRY_STATE_LANDED,), repository_id=self.repository_id):
            landed.append(entry)
            if len(landed) == MAX_LANDED:
                break
        for entry in (*waiting, *landed):
            try:
                await fetch_work(client, self.clone, entry)
                await self._touch(entry.base_commit, entry.commit)
            except (GitFailed, NotFound):
                continue
            links = frozenset(link.run_id for link in entry.links)
            side = Side(entry.run_id, entry.base_commit, entry.commit, is_live=False, own_runs=links)
            yield replace(side, landed=entry.landed_commit)

    async def _touch(self, base: str, commit: str) -> None:
        if commit not in self._touched:
            self._touched[commit] = await touched_by(self.clone.path, base, commit)

    async def _pair(self, one: Side, other: Side) -> pb.Prediction | None:
        if not _are_apart(one, other):
            return None
        files, declared = await self._conflicts(one, other), False
        if not files:
            files, declared = list(_both_declare(one, other)), True
        if not files:
            return None
        return pb.Prediction(
            run_id=one.run_id, task_id=one.task_id, other_run_id=other.run_id, other_task_id=other.task_id,
            files=files[:MAX_FILES], declared=declared,
        )  # fmt: skip

    async def _conflicts(self, one: Side, other: Side) -> list[str]:
        """The files in which two trees conflict."""
        if not self._touched[one.commit].meets(self._touched[other.commit]):
            return []
        if await self._begins_after(one, other.landed) or await self._begins_after(other, one.landed):
            return []
        pair = (min(one.commit, other.commit), max(one.commit, other.commit))
        if pair not in self._tried:
            self._tried[pair] = await conflicts_of(self.clone.path, *pair)
        return self._tried[pair]

    async def _begins_after(self, side: Side, landed: str) -> bool:
        """Whether work starts from a commit that holds what has landed: it changes that on purpose."""
        if not landed or not await self.clone.has(landed):
            return False
        left = await git(self.clone.path, "rev-list", "--max-count=1", landed, f"^{side.base}")
        return not left.strip()


def _side(snapshot: pb.Snapshot) -> Side:
    declared = tuple(snapshot.declared_files)
    return Side(snapshot.run_id, snapshot.base_commit, snapshot.commit, snapshot.task_id, declared)


def _are_apart(one: Side, other: Side) -> bool:
    """Whether two sides can meet: not two that wait in a queue, nor two that are the same work."""
    same = (one.run_id, one.task_id) == (other.run_id, other.task_id)
    own = one.run_id in other.own_runs or other.run_id in one.own_runs
    in_queue = not one.is_live or not other.is_live
    return (one.is_live or other.is_live) and not same and not own and not (in_queue and one.run_id == other.run_id)


def _both_declare(one: Side, other: Side) -> Iterator[str]:
    """What both plans name, while nothing is written that could tell more."""
    if one.commit != one.base and other.commit != other.base:
        return
    yield from dict.fromkeys(mine for mine in one.declared for theirs in other.declared if overlap(mine, theirs))


async def conflicts_of(clone: Path, one: str, other: str) -> list[str]:
    """The files in which two commits conflict; none where they have nothing in common."""
    output = await git(
        clone, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", one, other, ok=(0, 1, 128)
    )
    _tree, *names = [part for part in output.decode(errors="replace").split("\0") if part] or [""]
    return list(dict.fromkeys(names))
