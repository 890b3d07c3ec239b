"""Puts work onto a tip: a merge, or one commit for the whole run, without a working tree."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pointsman._shared.git import git, text

MAX_HUNKS, MAX_HUNK_BYTES = 20, 24_000
_BEGIN, _END = "<<<<<<<", ">>>>>>>"


@dataclass(frozen=True, slots=True)
class Placed:
    """Work on a tip: its commit, or the files in which it conflicts with both sides' lines."""

    commit: str
    conflicts: tuple[str, ...] = ()
    hunks: str = ""


@dataclass(frozen=True, slots=True)
class Piece:
    """The work of one entry."""

    commit: str
    message: str
    squash: bool = False
    floor: str = ""
    """Only its changes from this commit on are put there, as one commit."""


async def place(clone: Path, piece: Piece, onto: str) -> Placed:
    """Puts work onto a commit; nothing is made where files conflict."""
    ours, theirs = await _sides(clone, piece, onto)
    output = await git(
        clone, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs, ok=(0, 1)
    )
    tree, *names = [part for part in output.decode(errors="replace").split("\0") if part]
    if names:
        files = tuple(dict.fromkeys(names))
        return Placed("", files, await _hunks(clone, tree, files))
    is_single = piece.squash or piece.floor
    if not is_single and not (await git(clone, "rev-list", "--max-count=1", onto, f"^{piece.commit}")).strip():
        return Placed(piece.commit)
    parents = ("-p", onto) if is_single else ("-p", onto, "-p", piece.commit)
    return Placed(await text(clone, "commit-tree", tree, *parents, "-m", piece.message))


async def _sides(clone: Path, piece: Piece, onto: str) -> tuple[str, str]:
    """The commits to be merged; with a floor two that have it as their only parent, so that it is what git starts from."""
    if not piece.floor:
        return onto, piece.commit
    ours, theirs = [
        await text(clone, "commit-tree", f"{commit}^{{tree}}", "-p", piece.floor, "-m", "side of a layer")
        for commit in (onto, piece.commit)
    ]
    return ours, theirs


async def changed_files(clone: Path, base: str, commit: str) -> frozenset[str]:
    """The files in which a commit differs from where its work and a base parted."""
    fork = await text(clone, "merge-base", base, commit)
    listed = await git(clone, "diff-tree", "-r", "-z", "--no-renames", "--name-only", fork, commit)
    return frozenset(name for name in listed.decode(errors="replace").split("\0") if name)


async def _hunks(clone: Path, tree: str, files: Sequence[str]) -> str:
    """The conflicting lines of each file, as git marks them, bounded."""
    found: list[str] = []
    for name in files[:MAX_HUNKS]:
        content = await git(clone, "cat-file", "blob", f"{tree}:{name}", ok=(0, 128))
        marked = _marked(content.decode(errors="replace"))
        found.append(f"{name}:\n{marked}" if marked else f"{name}: one side deleted, moved or replaced the whole file")
    return "\n".join(found).encode()[:MAX_HUNK_BYTES].decode(errors="ignore")


def _marked(content: str) -> str:
    lines: list[str] = []
    inside = False
    for line in content.splitlines():
        inside = inside or line.startswith(_BEGIN)
        if inside:
            lines.append(line)
        inside = inside and not line.startswith(_END)
    return "\n".join(lines)
