"""What set-up made in a tree: taken out of it, and put into another tree at the same path.

Folders of dependencies are linked, so that no command of a proof can change them; everything else is copied.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pointsman.project.ecosystems import discarded_names, store_names

NEVER_KEPT = frozenset({".git", "__pycache__", ".pytest_cache"})


class TreeRefused(Exception):
    """A tree that what set-up made cannot be put into."""


@dataclass(frozen=True, slots=True)
class Output:
    """One file or folder that set-up made, by its path in the tree."""

    path: str
    is_store: bool
    """A folder of dependencies, which is linked."""


def entries_of(tree: Path) -> frozenset[str]:
    """Every file and folder of a tree, by its path in it."""
    return frozenset(path for path, _ in _walk(tree, None))


def new_entries(tree: Path, before: frozenset[str]) -> tuple[str, ...]:
    """Files and folders that were not in a tree before; of a new folder the folder alone."""
    return tuple(path for path, is_known in _walk(tree, before) if not is_known)


def take_outputs(tree: Path, before: frozenset[str], stored: Path) -> tuple[Output, ...]:
    """Moves everything that was not in the tree before into another folder."""
    outputs = []
    for path in new_entries(tree, before):
        source, target = tree / path, stored / path
        if source.name in discarded_names():
            continue
        is_store = source.name in store_names() and source.is_dir() and not source.is_symlink()
        target.parent.mkdir(parents=True, exist_ok=True)
        _make_leaving_links_absolute(source)
        shutil.move(source, target)
        outputs.append(Output(path, is_store))
    return tuple(outputs)


def put_outputs(tree: Path, outputs: Sequence[Output], stored: Path) -> None:
    """Puts what set-up made into a tree; a folder that the tree does not have any more gets none of it."""
    for output in outputs:
        target = tree / output.path
        if not target.parent.is_dir():
            continue
        if not target.parent.resolve().is_relative_to(tree.resolve()):
            raise TreeRefused(f"{output.path}: a link of the tree leads out of it, to where set-up puts its files")
        if not os.path.lexists(target):
            _put(stored / output.path, target, is_store=output.is_store)
        elif output.is_store:
            raise TreeRefused(
                f"{output.path}: the tree has a file or folder of that name, where set-up puts dependencies; "
                "remove it from git and add it to .gitignore"
            )


def _put(source: Path, target: Path, *, is_store: bool) -> None:
    if is_store:
        target.symlink_to(source, target_is_directory=True)
    elif source.is_dir() and not source.is_symlink():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy2(source, target, follow_symlinks=False)


def _walk(folder: Path, known: frozenset[str] | None, prefix: str = "") -> Iterator[tuple[str, bool]]:
    """Paths below a folder with whether they are known (all, where None is given); only known folders are entered."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.name in NEVER_KEPT:
            continue
        path = f"{prefix}{entry.name}"
        is_known = known is None or path in known
        yield path, is_known
        if entry.is_dir(follow_symlinks=False) and is_known:
            yield from _walk(Path(entry.path), known, f"{path}/")


def _make_leaving_links_absolute(top: Path) -> None:
    """Lets links that lead out of a folder (a workspace's own packages) lead to the same place when it is moved."""
    if top.is_symlink() or not top.is_dir():
        return
    for folder, folders, files in os.walk(top):
        for name in (*folders, *files):
            link = Path(folder) / name
            if not link.is_symlink():
                continue
            target = link.readlink()
            place = Path(os.path.normpath(link.parent / target))
            if not target.is_absolute() and not place.is_relative_to(top):
                link.unlink()
                link.symlink_to(place)
