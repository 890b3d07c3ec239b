"""Whether there is room for a checkout of a commit: each assignment and each proof makes one of its own."""

import os
import sys
from pathlib import Path

from pointsman.cli.session.workers import worker_root
from pointsman.worker.bounds import Extent, measure

LARGE = Extent(entries=50_000, size_bytes=1024**3)
"""Trees beyond this take long enough for a person to wonder."""


class TreeTooLarge(Exception):
    """A tree that does not fit on the disk; says what to do."""


async def checkout_notes_on_size(folder: Path, commit: str) -> list[str]:
    """What to know about the size of a commit; TreeTooLarge when the data directory's disk has no room for it."""
    place = worker_root()
    room = _room(place)
    found = await measure(folder, commit, room)
    if found.size_bytes > room.size_bytes or found.entries > room.entries:
        raise TreeTooLarge(
            f"a checkout of {commit[:12]} is too large for the disk of {place}, which has {_shown(room)} left "
            "(the commit has more); free some space, or name a folder on another disk with POINTSMAN_DATA"
        )
    if found.entries > LARGE.entries or found.size_bytes > LARGE.size_bytes:
        return [f"a large tree: {_shown(found)}; each assignment and each proof checks it out anew, below {place}"]
    return []


def _room(place: Path) -> Extent:
    """What the disk of a folder still takes; the folder may not be there yet."""
    there = next(folder for folder in (place, *place.parents) if folder.exists())
    found = os.statvfs(there)
    return Extent(found.f_favail or sys.maxsize, found.f_bavail * found.f_frsize, sys.maxsize)


def _shown(extent: Extent) -> str:
    return f"{extent.entries:,} files and folders, {extent.size_bytes / 1024**3:.1f} GiB"
