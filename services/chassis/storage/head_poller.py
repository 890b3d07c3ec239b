"""Notifications without LISTEN: a thread that polls the journal's head, often while there are commits."""

import threading

import structlog
from sqlalchemy import Connection, select

from pointsman.services.chassis.core.errors import Refusal
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.notifications import ANY, Hub
from pointsman.services.chassis.storage.tables import ChassisTables

MIN_SECONDS, MAX_SECONDS = 0.02, 0.5
"""How long it waits after a commit, and at most when nothing happens."""
GROWTH = 1.5
MAX_NAMES = 200

log = structlog.get_logger()


class HeadPoller:
    """Wakes the waiters of the entities that any replica has changed."""

    def __init__(self, database: Database, hub: Hub, tables: ChassisTables) -> None:
        self._database = database
        self._hub = hub
        self._head = select(tables.head.c.position)
        journal = tables.journal.c
        self._changed = select(journal.entity_id).order_by(journal.position).limit(MAX_NAMES + 1)
        self._position = journal.position
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"{database.schema}-poll", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop polling."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        seen, wait_seconds = -1, MIN_SECONDS
        while not self._stopping.wait(wait_seconds):
            try:
                position, names = self._database.read_now(lambda connection: self._news(connection, seen))  # noqa: B023
            except Refusal:
                log.warning("poller_lost", store=self._database.schema)
                wait_seconds = MAX_SECONDS
                continue
            wait_seconds = MIN_SECONDS if position != seen else min(wait_seconds * GROWTH, MAX_SECONDS)
            seen = position
            if names:
                self._hub.notify(names)

    def _news(self, connection: Connection, seen: int) -> tuple[int, list[str]]:
        """The head's position, and the entities that were changed since the last look."""
        position = connection.execute(self._head).scalar_one()
        if position == seen:
            return position, []
        found = connection.execute(self._changed.where(self._position > seen)).scalars().all() if seen >= 0 else ()
        return position, list(set(found)) if 0 < len(found) <= MAX_NAMES else [ANY]
