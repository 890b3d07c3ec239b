"""The database of a store: a SQLite file or a PostgreSQL schema."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import NullPool, QueuePool

from pointsman._shared.files import make_private_folder
from pointsman._shared.redaction import redact
from pointsman.services.chassis.core.clock import Clock, DatabaseClock, SystemClock, ticks_us
from pointsman.services.chassis.core.config import FEATURES_PARAMETER
from pointsman.services.chassis.core.errors import Reason, Refusal, invalid_field
from pointsman.services.chassis.storage.driver_errors import outage_errors, statement_errors
from pointsman.services.chassis.storage.features import features_of
from pointsman.services.chassis.storage.file_lock import unusable
from pointsman.services.chassis.storage.packing import unpack

Result = TypeVar("Result")
READERS = 4
KEYED_PLANS = " -cenable_seqscan=off -cenable_hashjoin=off -cenable_mergejoin=off"
"""Writers access rows by key; a cached plan from when a table was small must not scan it when it is large."""
WRITE_PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=10000", "wal_autocheckpoint=4000")
READ_PRAGMAS = ("query_only=ON", "busy_timeout=10000", "wal_autocheckpoint=0")


class Database:
    """A writing engine with one connection and a reading engine with a few."""

    def __init__(self, url: str, schema: str, clock: Clock | None = None) -> None:
        asked = read_url(url)
        self.url = asked.difference_update_query([FEATURES_PARAMETER])
        self.schema = schema
        self.is_postgresql = self.url.get_backend_name() == "postgresql"
        self.features = features_of(asked)
        self._given_clock = clock
        self.clock: Clock = clock or (DatabaseClock() if self.is_postgresql else SystemClock())
        self.writing = (
            self._postgresql(1, KEYED_PLANS, isolation_level=self._isolation)
            if self.is_postgresql
            else self._sqlite(WRITE_PRAGMAS, writes=True)
        )
        self.reading = (
            self._postgresql(READERS, isolation_level="REPEATABLE READ")
            if self.is_postgresql
            else self._sqlite(READ_PRAGMAS, writes=False)
        )
        self._threads = ThreadPoolExecutor(READERS, thread_name_prefix=f"{schema}-read")

    @property
    def _isolation(self) -> str:
        """How transactions that write are isolated on PostgreSQL."""
        return "SERIALIZABLE" if self.features.serializable else "READ COMMITTED"

    @property
    def file(self) -> Path | None:
        """The SQLite file; None for PostgreSQL and in-memory databases."""
        name = self.url.database
        return None if self.is_postgresql or name in (None, "", ":memory:") else Path(str(name))

    async def read(self, query: Callable[[Connection], Result]) -> Result:
        """Run a query on a reading connection, in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._read, query)

    def read_now(self, query: Callable[[Connection], Result]) -> Result:
        """Run a query on a reading connection, in this thread."""
        return self._read(query)

    def _read(self, query: Callable[[Connection], Result]) -> Result:
        try:
            with self.reading.connect() as connection:
                if not self.is_postgresql:
                    connection.begin()  # statements on the driver's cursor would else each see a moment of their own
                return query(connection)
        except Exception as error:  # SQLAlchemy's, or the driver's own from a prepared statement
            if is_outage(error):
                raise database_unavailable() from error
            raise

    @contextmanager
    def transaction(self, connection: Connection) -> Iterator[None]:
        """A transaction of the driver, cheaper than SQLAlchemy's; after a failure the caller drops the connection."""
        self.begin(connection)
        yield
        if connection.in_transaction():  # a statement of SQLAlchemy has begun a transaction of its own
            connection.commit()
        else:
            driver_of(connection).commit()

    def begin(self, connection: Connection) -> None:
        """Begin a transaction and lock a SQLite file for writing; the driver of PostgreSQL begins by itself."""
        if not self.is_postgresql:
            driver_of(connection).execute("BEGIN IMMEDIATE")

    def release(self, connection: Connection) -> None:
        """Unlock a SQLite file: closing does not, as long as the traceback of a failure holds a cursor with rows."""
        if not self.is_postgresql:
            driver_of(connection).rollback()

    def synchronise_clock(self) -> None:
        """Read the clock of the database server; a SQLite store uses the clock of the machine."""
        if isinstance(self.clock, DatabaseClock):
            with self.reading.connect() as connection:
                before_us = ticks_us()
                self.clock.observe(connection.execute(text("SELECT clock_timestamp()")).scalar_one(), before_us)

    def close(self) -> None:
        """Stop the threads and close the connections."""
        self._threads.shutdown(wait=True)
        self.reading.dispose()
        self.writing.dispose()

    def _sqlite(self, pragmas: tuple[str, ...], *, writes: bool) -> Engine:
        if writes and self.file is not None:
            try:
                make_private_folder(self.file.parent)
            except OSError as error:
                raise unusable(self.file.parent, error) from None
        pool: dict[str, Any] = {"poolclass": NullPool} if writes else {"poolclass": QueuePool, "pool_size": READERS}
        engine = create_engine(
            self.url,
            hide_parameters=True,
            connect_args={"check_same_thread": False, "timeout": 10, "cached_statements": 512},
            **pool,
        )

        @event.listens_for(engine, "connect")
        def _prepare(connection: sqlite3.Connection, _record: object) -> None:
            connection.isolation_level = None
            connection.create_function("unpacked", 1, unpack, deterministic=True)
            for pragma in pragmas:
                connection.execute(f"PRAGMA {pragma}")

        @event.listens_for(engine, "begin")
        def _begin(connection: Connection) -> None:
            driver = driver_of(connection)
            if not driver.in_transaction:
                driver.execute("BEGIN IMMEDIATE" if writes else "BEGIN")

        return engine

    def _postgresql(self, size: int, plans: str = "", **options: Any) -> Engine:
        server_options = f"-csearch_path={self.schema} -cstatement_timeout=30000 -clock_timeout=10000{plans}"
        return create_engine(
            driver_url(self.url),
            pool_size=size,
            max_overflow=0,
            pool_pre_ping=True,
            hide_parameters=True,
            **options,
            connect_args={
                "options": server_options,
                "application_name": f"pointsman-{self.schema}",
                "connect_timeout": 5,
            },
        )


