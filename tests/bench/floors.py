"""The floors: bare drivers and bare grpc.aio, written as fast as we know how, with nothing of Pointsman in them."""

import asyncio
import queue
import sqlite3
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import grpc
import psycopg

COUNTERS = 1000
SCHEMA = (
    "CREATE TABLE state (id TEXT PRIMARY KEY, version BIGINT NOT NULL, body TEXT NOT NULL)",
    "CREATE TABLE journal (id TEXT NOT NULL, seq BIGINT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (id, seq))",
    "CREATE TABLE outbox (id TEXT NOT NULL, seq BIGINT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (id, seq))",
)


class RawStore(Protocol):
    """The raw transaction: read state, conditional update, insert journal, insert outbox."""

    def batch(self, ids: list[str]) -> list[int]:
        """All of them in one transaction; the new versions."""


class RawSqlite:
    """With sqlite3, WAL and synchronous=FULL."""

    def __init__(self, path: str) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "wal_autocheckpoint=4000"):
            self._connection.execute(f"PRAGMA {pragma}")
        for statement in SCHEMA:
            self._connection.execute(statement)
        self._connection.execute("BEGIN")
        self._connection.executemany("INSERT INTO state VALUES (?, 0, '{}')", [(f"c{n}",) for n in range(COUNTERS)])
        self._connection.execute("COMMIT")

    def batch(self, ids: list[str]) -> list[int]:
        """One BEGIN IMMEDIATE for all."""
        run = self._connection.execute
        run("BEGIN IMMEDIATE")
        marks = ",".join("?" * len(ids))
        versions: dict[str, int] = dict(run(f"SELECT id, version FROM state WHERE id IN ({marks})", ids).fetchall())
        updates, rows, results = fold(versions, ids)
        self._connection.executemany("UPDATE state SET version = ?, body = ? WHERE id = ? AND version = ?", updates)
        self._connection.executemany("INSERT INTO journal VALUES (?, ?, ?)", rows)
        self._connection.executemany("INSERT INTO outbox VALUES (?, ?, ?)", rows)
        run("COMMIT")
        return results


class RawPostgres:
    """With psycopg: a read, and the writes of all tables with the commit in one pipeline."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url)
        for statement in SCHEMA:
            self._connection.execute(statement)
        with self._connection.cursor() as cursor:
            cursor.executemany("INSERT INTO state VALUES (%s, 0, '{}')", [(f"c{n}",) for n in range(COUNTERS)])
        self._connection.commit()

    def batch(self, ids: list[str]) -> list[int]:
        """One transaction for all."""
        with self._connection.cursor() as cursor:
            cursor.execute("SELECT id, version FROM state WHERE id = ANY(%s) ORDER BY id FOR UPDATE", (ids,))
            versions: dict[str, int] = dict(cursor.fetchall())
            updates, rows, results = fold(versions, ids)
            with self._connection.pipeline():
                cursor.executemany("UPDATE state SET version = %s, body = %s WHERE id = %s AND version = %s", updates)
                cursor.executemany("INSERT INTO journal VALUES (%s, %s, %s)", rows)
                cursor.executemany("INSERT INTO outbox VALUES (%s, %s, %s)", rows)
                self._connection.commit()
        return results


def fold(versions: dict[str, int], ids: list[str]) -> tuple[list[Any], list[Any], list[int]]:
    """The rows to write for a batch, one update per state and one row per command."""
    before = dict(versions)
    rows, results = [], []
    for name in ids:
        versions[name] += 1
        rows.append((name, versions[name], '{"amount":1}'))
        results.append(versions[name])
    updates = [(version, f'{{"value":{version}}}', name, before[name]) for name, version in versions.items()]
    return updates, rows, results


def open_raw(url: str) -> RawStore:
    """The raw store of a database URL."""
    return RawSqlite(url.removeprefix("sqlite:///")) if url.startswith("sqlite") else RawPostgres(url)


@dataclass
class Joiner:
    """Joins what waits into one batch, in one thread: the least that a durable server can do."""

    store: RawStore
    waiting: "queue.SimpleQueue[tuple[str, asyncio.Future[int]]]" = field(default_factory=queue.SimpleQueue)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the thread."""
        threading.Thread(target=self._work, args=(loop,), daemon=True).start()

    async def submit(self, name: str) -> int:
        """Wait until the transaction with this item is committed."""
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.waiting.put((name, future))
        return await future

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        while True:
            items = [self.waiting.get()]
            while len(items) < 256:
                try:
                    items.append(self.waiting.get_nowait())
                except queue.Empty:
                    break
            results = self.store.batch([name for name, _ in items])
            loop.call_soon_threadsafe(_settle, items, results)


def _settle(items: list[tuple[str, "asyncio.Future[int]"]], results: list[int]) -> None:
    for (_, future), result in zip(items, results, strict=True):
        if not future.done():
            future.set_result(result)


def add_floor(server: grpc.aio.Server, request: type, response: type, handle: Callable[..., Any]) -> None:
    """Register one bare unary method."""
    handler = grpc.unary_unary_rpc_method_handler(
        handle,
        request.FromString,  # type: ignore[attr-defined]
        response.SerializeToString,  # type: ignore[attr-defined]
    )
    name = "pointsman.tests.counter.v1.CounterService"
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, {"Add": handler}),))
