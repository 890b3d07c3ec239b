"""Trees of a git repository: read, compared, composed from two commits, and written into folders."""

import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from pointsman._shared.git import git, text

SYMLINK, SUBMODULE, FILE = "120000", "160000", "100644"


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of a tree: its mode and the object that holds its content."""

    mode: str
    object_id: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All files of one tree, by path."""

    tree: str
    entries: Mapping[str, Entry]

    def changed_to(self, later: "Snapshot") -> tuple[str, ...]:
        """Paths that differ in a later tree: added, changed or gone."""
        paths = {*self.entries, *later.entries}
        return tuple(sorted(path for path in paths if self.entries.get(path) != later.entries.get(path)))


def folders_of(path: str) -> set[str]:
    """Every folder that a path is in."""
    parts = path.split("/")
    return {"/".join(parts[:length]) for length in range(1, len(parts))}


@dataclass(frozen=True, slots=True)
class Repository:
    """A git repository that holds the commits of a proof and may be written to: a private clone."""

    path: Path

    async def snapshot(self, commit: str) -> Snapshot:
        """All files of a commit."""
        tree = await text(self.path, "rev-parse", f"{commit}^{{tree}}")
        listed = await git(self.path, "ls-tree", "-r", "-z", "--full-tree", tree)
        entries = {}
        for line in filter(None, listed.decode(errors="surrogateescape").split("\0")):
            values, _, path = line.partition("\t")
            mode, _, object_id = values.split()
            entries[path] = Entry(mode, object_id)
        return Snapshot(tree, entries)

    async def read(self, entry: Entry | None) -> bytes | None:
        """The content of a file; None when there is no file."""
        if entry is None or entry.mode == SUBMODULE:
            return None
        return await git(self.path, "cat-file", "blob", entry.object_id)

    async def moved(self, base: str, delivered: str) -> dict[str, str]:
        """Files that git sees as moved, old path to new path."""
        listed = await git(
            self.path, "diff-tree", "-r", "-z", "-M", "--diff-filter=R", "--name-status", base, delivered
        )
        parts = [part for part in listed.decode(errors="surrogateescape").split("\0") if part]
        return {old: new for _, old, new in zip(*[iter(parts)] * 3, strict=False)}

    async def changed_lines(self, base: str, delivered: str, path: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The lines that a delivery adds to one file, and those that it removes."""
        shown = await git(
            self.path, "diff", "--no-color", "--no-ext-diff", "--no-textconv", "-U0", "-M", base, delivered, "--", path
        )
        lines = shown.decode(errors="replace").splitlines()
        added = tuple(line[1:] for line in lines if line.startswith("+") and not line.startswith("+++"))
        removed = tuple(line[1:] for line in lines if line.startswith("-") and not line.startswith("---"))
        return added, removed

    async def store(self, content: bytes, mode: str = FILE) -> Entry:
        """Stores content as an object."""
        stored = await git(self.path, "hash-object", "-w", "--stdin", stdin=content)
        return Entry(mode, stored.decode().strip())

    async def compose(self, start: Snapshot, put: Mapping[str, Entry], removed: Collection[str]) -> Snapshot:
        """A tree with files put and removed; what stands where a put file needs a folder, or below it, goes."""
        folders = {folder for path in put for folder in folders_of(path)}
        entries = {
            path: entry
            for path, entry in start.entries.items()
            if path not in removed and path not in folders and not put.keys() & folders_of(path)
        } | dict(put)
        if entries == dict(start.entries):
            return start
        listed = "".join(f"{entry.mode} {entry.object_id}\t{path}\0" for path, entry in entries.items())
        with tempfile.TemporaryDirectory() as scratch:
            extra = {"GIT_INDEX_FILE": str(Path(scratch) / "index")}
            stdin = listed.encode(errors="surrogateescape")
            await git(self.path, "update-index", "-z", "--index-info", extra=extra, stdin=stdin)
            tree = await text(self.path, "write-tree", extra=extra)
        return Snapshot(tree, entries)

    async def check_out(self, snapshot: Snapshot, folder: Path, index: Path) -> None:
        """Writes a tree into a folder that has a repository of its own without history; the index stays outside."""
        await git(self.path, "init", "-q", str(folder))
        extra = {"GIT_INDEX_FILE": str(index), "GIT_WORK_TREE": str(folder), "GIT_DIR": str(self.path)}
        await git(folder, "read-tree", snapshot.tree, extra=extra)
        await git(folder, "checkout-index", "-a", "-f", "-u", extra=extra)
        await git(folder, "-c", "core.compression=0", "add", "-A", "-f")
        await git(folder, "commit", "-q", "--allow-empty", "-m", "the tree that is proven")

    async def altered(self, folder: Path, index: Path) -> tuple[str, ...]:
        """Tracked files of a folder that are not as they were written; nothing in the folder is believed."""
        extra = {"GIT_INDEX_FILE": str(index), "GIT_WORK_TREE": str(folder), "GIT_DIR": str(self.path)}
        await git(self.path, "update-index", "-q", "--refresh", extra=extra, ok=(0, 1))
        listed = await git(self.path, "diff-files", "-z", "--name-only", extra=extra)
        return tuple(name for name in listed.decode(errors="surrogateescape").split("\0") if name)
