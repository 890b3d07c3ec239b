"""Exactly one writing thread per store, which joins whatever waits into one transaction and one commit."""

import asyncio
import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, Protocol

import psycopg
import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from pointsman.services.chassis.core.crash import CrashPoint, reach
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.core.ids import jitter
from pointsman.services.chassis.storage.database import Database, database_unavailable, is_outage
from pointsman.services.chassis.telemetry import metrics

MAX_BATCH = 256
GROUP_COMMIT_MIN_SIZE = 4
"""A batch of so many is worth waiting for when the next one begins."""
GROUP_COMMIT_ITEM_DELAY_SECONDS = 0.004
"""How long one of the crowd may let the others wait, and, below, how long they wait in all."""
GROUP_COMMIT_MAX_DELAY_SECONDS = 0.01
MAX_ATTEMPTS = 6
FIRST_BACKOFF_SECONDS = 0.02


class LostRaceError(Exception):
    """A row moved between load and write; the batch is undone and decided again."""


class DatabaseUnavailableError(Exception):
    """No connection to the database can be had."""


DATABASE_ERRORS = (DBAPIError, sqlite3.Error, psycopg.Error, LostRaceError, DatabaseUnavailableError)
RACE_ERRORS = (sqlite3.IntegrityError, psycopg.IntegrityError, LostRaceError)

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Executed:
    """What a handler has written: the outcome of each item, and what to do once the transaction is committed."""

    outcomes: Sequence[Any]
    after_commit: Callable[[], None] | None = None
    """Quick; called in the writing thread."""


class BatchHandler(Protocol):
    """One kind of write: does a whole batch of its items inside a transaction that others may share."""

    def execute(self, connection: Connection, items: Sequence[Any]) -> Executed:
        """Write all items; a Refusal is an outcome, any other exception rolls the transaction back."""


@dataclass(slots=True)
class _PendingWrite:
    """One item on its way through the writing thread."""

    handler: BatchHandler
    item: Any
    future: "asyncio.Future[Any]"
    loop: asyncio.AbstractEventLoop
    outcome: Any = field(default=None)


