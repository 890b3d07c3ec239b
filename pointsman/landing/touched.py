"""What work touches, to leave out pairs that cannot conflict before git is asked about them."""

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pointsman._shared.git import git


@dataclass(frozen=True, slots=True)
class Touched:
    """The changed paths of work, and the folders in which it adds and deletes."""

    paths: frozenset[str]
    adds_in: frozenset[str] = frozenset()
    deletes_in: frozenset[str] = frozenset()

    def meets(self, other: "Touched") -> bool:
        """Whether a merge could conflict: the same path, a file where a folder is, or a folder that moved away."""
        return bool(
            self.paths & (other.paths | other.adds_in)
            or self.adds_in & (other.paths | other.deletes_in)
            or self.deletes_in & other.adds_in
        )


async def touched_by(clone: Path, base: str, commit: str) -> Touched:
    """What a commit touches over its base."""
    listed = await git(clone, "diff-tree", "-r", "-z", "--no-renames", "--name-status", base, commit)
    parts = listed.decode(errors="replace").split("\0")
    changes = list(zip(parts[::2], parts[1::2], strict=False))
    paths = frozenset(path for _, path in changes)
    added, deleted = ({path for kind, path in changes if kind == wanted} for wanted in "AD")
    return Touched(paths, _folders(added), _folders(deleted))


def _folders(paths: set[str]) -> frozenset[str]:
    """All folders above paths but the root."""
    return frozenset(str(folder) for path in paths for folder in PurePosixPath(path).parents if str(folder) != ".")
