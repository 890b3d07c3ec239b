"""Repositories that hold the history of one commit and nothing else, copied into working trees."""

import asyncio
import os
import shutil
from contextlib import suppress
from pathlib import Path

from pointsman._shared.git import git
from pointsman.worker.folders import work_folder

MAX_HISTORIES = 4
"""Histories that are reused by the next working tree on the same commit."""
SHA256_LENGTH = 64


class Histories:
    """The histories of commits of one private clone, each fetched once: a tree that borrowed objects could read others."""

    def __init__(self, clone: Path, scratch: Path) -> None:
        self._clone = clone
        self._folder = clone.with_suffix(".histories")
        self._scratch = scratch
        self._lock = asyncio.Lock()

    async def lay_out(self, commit: str, tree: Path) -> None:
        """Makes a repository in a new folder that has a commit and what it descends from."""
        async with self._lock:
            cached = self._folder / commit
            if not cached.is_dir():
                await self._keep(commit)
            try:
                await asyncio.to_thread(shutil.copytree, cached, tree / ".git", symlinks=True)
            except OSError:  # another worker of this data directory has removed it in between
                await asyncio.to_thread(shutil.rmtree, tree, ignore_errors=True)
                await self._fetch(commit, tree)

    async def _keep(self, commit: str) -> None:
        with work_folder(self._scratch, "history") as scratch:
            await self._fetch(commit, scratch / "tree")
            self._folder.mkdir(parents=True, exist_ok=True)
            with suppress(OSError):  # another worker was faster
                (scratch / "tree" / ".git").rename(self._folder / commit)
        _forget_old(self._folder)

    async def _fetch(self, commit: str, tree: Path) -> None:
        hashes = "sha256" if len(commit) == SHA256_LENGTH else "sha1"
        await git(self._clone, "init", "-q", "--template=", f"--object-format={hashes}", str(tree))
        options = ("--no-tags", "--update-shallow", "--no-write-fetch-head")
        await git(tree, "fetch", "-q", *options, str(self._clone), commit)


def _forget_old(folder: Path) -> None:
    """Removes all but the newest; one that a worker copies right now is fetched again there."""
    by_age = sorted(folder.iterdir(), key=os.path.getmtime, reverse=True)
    for old in by_age[MAX_HISTORIES:]:
        shutil.rmtree(old, ignore_errors=True)
