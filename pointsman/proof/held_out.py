"""Reads held-out checks: a folder, or a path in a commit, whose files are laid over the tree at proof time only."""

from pathlib import Path

from pointsman._shared.git import GitFailed, git, text

MAX_FILES = 2000
MAX_BYTES = 64 * 1024 * 1024


class NoChecks(Exception):
    """There is nothing to lay over the tree, or it is too much."""


async def read_held_out(place: str, repository: Path, base: str = "") -> dict[str, bytes]:
    """The checks by their path in the tree; `place` is a folder, or `REF:PATH` that the base does not reach."""
    found = _from_folder(Path(place))
    if found is None:
        if ":" not in place:
            raise NoChecks(f"{place} is neither a folder nor REF:PATH")
        found = await _from_commit(place, repository)
        if base and await _reaches(repository, base, place.partition(":")[0]):
            raise NoChecks(
                f"{place}: the base reaches that commit, so an author can read the checks; "
                "keep them on a branch that was never merged, or in a folder outside the repository"
            )
    if not found:
        raise NoChecks(f"{place} holds no file")
    return found


def _from_folder(folder: Path) -> dict[str, bytes] | None:
    if not folder.is_dir():
        return None
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    names = [path for path in paths if ".git" not in path.relative_to(folder).parts]
    if len(names) > MAX_FILES or sum(path.stat().st_size for path in names) > MAX_BYTES:
        raise NoChecks(f"{folder} holds more than {MAX_FILES} files or {MAX_BYTES} bytes")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in names}


async def _reaches(repository: Path, base: str, ref: str) -> bool:
    """Whether a commit is in the history of the base."""
    commit = await text(repository, "rev-parse", f"{ref}^{{commit}}")
    return not await text(repository, "rev-list", "--max-count=1", commit, "--not", base)


async def _from_commit(place: str, repository: Path) -> dict[str, bytes]:
    try:
        listed = await git(repository, "ls-tree", "-r", "-z", "--name-only", place)
    except GitFailed as error:
        raise NoChecks(str(error)) from None
    names = [name for name in listed.decode(errors="surrogateescape").split("\0") if name]
    if len(names) > MAX_FILES:
        raise NoChecks(f"{place} holds more than {MAX_FILES} files")
    top = place.rstrip("/") + ("" if place.endswith(":") else "/")
    return {name: await git(repository, "cat-file", "blob", f"{top}{name}") for name in names}
