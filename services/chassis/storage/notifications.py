"""Notifications of commits: to waiters in this process, and by LISTEN/NOTIFY to other replicas.

A notification carries names, never data: a lost one costs time (every waiter also polls), never a row.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import msgspec
import structlog
from sqlalchemy import Connection, bindparam, func, select

from pointsman.services.chassis.storage.database import Database, driver_of
from pointsman.services.chassis.storage.dialect import PreparedStatement
from pointsman.services.chassis.storage.driver_errors import driver_errors

ANY = "*"
MAX_PAYLOAD_BYTES = 7000
RECONNECT_SECONDS = 1.0
POLL_SECONDS = 0.5
BATCH_DELAY_SECONDS = 0.02

log = structlog.get_logger()


class Hub:
    """Wakes the tasks of this process that wait for changes of an entity; waits happen on one event loop."""

    def __init__(self, post: Callable[[asyncio.AbstractEventLoop, Callable[[], None]], None]) -> None:
        self._post = post
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: dict[str, set[asyncio.Event]] = {}

    def bind(self) -> None:
        """Wake on the running event loop from now on."""
        self._loop = asyncio.get_running_loop()

    @contextlib.contextmanager
    def subscribed(self, *names: str) -> Iterator[asyncio.Event]:
        """An event that is set whenever one of the names (entity ids, or ANY) is notified."""
        event = asyncio.Event()
        for name in names:
            self._waiting.setdefault(name, set()).add(event)
        try:
            yield event
        finally:
            for name in names:
                self._waiting[name].discard(event)
                if not self._waiting[name]:
                    del self._waiting[name]

    def notify(self, names: Iterable[str]) -> None:
        """Wake the subscribers of the names; from any thread."""
        if self._loop is not None and self._waiting:
            self._post(self._loop, partial(self._wake, tuple(names)))

    def call(self, callback: Callable[[], None]) -> None:
        """Call back on the event loop that serves; from any thread."""
        if self._loop is not None:
            self._post(self._loop, callback)

    def _wake(self, names: tuple[str, ...]) -> None:
        for name in (*names, ANY):
            for event in self._waiting.get(name, ()):
                event.set()
        if ANY in names:
            for events in self._waiting.values():
                for event in events:
                    event.set()


class Listener:
    """A thread that forwards the notifications of other replicas to the hub."""

    def __init__(self, database: Database, hub: Hub, owner: str, own_backend: Callable[[], int]) -> None:
        self._database = database
        self._own_backend = own_backend
        self._hub = hub
        self._owner = owner
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"{database.schema}-listen", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._listen()
            except driver_errors() as error:
                log.warning("listener_lost", store=self._database.schema, error=type(error).__name__)
                self._stopping.wait(RECONNECT_SECONDS)

    def _listen(self) -> None:
        import psycopg  # noqa: PLC0415 - SQLite does without it

        url = self._database.url.set(drivername="postgresql").render_as_string(hide_password=False)
        # The name of this connection in pg_stat_activity shows the other replicas that this process is alive and
        # that its leases hold.
        name = self._owner
        with psycopg.connect(url, autocommit=True, connect_timeout=5, application_name=name) as connection:
            connection.execute(f'LISTEN "{channel(self._database)}"')
            self._hub.notify([ANY])
            while not self._stopping.is_set():
                for notification in connection.notifies(timeout=POLL_SECONDS):
                    if notification.pid != self._own_backend():
                        self._hub.notify(unpack(notification.payload))


class NotifyBatcher:
    """Sends NOTIFY to other replicas at once after a pause, else batched for a moment; used by the writing thread.

    PostgreSQL serializes commits that notify over the whole server and wakes every listener for each of them.
    """

    def __init__(self, database: Database) -> None:
        self._channel = channel(database)
        self._notify = PreparedStatement(database, select(func.pg_notify(bindparam("channel"), bindparam("names"))))
        self._pending: set[str] = set()
        self._quiet_until = 0.0
        self._backend = 0

    def backend(self) -> int:
        """The PostgreSQL process that notifies for this one, whose notifications our listener skips; from any thread."""
        return self._backend

    def enqueue(self, connection: Connection, names: Iterable[str]) -> None:
        """Notify with this transaction, or with a later one if the last notification was a moment ago."""
        self._pending.update(names)
        if time.monotonic() >= self._quiet_until:
            self.flush(connection)

    def flush(self, connection: Connection) -> None:
        """Notify all pending names with this transaction; if it fails, waiters find the change when they poll."""
        if self._pending:
            self._notify.start(connection, {"channel": self._channel, "names": pack(self._pending)})
            self._backend = driver_of(connection).info.backend_pid
            self._pending.clear()
            self._quiet_until = time.monotonic() + BATCH_DELAY_SECONDS

    @property
    def has_pending(self) -> bool:
        """Whether names wait for another transaction."""
        return bool(self._pending)


def channel(database: Database) -> str:
    """The name of the channel on which the replicas of a store notify each other."""
    return f"pointsman_{database.schema}"


def pack(names: Iterable[str]) -> str:
    """The names as the payload of a notification; ANY, if they do not fit."""
    payload = msgspec.json.encode(sorted(names))
    return payload.decode() if len(payload) <= MAX_PAYLOAD_BYTES else f'["{ANY}"]'


def unpack(payload: str) -> list[str]:
    """The names in a notification; ANY, if another program has sent it."""
    try:
        names: list[str] = msgspec.json.decode(payload, type=list[str])
    except msgspec.MsgspecError:
        return [ANY]
    return names
