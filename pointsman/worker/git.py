"""Git, as a worker uses it: a private clone per repository that no agent can write to, and a copy for each assignment.

An agent gets a working tree with a repository of its own inside, so whatever it does to that repository (hooks,
configuration, history) stays there: of its work only the files are taken, by git commands that run on the private clone.
"""

import asyncio
import hashlib
import re
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from pointsman._shared.files import make_private_folder
from pointsman._shared.git import GitFailed, environment, git, text
from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.worker.bounds import Extent, TreeLimits, measure
from pointsman.worker.folders import work_folder
from pointsman.worker.history import Histories

__all__ = [
    "Captured", "Clone", "GitFailed", "Merged", "commit_of_changes", "environment", "git", "repository_id", "text",
    "tree_hash", "uncommitted", "untracked",
]  # fmt: skip
RESULTS = "refs/pointsman/results"
SUBMODULE_MODE = "160000"
FROM_TOP = ":(top)"
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_CHANGES = {
    "A": handoff.FILE_CHANGE_ADDED,
    "M": handoff.FILE_CHANGE_MODIFIED,
    "T": handoff.FILE_CHANGE_MODIFIED,
    "D": handoff.FILE_CHANGE_DELETED,
    "R": handoff.FILE_CHANGE_RENAMED,
}


@dataclass(frozen=True, slots=True)
class Captured:
    """The state of a working tree, as a commit on its base."""

    base: str
    commit: str
    tree: str
    changed_files: tuple[handoff.ChangedFile, ...]


@dataclass(frozen=True, slots=True)
class Merged:
    """A merge: the commit that holds both sides, or the files in which they conflict."""

    commit: str
    conflicts: tuple[str, ...] = ()


async def repository_id(folder: Path) -> str:
    """The id of a repository, the same in every clone: its first root commit."""
    roots = (await text(folder, "rev-list", "--max-parents=0", "HEAD")).split()
    return min(roots)


async def uncommitted(folder: Path) -> tuple[str, ...]:
    """Paths with uncommitted changes in a user's working tree."""
    listed = (await git(folder, "status", "--porcelain", "-z", "--no-renames")).decode(errors="replace")
    return tuple(entry[3:] for entry in listed.split("\0") if entry)


async def untracked(folder: Path) -> frozenset[str]:
    """Files of a working tree that are neither tracked nor ignored."""
    listed = await git(folder, "ls-files", "--others", "--exclude-standard", "-z", "--full-name", ":/")
    return frozenset(path for path in listed.decode(errors="surrogateescape").split("\0") if path)


async def _add_all(folder: Path, extra: Mapping[str, str], left_out: Collection[str]) -> None:
    """Adds all files of a working tree to an index, except those left out."""
    # git refuses to add anything where an ignored path is excluded by name
    named = set(left_out) - await _ignored(folder, extra, left_out)
    if not named:
        await git(folder, "add", "-A", extra=extra)
        return
    paths = [":/", *(f":(top,exclude,literal){path}" for path in named)]
    stdin = "\0".join(paths).encode(errors="surrogateescape")
    await git(folder, "add", "-A", "--pathspec-from-file=-", "--pathspec-file-nul", extra=extra, stdin=stdin)


async def _ignored(folder: Path, extra: Mapping[str, str], paths: Collection[str]) -> frozenset[str]:
    """Those of some paths that git ignores; a tracked file is never one."""
    if not paths:
        return frozenset()
    stdin = "\0".join(f"{FROM_TOP}{path}" for path in paths).encode(errors="surrogateescape")
    listed = await git(folder, "check-ignore", "-z", "--stdin", extra=extra, stdin=stdin, ok=(0, 1))
    return frozenset(path.removeprefix(FROM_TOP) for path in listed.decode(errors="surrogateescape").split("\0"))


async def tree_hash(folder: Path, left_out: Collection[str] = ()) -> str:
    """The tree hash of the files in a working tree; its index is not touched."""
    with tempfile.TemporaryDirectory() as scratch:
        extra = {"GIT_INDEX_FILE": str(Path(scratch) / "index")}
        await git(folder, "read-tree", "HEAD", extra=extra)
        await _add_all(folder, extra, left_out)
        return await text(folder, "write-tree", extra=extra)


async def commit_of_changes(folder: Path) -> str:
    """Commits everything in a user's working tree, without changing any branch or index."""
    tree = await tree_hash(folder)
    return await text(folder, "commit-tree", tree, "-p", "HEAD", "-m", "uncommitted changes")


