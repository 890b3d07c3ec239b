"""Copies of what set-up downloaded and warm-ups built: an agent may change its copy, and nobody else sees it."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

MAX_COPIED_BYTES = 4 * 1024 * 1024 * 1024
"""More is not copied for each agent: its tools fetch and build anew what they need."""


@dataclass(frozen=True, slots=True)
class PrivateDownloads:
    """Folders of one agent: a home with downloads, and build caches by their variable."""

    home: Path
    caches: Mapping[str, Path]
    digest: str
    """The plan whose set-up filled them."""
    installs: bool
    """Whether that set-up puts files into the tree; one that only downloads is done once the downloads are there."""


def copy_downloads(source: Path, target: Path) -> Path:
    """Copies a folder, as far as it is not too large; files get the time of the copy, so that no tool takes them for old."""
    target.mkdir(parents=True, exist_ok=True)
    if source.is_dir() and size_of(source) <= MAX_COPIED_BYTES:
        shutil.copytree(source, target, symlinks=True, copy_function=shutil.copy, dirs_exist_ok=True)
    return target


def size_of(folder: Path) -> int:
    """The bytes of all files below a folder."""
    return sum((Path(place) / name).lstat().st_size for place, _, names in os.walk(folder) for name in names)
