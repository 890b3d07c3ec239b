"""Removes folders that an untrusted command wrote to: however deep they are, and whatever their modes."""

import itertools
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

WRITABLE = 0o700
OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def remove_tree(root: Path) -> None:
    """Removes a folder with everything in it; a link is removed, not followed. OSError where something stays.

    Each folder below is moved to the top before it is emptied: a path of thousands of names is too long for the system,
    and too deep for code that calls itself.
    """
    if root.is_symlink() or not root.is_dir():
        root.unlink(missing_ok=True)
        return
    root.chmod(WRITABLE)
    top = os.open(root, OPEN_FOLDER)
    try:
        names = (f"{secrets.token_hex(8)}-{number}" for number in itertools.count())
        left = list(_emptied(top, top, names))
        while left:
            name = left.pop()
            opened = os.open(name, OPEN_FOLDER, dir_fd=top)
            try:
                left.extend(_emptied(opened, top, names))
            finally:
                os.close(opened)
            os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)
    root.rmdir()


def _emptied(folder: int, top: int, names: Iterator[str]) -> Iterator[str]:
    """Removes the files of a folder; moves its folders to the top, and gives their new names."""
    with os.scandir(folder) as found:
        entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
    for name, is_folder in entries:
        if not is_folder:
            os.unlink(name, dir_fd=folder)
            continue
        os.chmod(name, WRITABLE, dir_fd=folder)
        moved = next(names)
        os.rename(name, moved, src_dir_fd=folder, dst_dir_fd=top)
        yield moved
