"""Files that are written atomically, and folders that only their owner can enter."""

import contextlib
import os
import tempfile
from pathlib import Path

PRIVATE = 0o700


def make_private_folder(path: Path) -> None:
    """Makes a folder and its missing parents, for their owner alone; those that exist stay as they are."""
    for folder in reversed((path, *path.parents)):
        if not folder.exists():
            folder.mkdir(mode=PRIVATE, exist_ok=True)


def atomic_write(path: Path, data: str | bytes) -> None:
    """Writes a file atomically: temporary file beside it, fsync, rename."""
    content = data.encode() if isinstance(data, str) else data
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()
        raise
