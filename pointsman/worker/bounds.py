"""How much a commit may hold before it is written to disk: a bundle of some hundred bytes can stand for millions of files."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

CHUNK_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class TreeLimits:
    """What a commit may hold beyond the commit that the work started from."""

    entries: int = 10_000
    """Files and folders."""
    size_bytes: int = 512 * 1024 * 1024
    depth: int = 50
    """Names in a path; a repository that is deeper already may stay so."""


@dataclass(frozen=True, slots=True)
class Extent:
    """How much a commit holds."""

    entries: int = 0
    size_bytes: int = 0
    depth: int = 0

    def with_entry(self, size_bytes: int, depth: int) -> "Extent":
        """The same with one more file or folder."""
        return Extent(self.entries + 1, self.size_bytes + size_bytes, max(self.depth, depth))

    def beyond(self, limits: TreeLimits) -> "Extent":
        """The most that work on this may hold."""
        return Extent(self.entries + limits.entries, self.size_bytes + limits.size_bytes, max(self.depth, limits.depth))

    def excess_over(self, most: "Extent") -> str:
        """The bound that is passed, in words and with the setting that moves it; empty when none is."""
        if self.entries > most.entries:
            return f"it has more than {most.entries} files and folders (POINTSMAN_WORKER_TREE_ENTRIES)"
        if self.size_bytes > most.size_bytes:
            return f"its files have more than {most.size_bytes} bytes (POINTSMAN_WORKER_TREE_BYTES)"
        if self.depth > most.depth:
            return f"its paths have more than {most.depth} names (POINTSMAN_WORKER_TREE_DEPTH)"
        return ""


async def extent_of(listing: asyncio.StreamReader, most: Extent | None = None) -> Extent:
    """What `git ls-tree -r -t -z -l` lists, read only until it passes a bound."""
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
