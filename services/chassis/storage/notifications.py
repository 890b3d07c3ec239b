"""Who waits for news of which entity, and the thread that hears it from other replicas."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import msgspec
import psycopg
import structlog

from pointsman.services.chassis.storage.database import Database

ANY = "*"
MAX_PAYLOAD_BYTES = 7000
RECONNECT_SECONDS = 1.0
POLL_SECONDS = 0.5

log = structlog.get_logger()


class Hub:
    """Wakes those who wait; it carries no data, so that a missed wake costs time and never a row."""

    def __init__(self, post: Callable[[asyncio.AbstractEventLoop, Callable[[], None]], None]) -> None:
        self._post = post
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: dict[str, set[asyncio.Event]] = {}

    def bind(self) -> None:
        """Wake on the running event loop from now on."""
        self._loop = asyncio.get_running_loop()

    @contextlib.contextmanager
    def subscribed(self, *names: str) -> Iterator[asyncio.Event]:
        """An event that is set whenever one of the names (entity ids, or ANY) has news."""
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
        """Wake whoever waits for one of the names; from any thread."""
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
    """A thread that turns the notifications of other replicas into wakes of the hub."""

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
            except psycopg.Error as error:
                log.warning("listener_lost", store=self._database.schema, error=type(error).__name__)
                self._stopping.wait(RECONNECT_SECONDS)

    def _listen(self) -> None:
        url = self._database.url.set(drivername="postgresql").render_as_string(hide_password=False)
        shown = self._owner  # as long as the database shows it, this process is alive and holds what it has leased
        with psycopg.connect(url, autocommit=True, connect_timeout=5, application_name=shown) as connection:
            connection.execute(f'LISTEN "{channel(self._database)}"')
            self._hub.notify([ANY])
            while not self._stopping.is_set():
                for notification in connection.notifies(timeout=POLL_SECONDS):
                    if notification.pid != self._own_backend():
                        self._hub.notify(unpack(notification.payload))


def channel(database: Database) -> str:
    """The name under which a store's replicas hear of each other."""
    return f"pointsman_{database.schema}"


def pack(names: Iterable[str]) -> str:
    """The names as a notification's payload; everybody, when they are too many for one."""
    payload = msgspec.json.encode(sorted(names))
    return payload.decode() if len(payload) <= MAX_PAYLOAD_BYTES else f'["{ANY}"]'


def unpack(payload: str) -> list[str]:
    """The names in a notification; everybody, when somebody else has sent it."""
    try:
        names: list[str] = msgspec.json.decode(payload, type=list[str])
    except msgspec.MsgspecError:
        return [ANY]
    return names
