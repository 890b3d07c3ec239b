"""The stores in memory: the real statements on SQLite, committed in the loop's time, with deaths between any two steps."""

import asyncio
import sqlite3
from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import Connection

from pointsman.services.chassis import crash, metrics
from pointsman.services.chassis.crash import CrashPoint
from pointsman.services.chassis.db import Database
from pointsman.services.chassis.store import Store
from pointsman.services.chassis.watch import ANY, Hub
from pointsman.services.chassis.writer import BatchHandler, Writer, _Ticket
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
    """A store's database in memory; reading takes a moment, and may find it away."""

    def __init__(self, name: str, clock: SimClock) -> None:
        url = f"sqlite:///file:{name}?mode=memory&cache=shared&uri=true"
        super().__init__(url, name, clock)
        self.chance: Chance | None = None
        self._keeper = self.writing.connect()
        self._reader = self.reading.connect()

    async def read(self, query: Callable[[Connection], Result]) -> Result:
        """Answer a little later, as it is then."""
        assert self.chance is not None
        await asyncio.sleep(self.chance.moment() if self.chance.happens(0.2) else 0)
        return self._read(query)

    def _read(self, query: Callable[[Connection], Result]) -> Result:
        """One connection for all: nobody writes while somebody reads."""
        try:
            return query(self._reader)
        finally:
            self._reader.rollback()


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
        self._database = store.database
        self._connection = None
        self._closed = _Never()  # type: ignore[assignment]
        self._took = metrics.commit_seconds.labels(store.database.schema)
        self._size = metrics.batch_size.labels(store.database.schema)
        self._chance = chance
        self._tickets: list[_Ticket] = []
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
        self._tickets.append(_Ticket(handler, item, future, loop))
        if len(self._tickets) == 1:
            loop.call_later(self._chance.moment(), self._commit, loop)
        return await future

    def _commit(self, loop: asyncio.AbstractEventLoop) -> None:
        if self.dead:
            return
        count = self._chance.random.choice((1, 2, 256))
        tickets, self._tickets = self._tickets[:count], self._tickets[count:]
        try:
            self._run(tickets)
        except Death:
            return
        self._answer(tickets)
        if self._tickets:
            loop.call_later(self._chance.moment(), self._commit, loop)

    def _transact(self, tickets: list[_Ticket]) -> None:
        if self._chance.happens(self._chance.outages):
            raise sqlite3.OperationalError("the disk is full")
        super()._transact(tickets)
        if self._chance.happens(self._chance.outages):
            raise sqlite3.OperationalError("committed, but nobody was told")

    def end(self) -> None:
        """What was not committed is gone."""
        self._tickets.clear()
        self._drop_connection()


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


def empty(store: Store) -> None:
    """Forget every row, but not the tables."""
    head = store.tables.head.name
    names = [name for name in store.metadata.tables if name != head]
    script = "".join(f"DELETE FROM {name};" for name in names) + f"UPDATE {head} SET position = 0;"
    with store.database.writing.connect() as connection:
        driver: Any = connection.connection.driver_connection
        driver.executescript(f"BEGIN;{script}COMMIT;")
