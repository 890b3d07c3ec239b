"""A disk that is slow for a while: each commit of one service takes as long as a file says, which also counts them."""

import mmap
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from sqlalchemy import Connection

from pointsman.services.chassis.storage.database import Database

Transaction = Callable[[Database, Connection], AbstractContextManager[None]]
DELAY = struct.Struct("d")
SLOWED = struct.Struct("Q")


class Disk:
    """The file between the campaign, which says how slow the disk is, and the service, which counts what it slowed."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), DELAY.size + SLOWED.size)

    @property
    def delay_seconds(self) -> float:
        """How long a commit takes longer than it would."""
        return float(DELAY.unpack_from(self._shared)[0])

    @delay_seconds.setter
    def delay_seconds(self, seconds: float) -> None:
        DELAY.pack_into(self._shared, 0, seconds)

    @property
    def slowed(self) -> int:
        """How many commits were begun on the slow disk."""
        return int(SLOWED.unpack_from(self._shared, DELAY.size)[0])

    def count(self) -> None:
        """One more."""
        SLOWED.pack_into(self._shared, DELAY.size, self.slowed + 1)


def a_disk(path: Path) -> Disk:
    """A new one, which is fast."""
    path.write_bytes(DELAY.pack(0.0) + SLOWED.pack(0))
    return Disk(path)


def slowed_transaction(disk: Disk) -> Transaction:
    """Transactions whose commit is late: half of the delay passes before it is durable, half after and before anybody knows."""
    true_transaction = Database.transaction

    @contextmanager
    def transaction(database: Database, connection: Connection) -> Iterator[None]:
        with true_transaction(database, connection):
            yield
            delay_seconds = disk.delay_seconds
            if delay_seconds:
                disk.count()
                _stand_still(delay_seconds / 2)
        if delay_seconds:
            _stand_still(delay_seconds / 2)

    return transaction


def _stand_still(seconds: float) -> None:
    time.sleep(seconds)  # noqa: TID251 - the writing thread stands still, as it does in fsync
