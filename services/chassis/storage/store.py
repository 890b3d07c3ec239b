"""The store of a context: database, chassis tables, writing thread and notifications."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import Connection, MetaData, String, and_, column, or_, select, text

from pointsman.services.chassis.core.clock import to_us
from pointsman.services.chassis.core.ids import new_id
from pointsman.services.chassis.core.machine import Machine
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.head_poller import HeadPoller
from pointsman.services.chassis.storage.notifications import BATCH_DELAY_SECONDS, Hub, Listener, NotifyBatcher
from pointsman.services.chassis.storage.tables import chassis_tables
from pointsman.services.chassis.storage.writer import Executed, Writer

Result = TypeVar("Result")
TIMERS = "#timers"
EFFECTS = "#effects"
FAR_SECONDS = 600
"""Longer than any lease or backoff of an effect."""


class Store:
    """The durable rows of one context; every write goes through its writer."""

    def __init__(self, database: Database, metadata: MetaData) -> None:
        self.database = database
        self.metadata = metadata
        self.tables = chassis_tables(metadata)
        self.owner = new_id("proc", database.clock.now())
        self.writer = Writer(database)
        self.hub = Hub(self.writer.post)
        self.notify_batcher = NotifyBatcher(database) if database.features.listen else None
        """Notifies other replicas; a SQLite file has none, and without LISTEN they poll."""
        self._notify_pending = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._deliver: Callable[[Sequence[Any]], None] | None = None
        self.ledgers: list[Any] = []
        """The ledgers of this store; each registers itself."""
        self.gauges: list[Callable[[Connection], None]] = []
        """Functions that update gauges from the database; contexts add theirs."""
        self.next_timer_poll_us: float = 0
        """When this process polls for due timers next: only an earlier timer needs a notification."""
        self._jobs = _Jobs()
        self._listener: Listener | HeadPoller | None = None

    @property
    def delivers_effects(self) -> bool:
        """Whether this process delivers the effects that it commits."""
        return self._deliver is not None

    def deliver_with(self, deliver: Callable[[Sequence[Any]], None]) -> None:
        """Pass each committed effect to this function, on the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._deliver = deliver

    def dispatch_first_attempts(self, effects: Sequence[Any]) -> None:
        """Start the first delivery of effects after their commit; called in the writing thread."""
        if self._loop is not None and self._deliver is not None:
            self.writer.post(self._loop, partial(self._deliver, effects))

    async def release_stale_leases(self) -> None:
        """Free all leases of a SQLite store: it has one owner, so they belong to a process that died."""
        if not self.database.is_postgresql:
            await self.write(self._free_leases)

    def _free_leases(self, connection: Connection) -> None:
        for table in (self.tables.outbox, self.tables.timers):
            connection.execute(table.update().where(table.c.lease_until_us > 0).values(lease_until_us=0))
        connection.execute(self.tables.leases.update().values(until_us=0))

    def requeue_stranded(self, connection: Connection) -> int:
        """Make stranded effects due now; returns how many.

        An effect is stranded if a wrong clock has postponed it far into the future, or if its replica is dead: a live one
        has a listening connection with its name in pg_stat_activity.
        """
        outbox, now_us = self.tables.outbox, to_us(self.database.clock.now())
        far_us = now_us + FAR_SECONDS * 1_000_000
        stranded = or_(outbox.c.due_at_us > far_us, outbox.c.lease_until_us > far_us)
        if self.database.features.listen:
            name = column("application_name", String)
            alive = select(name).select_from(text("pg_stat_activity")).where(name.is_not(None))
            owner = outbox.c.lease_owner
            dead = and_(owner != self.owner, owner.not_in(alive))
            stranded = or_(stranded, and_(outbox.c.lease_until_us > now_us, dead))
        return connection.execute(outbox.update().where(stranded).values(due_at_us=now_us, lease_until_us=0)).rowcount

    def start(self) -> None:
        """Start notifications; called on the event loop that serves."""
        self.hub.bind()
        self.database.synchronise_clock()
        if self.notify_batcher is not None:
            self._listener = Listener(self.database, self.hub, self.owner, self.notify_batcher.backend)
        elif self.database.is_postgresql:
            self._listener = HeadPoller(self.database, self.hub, self.tables)

    @property
    def machines(self) -> list[Machine[Any]]:
        """The machine of each kind of entity."""
        return [ledger.machine for ledger in self.ledgers]

    def close(self) -> None:
        """Commit queued writes and close the database."""
        self.writer.close()
        if self._listener is not None:
            self._listener.close()
        self.database.close()

    async def write(self, job: Callable[[Connection], Result]) -> Result:
        """Write rows that are no transitions (leases, artifacts, retention), in the next batch."""
        result: Result = await self.writer.write(self._jobs, job)
        return result

    def notify(self, names: set[str]) -> None:
        """Notify the watchers and loops of this process of a commit."""
        self.hub.notify(names)
        if self.notify_batcher is not None and self.notify_batcher.has_pending:
            self.hub.call(self._notify_pending.set)

    async def flush_notifications(self) -> None:
        """A loop: send batched notifications to other replicas, unless a commit has sent them."""
        while self.notify_batcher is not None:
            await self._notify_pending.wait()
            self._notify_pending.clear()
            await asyncio.sleep(BATCH_DELAY_SECONDS)
            await self.write(self.notify_batcher.flush)


class _Jobs:
    """A handler for jobs: functions of the connection."""

    def execute(self, connection: Connection, items: Sequence[Callable[[Connection], Any]]) -> Executed:
        """Run each job."""
        return Executed([job(connection) for job in items])
