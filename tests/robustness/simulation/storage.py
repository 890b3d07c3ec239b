"""The stores in memory: the real statements on SQLite, committed in the loop's time, with deaths between any two steps."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.event import listen
from sqlalchemy.pool import StaticPool

from pointsman.services.chassis.core import crash
from pointsman.services.chassis.core.crash import CrashPoint
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.notifications import ANY, Hub
from pointsman.services.chassis.storage.packing import unpack
from pointsman.services.chassis.storage.store import Store
from pointsman.services.chassis.storage.writer import BatchHandler, Writer, _PendingWrite
from pointsman.services.chassis.telemetry import metrics
from tests.robustness.simulation.session import Session
from tests.robustness.simulation.world import Chance, SimClock

Result = TypeVar("Result")


class Death(BaseException):
    """The process ends here; nothing of it goes on, and nothing is cleaned up."""


class Fuse:
    """Kills at named crash points, as chance will have it."""

    left = 0

    def __init__(self, chance: Chance, die: Callable[[], None]) -> None:
        self._chance = chance
        self._die = die
        self._points = list(CrashPoint)
        self.armed = chance.random.choice(self._points)

    @property
    def point(self) -> CrashPoint | None:
        """The point that kills next; none while all is calm."""
        return None if self._chance.calm or not self._chance.deaths else self.armed

    def reach(self) -> None:
        """Die here, sometimes."""
        if self._chance.happens(min(0.5, self._chance.deaths * 8)):
            self.armed = self._chance.random.choice(self._points)
            self._die()
            raise Death


class MemoryDatabase(Database):
    """A store's database in memory; reading takes a moment.

    There is one connection: nothing is read while a batch is written, and what a process had not committed when it died
    is rolled back, as its file would be.
    """

    def __init__(self, name: str, clock: SimClock) -> None:
        self._driver = sqlite3.connect(":memory:", isolation_level=None, cached_statements=512)
        self._driver.create_function("unpacked", 1, unpack)
        super().__init__("sqlite:///:memory:", name, clock)
        self.chance: Chance | None = None
        self.session: Any = Session(self._driver)
        self._changes = 0

    def _sqlite(self, pragmas: tuple[str, ...], *, writes: bool) -> Engine:
        """Only migrations write through this."""
        engine = create_engine("sqlite://", creator=lambda: self._driver, poolclass=StaticPool)
        listen(engine, "begin", lambda _connection: self._driver.execute("BEGIN IMMEDIATE"))
        return engine

    @contextmanager
    def transaction(self, _connection: Connection) -> Iterator[None]:
        """All of it, or nothing: there is no other connection to go on with."""
        with self.session.begin():
            yield

    async def read(self, query: Callable[[Connection], Result]) -> Result:
        """Answer a little later, as it is then."""
        assert self.chance is not None
        await asyncio.sleep(self.chance.moment() if self.chance.happens(0.2) else 0)
        return query(self.session)

    def _read(self, query: Callable[[Connection], Result]) -> Result:
        return query(self.session)

    def empty(self, tables: Iterable[str], head: str) -> None:
        """Forget every row, but not the tables."""
        script = "".join(f"DELETE FROM {name};" for name in tables if name != head)
        self._driver.executescript(f"BEGIN;{script}UPDATE {head} SET position = 0;COMMIT;")
        self._changes = self._driver.total_changes

    @property
    def effects_wait(self) -> bool:
        """Whether anything is in the outbox."""
        return self._driver.execute("SELECT 1 FROM outbox LIMIT 1").fetchone() is not None

    @property
    def is_written(self) -> bool:
        """Whether any row was written since it was empty."""
        return self._driver.total_changes > self._changes


class _Never:
    """A writer that closes with its process and never before."""

    def is_set(self) -> bool:
        """Not closed."""
        return False

    def wait(self, _seconds: float) -> bool:
        """No time passes between the tries of one batch."""
        return False


class SimWriter(Writer):
    """The chassis' writer without its thread: batches are as large, and commits as late, as chance will have it."""

    def __init__(self, store: Store, chance: Chance) -> None:
        assert isinstance(store.database, MemoryDatabase)
        self._database = store.database
        self._connection = store.database.session
        self._closed = _Never()  # type: ignore[assignment]
        self._commit_seconds = metrics.commit_seconds.labels(store.database.schema)
        self._batch_size = metrics.batch_size.labels(store.database.schema)
        self._chance = chance
        self._queued: list[_PendingWrite] = []
        self._posted = {}
        self.dead = False

    def post(self, loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
        """Call back soon: there is no other thread here."""
        loop.call_soon(callback)

    async def write(self, handler: BatchHandler, item: Any) -> Any:
        """Put the item into one of the next batches."""
        if self.dead:
            raise asyncio.CancelledError
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._queued.append(_PendingWrite(handler, item, future, loop))
        if len(self._queued) == 1:
            loop.call_later(self._chance.moment(), self._commit, loop)
        return await future

    def _commit(self, loop: asyncio.AbstractEventLoop) -> None:
        if self.dead:
            return
        count = self._chance.random.choice((1, 2, 256))
        writes, self._queued = self._queued[:count], self._queued[count:]
        try:
            self._run(writes)
        except Death:
            return
        self._resolve(writes)
        if self._queued:
            loop.call_later(self._chance.moment(), self._commit, loop)

    def _commit_batch(self, writes: list[_PendingWrite]) -> None:
        if self._chance.happens(self._chance.outages):
            raise sqlite3.OperationalError("the disk is full")
        super()._commit_batch(writes)
        if self._chance.happens(self._chance.outages):
            raise sqlite3.OperationalError("committed, but nobody was told")

    def _drop_connection(self) -> None:
        """There is one, and what fails in a transaction was rolled back."""

    def end(self) -> None:
        """What was not committed is gone."""
        self._queued.clear()


class OrderedHub(Hub):
    """The hub, waking in the order of arrival: addresses in memory are no part of a seed."""

    def _wake(self, names: tuple[str, ...]) -> None:
        woken: dict[asyncio.Event, None] = {}
        for name in self._waiting if ANY in names else (*names, ANY):
            woken |= self._waiting.get(name, {})  # type: ignore[arg-type]
        for event in woken:
            event.set()


class Waiting(dict[Any, None]):
    """A set of events in the order in which they came."""

    def add(self, event: Any) -> None:
        """Wait from now on."""
        self[event] = None

    def discard(self, event: Any) -> None:
        """Wait no longer."""
        self.pop(event, None)


class _Names(dict[str, Any]):
    """The hub's names; each has its waiters in order."""

    def setdefault(self, name: str, _default: Any = None) -> Any:
        """The waiters of a name."""
        if name not in self:
            self[name] = Waiting()
        return self[name]


def fresh_hub(writer: Writer) -> OrderedHub:
    """A hub that nobody waits at."""
    hub = OrderedHub(writer.post)
    hub._waiting = _Names()
    return hub


def arm(chance: Chance, die: Callable[[], None]) -> None:
    """Let the named crash points kill in this seed."""
    crash._fuse = Fuse(chance, die)  # type: ignore[assignment]
