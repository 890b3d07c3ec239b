"""Tells the other replicas of what was committed: at once after a silence, else gathered for a moment.

PostgreSQL lets one notifying commit at a time pass, over the whole server, and wakes every listener for each; news
carry no data, so a burst needs few of them.
"""

import time
from collections.abc import Iterable

from sqlalchemy import Connection, bindparam, func, select

from pointsman.services.chassis.storage.database import Database, driver_of
from pointsman.services.chassis.storage.dialect import PreparedStatement
from pointsman.services.chassis.storage.notifications import channel, pack

BATCH_DELAY_SECONDS = 0.02


class NotifyBatcher:
    """The news of one store that other replicas have not heard yet; used in the writing thread."""

    def __init__(self, database: Database) -> None:
        self._channel = channel(database)
        self._notify = PreparedStatement(database, select(func.pg_notify(bindparam("channel"), bindparam("news"))))
        self._waiting: set[str] = set()
        self._silent_until = 0.0
        self._backend = 0

    def backend(self) -> int:
        """The database's process that sends for this one: who listens here knows its news already; from any thread."""
        return self._backend

    def enqueue(self, connection: Connection, names: Iterable[str]) -> None:
        """Let the names go with this transaction, or wait for a later one if there was news a moment ago."""
        self._waiting.update(names)
        if time.monotonic() >= self._silent_until:
            self.flush(connection)

    def flush(self, connection: Connection) -> None:
        """Let all that waits go with this transaction; should it fail, whoever waits looks again by the clock."""
        if self._waiting:
            self._notify.start(connection, {"channel": self._channel, "news": pack(self._waiting)})
            self._backend = driver_of(connection).info.backend_pid
            self._waiting.clear()
            self._silent_until = time.monotonic() + BATCH_DELAY_SECONDS

    @property
    def has_pending(self) -> bool:
        """Whether there is news that waits for another transaction."""
        return bool(self._waiting)
