"""Temporary folders, each locked by its process, so that the folders of killed processes can be removed."""

import fcntl
import os
import secrets
from asyncio import CancelledError
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from pointsman._shared.files import make_private_folder
from pointsman._shared.removal import remove_tree

LOCK_SUFFIX = ".lock"
Wish = Callable[[Path], bool]
"""Whether somebody wants to go on with a folder."""


def never(_place: Path) -> bool:
    """Nobody goes on with any folder."""
    return False


@dataclass(frozen=True, slots=True)
class Abandoned:
    """A folder whose process is dead: its size, and why it could not be removed, if so."""

    path: Path
    size_bytes: int
    error: str = ""


@contextmanager
def work_folder(parent: Path, name: str, goes_on: Wish = never) -> Iterator[Path]:
    """A new folder, or one of a dead process to go on with; removed at the end of the block.

    kill -9 leaves it behind, and a cancelled block does where somebody could go on with it.
    """
    make_private_folder(parent)
    place, lock = _lock_abandoned(parent, goes_on) or _lock_new(parent, name)
    stays = False
    try:
        place.mkdir(exist_ok=True)
        yield place
    except CancelledError:
        stays = goes_on(place)
        raise
    finally:
        if not stays:
            with suppress(OSError):
                remove_tree(place)
            _lock_of(place).unlink(missing_ok=True)
        lock.close()


def remove_abandoned(parent: Path, *, dry_run: bool = False, spare: Wish = never) -> Sequence[Abandoned]:
    """Removes the folders whose process is dead and returns them; with `dry_run` it only returns them."""
    if not parent.is_dir():
        return ()
    locked = {path.with_suffix("") for path in parent.glob(f"*{LOCK_SUFFIX}")}
    found = []
    for place in sorted(locked | {path for path in parent.iterdir() if path.is_dir() and not path.is_symlink()}):
        with _owner_is_dead(place) as is_dead:
            if is_dead and place.is_dir() and not spare(place):
                found.append(Abandoned(place, _size_bytes(place), "" if dry_run else _removed(place)))
            if is_dead and not place.exists() and not dry_run:
                _lock_of(place).unlink(missing_ok=True)
    return found


@contextmanager
def _owner_is_dead(place: Path) -> Iterator[bool]:
    """Whether a folder's process is dead; holds the folder's lock meanwhile. A lock is created before its folder."""
    try:
        lock = _lock_of(place).open("rb")
    except FileNotFoundError:
        yield True
        return
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def _lock_of(place: Path) -> Path:
    return place.with_name(place.name + LOCK_SUFFIX)


def _lock_new(parent: Path, name: str) -> tuple[Path, IO[bytes]]:
    """A new name with its lock held; retried if `remove_abandoned` deletes the lock file in between."""
    while True:
        place = parent / f"{name}-{secrets.token_hex(4)}"
        lock = _lock_of(place).open("ab")
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.fstat(lock.fileno()).st_nlink:
            return place, lock
        lock.close()


def _lock_abandoned(parent: Path, goes_on: Wish) -> tuple[Path, IO[bytes]] | None:
    """A folder of a dead process that somebody wants to go on with, with its lock held."""
    for path in sorted(parent.glob(f"*{LOCK_SUFFIX}")):
        place = path.with_suffix("")
        if not place.is_dir() or place.is_symlink() or not goes_on(place):
            continue
        with suppress(OSError):
            lock = path.open("rb")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.close()
                continue
            if os.fstat(lock.fileno()).st_nlink:
                return place, lock
            lock.close()
    return None


def _removed(place: Path) -> str:
    """Removes a folder; returns the error, if any."""
    try:
        remove_tree(place)
    except OSError as error:
        return f"{error.filename or place}: {(error.strerror or str(error)).lower()}"
    return ""


def _size_bytes(place: Path) -> int:
    """The bytes of all files, as far as their paths are short enough for the system."""
    total, left = 0, [str(place)]
    while left:
        with suppress(OSError), os.scandir(left.pop()) as found:
            for entry in found:
                if entry.is_dir(follow_symlinks=False):
                    left.append(entry.path)
                else:
                    total += entry.stat(follow_symlinks=False).st_size
    return total
