"""The lock of a SQLite store, released when its process ends; the lock file holds the address of the owner."""

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import msgspec

from pointsman._shared.files import make_private_folder
from pointsman.credentials.location import Owner, owner_of
from pointsman.services.chassis.core.errors import Reason, Refusal, invalid_field

if TYPE_CHECKING:
    from pointsman.services.chassis.storage.database import Database


class StoreLock:
    """A held lock; other processes are refused with its owner."""

    def __init__(self, path: Path, guarded: Path | None = None, *, yields: bool = False) -> None:
        """Acquire the lock; it guards its directory unless `guarded` names something else."""
        self._yields = yields
        try:
            make_private_folder(path.parent)
            self._file = path.open("a+b")
        except OSError as error:
            raise unusable(path.parent, error) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise _locked_by_another(path, guarded or path.parent) from None
        self.announce("")

    def announce(self, address: str, tcp: str = "", console: str = "") -> None:
        """Write pid and addresses of the owner to the file."""
        self._file.seek(0)
        self._file.truncate()
        self._file.write(msgspec.json.encode(Owner(os.getpid(), address, self._yields, tcp, console)))
        self._file.flush()

    def release(self) -> None:
        """Release the lock."""
        self._file.truncate(0)
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def unusable(folder: Path, error: OSError) -> Refusal:
    """The data directory cannot be written."""
    reason = (error.strerror or str(error)).lower()
    return invalid_field(
        "POINTSMAN_DATA",
        f"{folder} cannot be used ({reason}); make it a directory that you can write, or choose another",
    )


def lock_store(database: "Database") -> StoreLock | None:
    """Lock a SQLite store for writing; None for PostgreSQL, which has several writers."""
    file = database.file
    return StoreLock(file.with_name(f"{file.name.removesuffix('.db')}.lock"), file) if file is not None else None


def is_locked(path: Path) -> bool:
    """Whether a live process holds the lock."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


def _locked_by_another(path: Path, guarded: Path) -> Refusal:
    owner = owner_of(path)
    who = (
        f"process {owner.pid}" + (f", serving at {owner.tcp or owner.address}" if owner.address else "")
        if owner
        else "another process"
    )
    return Refusal(
        Reason.UNAVAILABLE,
        f"{guarded} is in use by {who}; stop it, connect to it (POINTSMAN_SERVER; POINTSMAN_PEERS_* for single services), "
        "or choose another directory with POINTSMAN_DATA",
        metadata={"address": (owner.tcp or owner.address) if owner else ""},
    )
