"""Empty databases: a new one where a test wants several, one that was emptied for most."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from tests.helpers.limits import scaled
from tests.helpers.postgres import PostgresServer

_numbers = itertools.count(1)
_emptied: dict[str, list[str]] = {}
"""For each server, the databases that are empty again: laying down a new one copies a thousand files."""


def new_postgres_database(server: PostgresServer) -> str:
    """A new, empty database on the server."""
    name = f"test_{next(_numbers)}"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
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


def _empty(url: str) -> None:
    """Drop every schema of ours, after ending whoever is still connected."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        connection.execute(f"SET lock_timeout = '{scaled(2):.0f}s'")
        schemas = connection.execute(
            "SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema'"
        ).fetchall()
        for (schema,) in schemas:
            connection.execute(f'DROP SCHEMA "{schema}" CASCADE')
        connection.execute("CREATE SCHEMA public")