class Writer:
    """The writing thread of a store; `write` returns when the item's effect is on disk."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._queue: SimpleQueue[_PendingWrite | None] = SimpleQueue()
        self._last_batch_size = 0
        self._closed = threading.Event()
        self._connection: Connection | None = None
        self._took = metrics.commit_seconds.labels(database.schema)
        self._size = metrics.batch_size.labels(database.schema)
        self._posted: dict[asyncio.AbstractEventLoop, list[Callable[[], None]]] = {}
        self._thread = threading.Thread(target=self._work, name=f"{database.schema}-write", daemon=True)
        self._thread.start()

    def post(self, loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
        """Call back on an event loop; what the writing thread posts after a commit goes with that batch's answers."""
        if threading.current_thread() is self._thread:
            self._posted.setdefault(loop, []).append(callback)
        elif not loop.is_closed():
            loop.call_soon_threadsafe(callback)

    async def write(self, handler: BatchHandler, item: Any) -> Any:
        """Hand an item to its handler in the next batch; the handler's outcome, or the refusal raised."""
        if self._closed.is_set():
            raise _stopping()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._queue.put(_PendingWrite(handler, item, future, loop))
        return await future

    def close(self) -> None:
        """Finish what was handed in, then stop."""
        self._closed.set()
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        open_for_work = True
        while open_for_work:
            first = self._queue.get()
            tickets, open_for_work = self._collect_batch(first)
            if tickets:
                self._run(tickets)
                self._resolve(tickets)
        self._drop_connection()

    def _collect_batch(self, first: _PendingWrite | None) -> tuple[list[_PendingWrite], bool]:
        """A batch: whatever waits by now and, after a crowd, whoever of it comes back in a moment."""
        tickets: list[_PendingWrite] = []
        waiting, until = first, time.monotonic() + GROUP_COMMIT_MAX_DELAY_SECONDS
        while waiting is not None:
            tickets.append(waiting)
            if len(tickets) >= MAX_BATCH:
                break
            try:
                waiting = self._next(len(tickets) < self._last_batch_size, until)
            except Empty:
                break
        self._last_batch_size = len(tickets) if len(tickets) >= GROUP_COMMIT_MIN_SIZE else 0
        return tickets, waiting is not None

    def _next(self, is_expected: bool, until: float) -> _PendingWrite | None:
        """Callers of one batch are answered together and come together again: a joined commit saves what each costs."""
        if not is_expected:
            return self._queue.get_nowait()
        return self._queue.get(timeout=max(0.0, min(GROUP_COMMIT_ITEM_DELAY_SECONDS, until - time.monotonic())))

    def _run(self, tickets: list[_PendingWrite]) -> None:
        """Commit all together; when that fails, one by one, so that one bad item harms nobody else.

        Once the database is found out of reach, the rest learns it at once instead of waiting in line for it.
        """
        try:
            self._commit_batch(tickets)
        except Exception:  # noqa: BLE001 - any failure of the joined try is looked at again item by item
            self._drop_connection()
            reachable = True
            for ticket in tickets:
                if reachable:
                    reachable = self._run_alone(ticket)
                else:
                    ticket.outcome = database_unavailable()

    def _run_alone(self, ticket: _PendingWrite) -> bool:
        """Whether the database could be reached; the ticket has its outcome in any case."""
        backoff_seconds = FIRST_BACKOFF_SECONDS
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                self._commit_batch([ticket])
            except DATABASE_ERRORS as error:
                self._drop_connection()
                ticket.outcome = _to_refusal(error)
                if not _is_retryable(error) or attempt == MAX_ATTEMPTS or self._closed.wait(jitter(backoff_seconds)):
                    return not isinstance(error, DatabaseUnavailableError)
                backoff_seconds *= 3
            except Exception as error:  # noqa: BLE001 - a bug in a handler reaches its caller, not the thread
                self._drop_connection()
                ticket.outcome = error
                return True
            else:
                return True
        return True

    def _commit_batch(self, tickets: list[_PendingWrite]) -> None:
        groups: dict[int, list[_PendingWrite]] = {}
        for ticket in tickets:
            groups.setdefault(id(ticket.handler), []).append(ticket)
        hooks: list[Callable[[], None]] = []
        begun = time.monotonic()
        connection = self._connect()
        with self._database.transaction(connection):
            reach(CrashPoint.BATCH_BEGUN)
            for group in groups.values():
                executed = group[0].handler.execute(connection, [ticket.item for ticket in group])
                for ticket, outcome in zip(group, executed.outcomes, strict=True):
                    ticket.outcome = outcome
                if executed.after_commit is not None:
                    hooks.append(executed.after_commit)
        reach(CrashPoint.BATCH_COMMITTED)
        self._took.observe(time.monotonic() - begun)
        self._size.observe(len(tickets))
        for hook in hooks:
            _run_hook(hook)

    def _resolve(self, tickets: Sequence[_PendingWrite]) -> None:
        """Wake the callers and whoever waits for news, once per event loop: each wake costs a switch of threads."""
        posted, self._posted = self._posted, {}
        answered: dict[asyncio.AbstractEventLoop, list[_PendingWrite]] = {}
        for ticket in tickets:
            answered.setdefault(ticket.loop, []).append(ticket)
        for loop in answered | posted:
            if not loop.is_closed():
                loop.call_soon_threadsafe(_resolve_futures, answered.get(loop, ()), posted.get(loop, ()))

    def _connect(self) -> Connection:
        if self._connection is None:
            try:
                self._connection = self._database.writing.connect()
            except DATABASE_ERRORS as error:
                raise DatabaseUnavailableError from error
        return self._connection

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(*DATABASE_ERRORS):
                connection.invalidate()
                connection.close()


def _run_hook(hook: Callable[[], None]) -> None:
    """Run an after-commit hook; the commit is durable, so a failure is logged and nothing is done again."""
    try:
        hook()
    except Exception as error:  # noqa: BLE001 - see above
        log.error("post_commit_hook_failed", error=repr(error))


def _resolve_futures(tickets: Sequence[_PendingWrite], callbacks: Sequence[Callable[[], None]]) -> None:
    for ticket in tickets:
        if ticket.future.done():
            continue
        if isinstance(ticket.outcome, BaseException):
            ticket.future.set_exception(ticket.outcome)
        else:
            ticket.future.set_result(ticket.outcome)
    for callback in callbacks:
        callback()


def _is_retryable(error: BaseException) -> bool:
    """A race, a deadlock or a lost connection may go better next time; a broken statement never does."""
    cause = _cause(error)
    return isinstance(cause, RACE_ERRORS) or _is_outage(cause)


def _to_refusal(error: BaseException) -> BaseException:
    cause = _cause(error)
    if isinstance(cause, RACE_ERRORS):
        return Refusal(Reason.LOST_RACE, "another writer was faster; read again and try again")
    if _is_outage(cause):
        return database_unavailable()
    return error


def _is_outage(cause: BaseException) -> bool:
    return isinstance(cause, DatabaseUnavailableError) or is_outage(cause)


def _cause(error: BaseException) -> BaseException:
    """The driver's own error."""
    return error.orig if isinstance(error, DBAPIError) and error.orig is not None else error


def _stopping() -> Refusal:
    return Refusal(Reason.UNAVAILABLE, "the service is stopping; try again", retry_after_seconds=1.0)
