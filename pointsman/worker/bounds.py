"""Bounds of a commit, checked before its checkout: a bundle of a few hundred bytes can expand to millions of files."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from pointsman._shared.git import SAFE, TIME_LIMIT_SECONDS, GitFailed, environment
from pointsman._shared.git_failures import explain_failure, explain_timeout

CHUNK_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class TreeLimits:
    """Limits on what a commit may add to the commit that the work started from."""

    entries: int = 10_000
    """Files and folders."""
    size_bytes: int = 512 * 1024 * 1024
    depth: int = 50
    """Names in a path; a repository that is deeper already may stay so."""


@dataclass(frozen=True, slots=True)
class Extent:
    """The size of a commit: entries, bytes, depth."""

    entries: int = 0
    size_bytes: int = 0
    depth: int = 0

    def with_entry(self, size_bytes: int, depth: int) -> "Extent":
        """The same with one more file or folder."""
        return Extent(self.entries + 1, self.size_bytes + size_bytes, max(self.depth, depth))

    def beyond(self, limits: TreeLimits) -> "Extent":
        """The largest size that a commit on this one may have."""
        return Extent(self.entries + limits.entries, self.size_bytes + limits.size_bytes, max(self.depth, limits.depth))

    def excess_over(self, most: "Extent") -> str:
        """Names the exceeded bound and the setting that changes it; empty when none is exceeded."""
        if self.entries > most.entries:
            return f"it has more than {most.entries} files and folders (POINTSMAN_WORKER_TREE_ENTRIES)"
        if self.size_bytes > most.size_bytes:
            return f"its files have more than {most.size_bytes} bytes (POINTSMAN_WORKER_TREE_BYTES)"
        if self.depth > most.depth:
            return f"its paths have more than {most.depth} names (POINTSMAN_WORKER_TREE_DEPTH)"
        return ""


async def measure(repository: Path, commit: str, most: Extent | None = None) -> Extent:
    """Measures a commit of a repository; stops at its bounds."""
    process = await asyncio.create_subprocess_exec(
        "git", *SAFE, "ls-tree", "-r", "-t", "-z", "-l", "--full-tree", commit, cwd=repository, env=environment(),
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        async with asyncio.timeout(TIME_LIMIT_SECONDS):
            found = await extent_of(process.stdout, most)
            if most is not None and found.excess_over(most):
                return found
            _, errors = await process.communicate()
    except TimeoutError:
        raise GitFailed(explain_timeout(("ls-tree",), TIME_LIMIT_SECONDS)) from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()
    if process.returncode:
        raise GitFailed(explain_failure(("ls-tree",), process.returncode, errors.decode(errors="replace")))
    return found


async def extent_of(listing: asyncio.StreamReader, most: Extent | None = None) -> Extent:
    """Adds up the output of `git ls-tree -r -t -z -l`; stops reading once a bound is exceeded."""
    found = Extent()
    async for entry in _entries(listing):
        about, _, path = entry.partition(b"\t")
        size = about.rsplit(b" ", 1)[-1]
        found = found.with_entry(int(size) if size.isdigit() else 0, path.count(b"/") + 1)
        if most is not None and found.excess_over(most):
            break
    return found


async def _entries(listing: asyncio.StreamReader) -> AsyncIterator[bytes]:
    rest = b""
    while chunk := await listing.read(CHUNK_BYTES):
        *whole, rest = (rest + chunk).split(b"\0")
        for entry in whole:
            yield entry
