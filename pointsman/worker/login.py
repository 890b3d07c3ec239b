"""An agent's private home: its login is shared with the user's, everything else is a copy that is thrown away.

A refreshed token makes the older one invalid, so that two copies of a login would end each other's session. While a
command runs, its login and the user's are synchronised, whichever changes, under a lock that all workers of a data
directory share. The command owns its home, so the worker follows no link there.
"""

import asyncio
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import IO

from pointsman._shared.files import make_private_folder
from pointsman.profiles import Profile

SYNC_SECONDS = 0.5
MAX_LOGIN_BYTES = 1024 * 1024
PRIVATE_FOLDER, PRIVATE_FILE = 0o700, 0o600


class SharedLogin:
    """One credential file of the user, and its copy in the home of a command."""

    def __init__(self, source: Path, home: Path, place: str, lock: Path) -> None:
        self._source, self._home, self._place, self._lock = source, home, place, lock
        self._agreed = source.read_bytes()
        with _folder_below(home, Path(place).parent) as folder:
            _replace(folder, Path(place).name, self._agreed)

    def sync(self) -> None:
        """Brings a change of either side to the other; a change by the command must still look like the login."""
        with self._lock.open("ab") as lock, suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
            ours, theirs = self._source.read_bytes(), self._copy()
            if ours != self._agreed:
                self._agreed = ours
                with _folder_below(self._home, Path(self._place).parent) as folder:
                    _replace(folder, Path(self._place).name, ours)
            elif theirs != self._agreed and _looks_alike(theirs, self._agreed):
                self._agreed = theirs
                with _folder_below(self._source.parent, Path()) as folder:
                    _replace(folder, self._source.name, theirs)

    def _copy(self) -> bytes:
        with _folder_below(self._home, Path(self._place).parent) as folder:
            opened = os.open(Path(self._place).name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
            with os.fdopen(opened, "rb") as file:
                return file.read(MAX_LOGIN_BYTES + 1)


@asynccontextmanager
async def private_home(profile: Profile, home: Path, locks: Path) -> AsyncIterator[None]:
    """A home with the profile's login and settings; during the block the login follows the user's and the other way."""
    shared = await asyncio.to_thread(_furnish, profile, home, locks)
    following = asyncio.create_task(_follow(shared)) if shared else None
    try:
        yield
    finally:
        if following is not None:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
        await asyncio.to_thread(_sync_all, shared)


async def _follow(shared: Iterable[SharedLogin]) -> None:
    while True:
        await asyncio.sleep(SYNC_SECONDS)
        await asyncio.to_thread(_sync_all, shared)


def _sync_all(shared: Iterable[SharedLogin]) -> None:
    for login in shared:
        login.sync()


def _furnish(profile: Profile, home: Path, locks: Path) -> list[SharedLogin]:
    """Copies settings and login files that the user has; the folders around them are there in any case."""
    home.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    make_private_folder(locks)
    shared = []
    for place in (*profile.settings, *profile.login):
        (home / place).parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        source = source_of(profile, place)
        if not source.is_file():
            continue
        if place in profile.settings:
            shutil.copyfile(source, home / place)
        else:
            name = hashlib.sha256(str(source.resolve()).encode()).hexdigest()[:32]
            shared.append(SharedLogin(source.resolve(), home, place, locks / f"{name}.lock"))
    return shared


def source_of(profile: Profile, place: str) -> Path:
    """Where the user has a file of the home folder; a variable of the agent may have moved its folder."""
    for moved in profile.moved_by:
        variable, _, folder = moved.partition("=")
        if os.environ.get(variable) and Path(place).is_relative_to(folder):
            return Path(os.environ[variable]).expanduser() / Path(place).relative_to(folder)
    return Path.home() / place


def _looks_alike(new: bytes, old: bytes) -> bool:
    """Whether a changed login is one still: a JSON object with the entries that it had."""
    try:
        after, before = json.loads(new), json.loads(old)
    except ValueError:
        return False
    if len(new) > MAX_LOGIN_BYTES or not isinstance(after, dict) or not isinstance(before, dict):
        return False
    return set(before) <= set(after)


@contextmanager
def _folder_below(root: Path, folder: Path) -> Iterator[int]:
    """A folder below a root, opened step by step without following a link."""
    opened = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for name in folder.parts:
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=opened)
            os.close(opened)
            opened = inner
        yield opened
    finally:
        os.close(opened)


def _replace(folder: int, name: str, content: bytes) -> None:
    """Writes a file of an opened folder at once, readable for its owner alone."""
    fresh = f".{name}.{os.urandom(4).hex()}"
    opened = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, PRIVATE_FILE, dir_fd=folder)
    with os.fdopen(opened, "wb") as file:
        _write(file, content)
    os.replace(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)


def _write(file: IO[bytes], content: bytes) -> None:
    file.write(content)
    file.flush()
    os.fsync(file.fileno())
