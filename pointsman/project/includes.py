"""Copies files that git ignores and a tree needs, such as `.env.test`, from the user's working tree."""

import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

MAX_BYTES = 256 * 1024 * 1024
MAX_FILES = 10_000


class IncludeTooLarge(Exception):
    """More is included than a tree can be given each time."""


def copy_includes(source: Path, tree: Path, patterns: Sequence[str]) -> tuple[str, ...]:
    """Copies what the patterns name into a tree that does not have it; nothing is followed out of the source."""
    copied: list[str] = []
    size = 0
    for name in dict.fromkeys(path for pattern in patterns for path in _files(source, pattern)):
        origin, target = source / name, tree / name
        if os.path.lexists(target) or not _stays_inside(target.parent, tree):
            continue
        size += origin.stat().st_size
        if size > MAX_BYTES or len(copied) >= MAX_FILES:
            raise IncludeTooLarge(
                f"[workspace] include names more than {MAX_FILES} files or {MAX_BYTES} bytes; fetch them in setup instead"
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(origin, target)
        copied.append(name)
    return tuple(copied)


def digest_includes(source: Path, patterns: Sequence[str]) -> str:
    """The digest of what would be copied; empty when that is nothing."""
    names = sorted({path for pattern in patterns for path in _files(source, pattern)})
    digest = hashlib.sha256()
    for name in names:
        with (source / name).open("rb") as file:
            digest.update(
                f"{name}\0{hashlib.file_digest(file, 'sha256').hexdigest()}\0".encode(errors="surrogateescape")
            )
    return digest.hexdigest() if names else ""


def _files(source: Path, pattern: str) -> Iterator[str]:
    """The files that a pattern names, those of a named folder included."""
    for found in sorted(source.glob(pattern)):
        for path in sorted(found.rglob("*")) if found.is_dir() else (found,):
            if path.is_file() and _stays_inside(path, source) and ".git" not in path.relative_to(source).parts:
                yield str(path.relative_to(source))


def _stays_inside(path: Path, folder: Path) -> bool:
    """Whether a path, with all its links followed, is below a folder."""
    return path.resolve().is_relative_to(folder.resolve())
