"""Empty databases, one per test."""

import itertools

import psycopg

from tests.helpers.postgres import PostgresServer

_numbers = itertools.count(1)


def new_postgres_database(server: PostgresServer) -> str:
    """A new, empty database on the server."""
    name = f"test_{next(_numbers)}"
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return server.url.replace("/postgres?", f"/{name}?")
