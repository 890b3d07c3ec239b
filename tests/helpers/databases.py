"""Databases that nobody has migrated: a new one, or one that was emptied. And how to break one."""

import itertools
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg

from tests.helpers.limits import scaled
from tests.helpers.postgres import PostgresServer

_numbers = itertools.count(1)
_emptied: dict[str, list[str]] = {}
"""For each server, the databases that are empty again: laying down a new one copies a thousand files."""


def new_postgres_database(server: PostgresServer, template: str = "template1") -> str:
    """A new database on the server, empty or a copy of another that nobody uses."""
    name = f"test_{next(_numbers)}"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    return server.url.replace("/postgres?", f"/{name}?")


@contextmanager
def empty_postgres_database(server: PostgresServer) -> Iterator[str]:
    """An empty database for one test; emptied and kept for the next one afterwards."""
    free = _emptied.setdefault(server.url, [])
    url = free.pop() if free else new_postgres_database(server)
    yield url
    try:
        _empty(url)
    except psycopg.Error:
        return
    free.append(url)


def end_connections(connection: psycopg.Connection) -> None:
    """End whoever else is connected to the same database."""
    connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )


def _empty(url: str) -> None:
    """Drop every schema of ours, after ending whoever is still connected."""
    with psycopg.connect(url, autocommit=True) as connection:
        end_connections(connection)
        connection.execute(f"SET lock_timeout = '{scaled(2):.0f}s'")
        schemas = connection.execute(
            "SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema'"
        ).fetchall()
        for (schema,) in schemas:
            connection.execute(f'DROP SCHEMA "{schema}" CASCADE')
        connection.execute("CREATE SCHEMA public")


def break_stores(data: Path) -> None:
    """Take the tables away below the running services: whatever they are asked for now is a fault that is logged."""
    for path in data.glob("*.db"):
        with closing(sqlite3.connect(path, timeout=scaled(30))) as store:
            for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                if not name.startswith("sqlite_"):
                    store.execute(f'ALTER TABLE "{name}" RENAME TO "lost_{name}"')
            store.commit()
