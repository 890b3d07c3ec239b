"""A database server that a team has, for the tests of the stores: `make conformance`."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count

import psycopg
from sqlalchemy.engine import make_url

from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.server_probe import OPTIONAL, REQUIRED, missing, version_of

SERVER_VARIABLE = "POINTSMAN_TEST_DATABASE_URL"
_numbers = count(1)


@contextmanager
def external_database(server_url: str) -> Iterator[str]:
    """A new database on the server for one test, dropped afterwards."""
    name = f"pointsman_test_{next(_numbers)}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name}")
        connection.execute(f"CREATE DATABASE {name}")
        try:
            yield make_url(server_url).set(database=name).render_as_string(hide_password=False)
        finally:
            connection.execute(f"DROP DATABASE {name}")


def found_of(server_url: str) -> list[str]:
    """What the server says that it is, and which of the features it lacks that the stores use."""
    with closing(Database(server_url, "public")) as database, database.reading.connect() as connection:
        lines = [f"database server: {version_of(connection)}"]
        for title, statements in (("needed", REQUIRED), ("left out by portable", OPTIONAL)):
            lacking = missing(connection, statements)
            lines.append(f"  {title}: {', '.join(statements)}; lacking: {', '.join(lacking) or 'nothing'}")
    return lines