class Clone:
    """A worker's private bare clone of one repository."""

    def __init__(self, path: Path, source: Path, scratch: Path | None = None, limits: TreeLimits | None = None) -> None:
        self.path = path
        self._source = source
        self._scratch = scratch or path.parent
        self._histories = Histories(path, self._scratch)
        self._limits = limits or TreeLimits()
        self._extents: dict[str, Extent] = {}
        """Of commits that are within bounds."""
        self._lock = asyncio.Lock()

    async def prepare(self) -> None:
        """Creates the clone if there is none; it appears under its name only when it is complete."""
        async with self._lock:
            if self.path.exists():
                return
            make_private_folder(self.path.parent)
            with work_folder(self._scratch, "clone") as scratch:
                made = scratch / "clone.git"
                await git(scratch, "clone", "-q", "--bare", "--no-hardlinks", str(self._source), str(made))
                try:
                    made.rename(self.path)
                except OSError:
                    if not self.path.exists():
                        raise  # else another process of the user was quicker, and its clone is as good

    async def has(self, commit: str) -> bool:
        """Whether the clone has a commit with all its objects."""
        if not _COMMIT.fullmatch(commit):
            return False
        try:
            await git(self.path, "cat-file", "-e", f"{commit}^{{commit}}")
        except GitFailed:
            return False
        return True

    async def fetch_source(self, commit: str) -> None:
        """Fetch a commit from the user's repository, whether or not a branch names it."""
        async with self._lock:
            await git(self.path, "fetch", "-q", "--no-tags", str(self._source), f"{commit}:{RESULTS}/{commit}")

    async def take_bundle(self, body: bytes, commit: str, under: str = RESULTS) -> None:
        """Fetch a commit from a bundle, with its objects checked; refs below `under` hold it."""
        async with self._lock:
            with tempfile.NamedTemporaryFile(suffix=".bundle") as file:
                file.write(body)
                file.flush()
                await git(
                    self.path, "-c", "transfer.fsckObjects=true", "fetch", "-q", "--no-tags", file.name,
                    f"+refs/*:{under}/{hashlib.sha256(body).hexdigest()}/*",
                )  # fmt: skip
        if not await self.has(commit):
            raise GitFailed(f"the bundle does not hold {commit}")

    async def drop_refs(self, under: str, live: Collection[str]) -> None:
        """Delete the refs below a name whose commits are not live any more."""
        listed = await text(self.path, "for-each-ref", "--format=%(objectname) %(refname)", under)
        for line in listed.splitlines():
            commit, _, ref = line.partition(" ")
            if commit not in live:
                await git(self.path, "update-ref", "-d", ref)

    async def require_bounds(self, commit: str, base: str) -> None:
        """Refuses a commit that exceeds the bounds over its base; it is not checked out before."""
        if commit in self._extents:
            return
        most = (await self._extent(base)).beyond(self._limits)
        found = await measure(self.path, commit, most)
        if excess := found.excess_over(most):
            raise GitFailed(f"the work {commit[:12]} is too large to be checked out: {excess}")
        self._extents[commit] = found

    async def _extent(self, commit: str) -> Extent:
        """The size of a base commit, measured once."""
        if commit not in self._extents:
            self._extents[commit] = await measure(self.path, commit) if await self.has(commit) else Extent()
        return self._extents[commit]

    async def make_bundle(self, base: str, commit: str, *, is_result: bool = True) -> bytes:
        """A bundle of the commits between a base and a commit, empty when there are none; a result has a ref that stays."""
        if base == commit:
            return b""
        name = f"{RESULTS}/{commit}"
        await git(self.path, "update-ref", name, commit)
        bundle = await git(self.path, "bundle", "create", "-q", "-", name, f"^{base}")
        if not is_result:
            await git(self.path, "update-ref", "-d", name)
        return bundle

    async def tree_of(self, commit: str) -> str:
        """The tree of a commit."""
        return await text(self.path, "rev-parse", f"{commit}^{{tree}}")

    async def commit_tree(self, tree: str, parent: str, message: str) -> str:
        """A commit of a tree on its parent, which a working tree can be made of."""
        commit = await text(self.path, "commit-tree", tree, "-p", parent, "-m", message)
        await git(self.path, "update-ref", f"{RESULTS}/{commit}", commit)
        return commit

    async def check_out(self, commit: str, folder: Path) -> None:
        """Checks a commit out into a working tree with a repository of its own, which holds the commit's history only."""
        await self._histories.lay_out(commit, folder)
        await git(folder, "checkout", "-q", "--detach", commit)

    async def replace_files(self, folder: Path, old: str, new: str) -> None:
        """Changes the tracked files of a working tree from one commit's to another's, as capture does: from outside."""
        with tempfile.TemporaryDirectory() as scratch:
            extra = {
                "GIT_INDEX_FILE": str(Path(scratch) / "index"),
                "GIT_DIR": str(self.path),
                "GIT_WORK_TREE": str(folder),
            }
            await git(folder, "read-tree", old, extra=extra)
            await git(folder, "read-tree", "-u", "--reset", new, extra=extra)

    async def restore_files(self, folder: Path, commit: str) -> None:
        """Gives the tracked files of a working tree the content that a commit has, from outside."""
        with tempfile.TemporaryDirectory() as scratch:
            extra = {
                "GIT_INDEX_FILE": str(Path(scratch) / "index"),
                "GIT_DIR": str(self.path),
                "GIT_WORK_TREE": str(folder),
            }
            await git(folder, "read-tree", commit, extra=extra)
            await git(folder, "update-index", "-q", "--refresh", extra=extra, ok=(0, 1))
            await git(folder, "checkout-index", "-q", "-f", "-a", extra=extra)

    async def capture(
        self, folder: Path, base: str, author: str, left_out: Collection[str] = (), message: str = ""
    ) -> Captured:
        """Commits the files of a working tree on its base; nothing of the tree's own repository is used."""
        with tempfile.TemporaryDirectory() as scratch:
            extra = {
                "GIT_INDEX_FILE": str(Path(scratch) / "index"),
                "GIT_DIR": str(self.path),
                "GIT_WORK_TREE": str(folder),
                "GIT_AUTHOR_NAME": author,
            }
            await git(folder, "read-tree", base, extra=extra)
            await _add_all(folder, extra, left_out)
            tree = await text(folder, "write-tree", extra=extra)
            if tree == await self.tree_of(base):
                return Captured(base, base, tree, ())
            commit = await text(
                folder, "commit-tree", tree, "-p", base, "-m", message or f"Work of {author}", extra=extra
            )
        await self._refuse_nested(base, commit)
        return Captured(base, commit, tree, await self.changed_files(base, commit))

    async def _refuse_nested(self, base: str, commit: str) -> None:
        raw = (await git(self.path, "diff-tree", "-r", "-z", "--no-renames", base, commit)).decode(errors="replace")
        parts = raw.split("\0")
        for entry, path in zip(parts[::2], parts[1::2], strict=False):
            if entry.split()[1:2] == [SUBMODULE_MODE]:
                raise GitFailed(f"a repository inside the repository cannot be handed in: {path}")

    async def changed_files(self, base: str, commit: str) -> tuple[handoff.ChangedFile, ...]:
        """What a commit changed over its base."""
        listed = await git(self.path, "diff-tree", "-r", "-z", "-M", "--name-status", base, commit)
        parts = iter(listed.decode(errors="replace").split("\0"))
        found = []
        for status in parts:
            if not status:
                break
            old = next(parts) if status[0] in "RC" else ""
            found.append(handoff.ChangedFile(path=next(parts), change=_CHANGES[status[0]], old_path=old))
        return tuple(found)

    async def diff(self, base: str, commit: str) -> bytes:
        """The change from a base to a commit."""
        return await git(self.path, "diff", "--no-color", "--no-ext-diff", "--no-textconv", base, commit)

    async def readable_diff(self, base: str, commit: str) -> bytes:
        """The same for people: renames found, and names as they are."""
        options = ("-M", "--no-color", "--no-ext-diff", "--no-textconv")
        return await git(self.path, "-c", "core.quotePath=false", "diff", *options, base, commit)

    async def merge(self, ours: str, theirs: str, subject: str) -> Merged:
        """Merges without a working tree; nothing is changed when files conflict."""
        base = (await git(self.path, "merge-base", ours, theirs, ok=(0, 1))).decode().strip()
        if not base:
            raise GitFailed(
                f"the work {theirs[:12]} has no commit in common with what is accepted so far ({ours[:12]}), so it cannot be "
                "merged; an agent has to build on the commit that it was given"
            )
        if base == ours:
            return Merged(theirs)
        if base == theirs:
            return Merged(ours)
        output = await git(
            self.path, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs, ok=(0, 1)
        )
        tree, *names = [part for part in output.decode(errors="replace").split("\0") if part]
        if names:
            return Merged("", tuple(dict.fromkeys(names)))
        return Merged(await text(self.path, "commit-tree", tree, "-p", ours, "-p", theirs, "-m", subject))