def read_url(url: str) -> URL:
    """Parse a database URL; an error does not repeat it, because it may contain a password."""
    try:
        read = make_url(url)
    except (ArgumentError, ValueError):
        read = None
    if read is None or read.get_backend_name() not in ("postgresql", "sqlite"):
        raise invalid_field(
            "POINTSMAN_DATABASE_URL",
            "is no address of a database; write postgresql://user@host/name, or unset it for SQLite",
        )
    return read


def cannot_open(database: Database, error: DBAPIError) -> Refusal:
    """The refusal to start without the database, with the reason, for the operator."""
    lines = str(error.orig).strip().splitlines()
    where = (
        str(database.file) if database.file is not None else f"the {database.schema} schema in POINTSMAN_DATABASE_URL"
    )
    way_out = (
        "check that the file is a store and that you can write it"
        if database.file
        else "check it and that its server runs"
    )
    reason = redact(lines[0]) if lines else "no reason given"
    return Refusal(Reason.UNAVAILABLE, f"{where} cannot be opened ({reason}); {way_out}")


def driver_of(connection: Connection) -> Any:
    """The driver's own connection."""
    return connection.connection.driver_connection


def is_outage(error: BaseException) -> bool:
    """Whether the database was unreachable or busy; a statement that SQLite cannot compile is no outage."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(cause, sqlite3.OperationalError):
        return getattr(cause, "sqlite_errorcode", 0) != sqlite3.SQLITE_ERROR
    return isinstance(cause, outage_errors())


def is_missing_store(error: DBAPIError) -> bool:
    """Whether the file is no SQLite database, or the PostgreSQL database does not exist."""
    damaged = (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)
    return getattr(error.orig, "sqlite_errorcode", 0) in damaged or isinstance(error.orig, statement_errors())


def database_unavailable() -> Refusal:
    """The refusal while the database is unavailable."""
    return Refusal(Reason.UNAVAILABLE, "the database is out of reach; try again", retry_after_seconds=1.0)


def driver_url(url: URL) -> URL:
    """The URL with the installed PostgreSQL driver."""
    return url.set(drivername="postgresql+psycopg")
