"""Where the control plane of a data directory listens, as its lock file says."""

import os
from pathlib import Path

import msgspec

LOCK = "pointsman.lock"
CONSOLE_LOCK = "gateway.lock"
"""Held by a gateway that runs alone."""
DEFAULT_DATA = "~/.local/share/pointsman"


class Owner(msgspec.Struct, frozen=True):
    """The process that holds a lock, and its addresses."""

    pid: int
    address: str = ""
    """Where commands of this machine reach it: a Unix socket, or a port where it listens without credentials."""
    yields: bool = False
    """Whether it releases the lock soon: by itself, or when a permanent server needs it."""
    tcp: str = ""
    """Where clients in other languages reach it."""
    console: str = ""
    """Where its web console is."""


def data_directory() -> Path:
    """The data directory that POINTSMAN_DATA names, or the default one."""
    return Path(os.environ.get("POINTSMAN_DATA") or DEFAULT_DATA).expanduser().resolve()


class AnnouncedAddress:
    """The address of a data directory's owner, read again with every call; the last one while there is no owner."""

    def __init__(self, lock: Path) -> None:
        self._lock = lock
        self._address = ""

    @property
    def value(self) -> str:
        """The address."""
        owner = owner_of(self._lock)
        if owner is not None and owner.address not in ("", self._address):
            self._address = owner.address
        return self._address


def owner_of(path: Path) -> Owner | None:
    """The owner that a lock file names; None if it is empty, incomplete or unreadable."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Owner)
    except (OSError, msgspec.MsgspecError):
        return None


def is_alive(pid: int) -> bool:
    """Whether a process lives: a killed one leaves its address behind until the next owner writes its own."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
