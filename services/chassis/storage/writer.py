"""The writing thread of a store: joins pending writes into one transaction and one commit (group commit)."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, Protocol

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from pointsman.services.chassis.core.crash import CrashPoint, reach
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.core.ids import jitter
from pointsman.services.chassis.storage.database import Database, database_unavailable, is_outage
from pointsman.services.chassis.storage.driver_errors import conflict_errors, driver_errors, integrity_errors
from pointsman.services.chassis.telemetry import metrics

MAX_BATCH = 256
GROUP_COMMIT_MIN_SIZE = 4
"""After a batch of at least this size, the next one waits for as many items."""
GROUP_COMMIT_ITEM_DELAY_SECONDS = 0.004
"""How long a batch waits for each further item, and below for all of them."""
GROUP_COMMIT_MAX_DELAY_SECONDS = 0.01
MAX_CONFLICTS = 12
"""How often a batch is tried again after a conflict with another replica, before each of its items is tried alone."""
FIRST_CONFLICT_SECONDS, MAX_CONFLICT_SECONDS = 0.002, 0.1
MAX_ATTEMPTS = 6
FIRST_BACKOFF_SECONDS = 0.02


class LostRaceError(Exception):
    """A row changed between load and write; the transaction is rolled back and tried again."""


class DatabaseUnavailableError(Exception):
    """No connection to the database."""


log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Executed:
    """The result of a handler: the outcome of each item, and a hook to run after the commit."""

    outcomes: Sequence[Any]
    after_commit: Callable[[], None] | None = None
    """Runs in the writing thread, so it must be quick."""


class BatchHandler(Protocol):
    """Executes the items of one kind in a batch, in a transaction that other handlers may share."""

    def execute(self, connection: Connection, items: Sequence[Any]) -> Executed:
        """Write all items; a Refusal is an outcome, any other exception rolls the transaction back."""


@dataclass(slots=True)
class _PendingWrite:
    """One item in the queue of the writing thread, with the future of its caller."""

    handler: BatchHandler
    item: Any
    future: "asyncio.Future[Any]"
    loop: asyncio.AbstractEventLoop
    outcome: Any = field(default=None)


class Writer:
    """The writing thread of a store; `write` returns after the commit."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._queue: SimpleQueue[_PendingWrite | None] = SimpleQueue()
        self._last_batch_size = 0
        self._closed = threading.Event()
        self._connection: Connection | None = None
        self._commit_seconds = metrics.commit_seconds.labels(database.schema)
        self._conflicts = metrics.commit_conflicts.labels(database.schema)
        self._batch_size = metrics.batch_size.labels(database.schema)
        self._posted: dict[asyncio.AbstractEventLoop, list[Callable[[], None]]] = {}
        self._thread = threading.Thread(target=self._work, name=f"{database.schema}-write", daemon=True)
        self._thread.start()

    def post(self, loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
        """Call back on an event loop; calls from the writing thread are delivered with the outcomes of its batch."""
        if threading.current_thread() is self._thread:
            self._posted.setdefault(loop, []).append(callback)
        elif not loop.is_closed():
            loop.call_soon_threadsafe(callback)

    async def write(self, handler: BatchHandler, item: Any) -> Any:
        """Execute an item in the next batch; returns the handler's outcome or raises its refusal."""
        if self._closed.is_set():
            raise _stopping()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._queue.put(_PendingWrite(handler, item, future, loop))
        return await future

    def close(self) -> None:
        """Commit what is queued, then stop."""
        self._closed.set()
        self._queue.put(None)
        self._thread.join()

    def _work(self) -> None:
        open_for_work = True
        while open_for_work:
            first = self._queue.get()
            writes, open_for_work = self._collect_batch(first)
            if writes:
                self._run(writes)
                self._resolve(writes)
        self._drop_connection()

    def _collect_batch(self, first: _PendingWrite | None) -> tuple[list[_PendingWrite], bool]:
        """Collect one batch, waiting briefly for more items if the last batch was large (group commit)."""
        writes: list[_PendingWrite] = []
        waiting, until = first, time.monotonic() + GROUP_COMMIT_MAX_DELAY_SECONDS
        while waiting is not None:
            writes.append(waiting)
            if len(writes) >= MAX_BATCH:
                break
            try:
                waiting = self._next(len(writes) < self._last_batch_size, until)
            except Empty:
                break
        self._last_batch_size = len(writes) if len(writes) >= GROUP_COMMIT_MIN_SIZE else 0
        return writes, waiting is not None

    def _next(self, is_expected: bool, until: float) -> _PendingWrite | None:
        """The next item: callers of a large batch return together, so waiting for them saves commits."""
        if not is_expected:
            return self._queue.get_nowait()
        return self._queue.get(timeout=max(0.0, min(GROUP_COMMIT_ITEM_DELAY_SECONDS, until - time.monotonic())))

    def _run(self, writes: list[_PendingWrite]) -> None:
        """Commit all items together; if that fails, each alone, so that one bad item fails alone.

        Once the database is unavailable, the remaining items are refused without trying.
        """
        try:
            self._commit_batch(writes)
        except Exception as error:  # noqa: BLE001 - after any failure each item is tried alone
            if self._commit_after_conflict(writes, error):
                return
            self._drop_connection()
            reachable = True
            for write in writes:
                if reachable:
                    reachable = self._run_alone(write)
                else:
                    write.outcome = database_unavailable()

    def _commit_after_conflict(self, writes: list[_PendingWrite], error: BaseException) -> bool:
        """Whether the batch was committed after all: PostgreSQL had ended it in favour of another transaction."""
        for attempt in range(MAX_CONFLICTS):
            if not isinstance(_cause(error), conflict_errors()):
                return False
            self._conflicts.inc()
            self._roll_back()
            self._closed.wait(jitter(min(FIRST_CONFLICT_SECONDS * 2**attempt, MAX_CONFLICT_SECONDS)))
            try:
                self._commit_batch(writes)
            except Exception as failure:  # noqa: BLE001 - each item alone meets it again
                error = failure
            else:
                return True
        return False

    def _run_alone(self, write: _PendingWrite) -> bool:
        """Commit one item with retries and set its outcome; False if the database is unavailable."""
        backoff_seconds = FIRST_BACKOFF_SECONDS
        for attempt in range(1, MAX_ATTEMPTS + 1):
            try:
                self._commit_batch([write])
            except _database_errors() as error:
                if self._commit_after_conflict([write], error):
                    return True
                self._drop_connection()
                write.outcome = _to_refusal(error)
                if not _is_retryable(error) or attempt == MAX_ATTEMPTS or self._closed.wait(jitter(backoff_seconds)):
                    return not isinstance(error, DatabaseUnavailableError)
                backoff_seconds *= 3
            except Exception as error:  # noqa: BLE001 - an exception of a handler is raised in its caller, not in the thread
                self._drop_connection()
                write.outcome = error
                return True
            else:
                return True
        return True

    def _commit_batch(self, writes: list[_PendingWrite]) -> None:
        groups: dict[int, list[_PendingWrite]] = {}
        for write in writes:
            groups.setdefault(id(write.handler), []).append(write)
        hooks: list[Callable[[], None]] = []
        begun = time.monotonic()
        connection = self._connect()
        with self._database.transaction(connection):
            reach(CrashPoint.BATCH_BEGUN)
            for group in groups.values():
                executed = group[0].handler.execute(connection, [write.item for write in group])
                for write, outcome in zip(group, executed.outcomes, strict=True):
                    write.outcome = outcome
                if executed.after_commit is not None:
                    hooks.append(executed.after_commit)
        reach(CrashPoint.BATCH_COMMITTED)
        self._commit_seconds.observe(time.monotonic() - begun)
        self._batch_size.observe(len(writes))
        for hook in hooks:
            _run_hook(hook)

    def _resolve(self, writes: Sequence[_PendingWrite]) -> None:
        """Resolve futures and run posted callbacks, once per event loop: each wake-up switches threads."""
        posted, self._posted = self._posted, {}
        answered: dict[asyncio.AbstractEventLoop, list[_PendingWrite]] = {}
        for write in writes:
            answered.setdefault(write.loop, []).append(write)
        for loop in answered | posted:
            if not loop.is_closed():
                loop.call_soon_threadsafe(_resolve_futures, answered.get(loop, ()), posted.get(loop, ()))

    def _connect(self) -> Connection:
        if self._connection is None:
            try:
                self._connection = self._database.writing.connect()
            except _database_errors() as error:
                raise DatabaseUnavailableError from error
        return self._connection

    def _roll_back(self) -> None:
        """Return the connection to the pool, which rolls its transaction back and hands it out again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(*_database_errors()):
                connection.close()

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(*_database_errors()):
                self._database.release(connection)
            with contextlib.suppress(*_database_errors()):
                connection.invalidate()
                connection.close()


def _run_hook(hook: Callable[[], None]) -> None:
    """Run an after-commit hook; the commit is durable, so a failure is only logged."""
    try:
        hook()
    except Exception as error:  # noqa: BLE001 - see above
        log.error("post_commit_hook_failed", error=repr(error))


def _resolve_futures(writes: Sequence[_PendingWrite], callbacks: Sequence[Callable[[], None]]) -> None:
    for write in writes:
        if write.future.done():
            continue
        if isinstance(write.outcome, BaseException):
            write.future.set_exception(write.outcome)
        else:
            write.future.set_result(write.outcome)
    for callback in callbacks:
        callback()


def _database_errors() -> tuple[type[Exception], ...]:
    return (DBAPIError, *driver_errors(), LostRaceError, DatabaseUnavailableError)


def _is_retryable(error: BaseException) -> bool:
    """Whether a retry may succeed: after a race, a deadlock or a lost connection, not after an invalid statement."""
    cause = _cause(error)
    return _is_lost_race(cause) or _is_outage(cause)


def _to_refusal(error: BaseException) -> BaseException:
    cause = _cause(error)
    if _is_lost_race(cause):
        return Refusal(Reason.LOST_RACE, "another writer was faster; read again and try again")
    if _is_outage(cause):
        return database_unavailable()
    return error


def _is_lost_race(cause: BaseException) -> bool:
    return isinstance(cause, (*integrity_errors(), *conflict_errors(), LostRaceError))


def _is_outage(cause: BaseException) -> bool:
    return isinstance(cause, DatabaseUnavailableError) or is_outage(cause)


def _cause(error: BaseException) -> BaseException:
    """The driver's own error."""
    return error.orig if isinstance(error, DBAPIError) and error.orig is not None else error


def _stopping() -> Refusal:
    return Refusal(Reason.UNAVAILABLE, "the service is stopping; try again", retry_after_seconds=1.0)
