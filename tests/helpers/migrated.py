"""PostgreSQL databases in which every store is migrated and has no rows yet: emptied after each test, not laid down anew."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

import psycopg
from psycopg import sql

from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.migrate import migrate
from tests.helpers.databases import end_connections, new_postgres_database
from tests.helpers.limits import scaled
from tests.helpers.migrations import CONTEXTS
from tests.helpers.postgres import PostgresServer

OURS = "n.nspname NOT LIKE 'pg\\_%' AND n.nspname NOT IN ('information_schema', 'public')"
TABLES = f"SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'r' AND {OURS} ORDER BY 1, 2"
SHAPE = f"""
SELECT md5(string_agg(concat_ws(' ', n.nspname, c.relname, c.relkind, c.relacl, a.attname, a.atttypid, a.attnotnull), ',' ORDER BY n.nspname, c.relname, a.attnum)),
    (SELECT count(*) FROM pg_constraint), (SELECT count(*) FROM pg_trigger), (SELECT count(*) FROM pg_proc),
    (SELECT count(*) FROM pg_db_role_setting), (SELECT count(*) FROM pg_sequences WHERE last_value IS NOT NULL)
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE a.attnum > 0 AND NOT a.attisdropped AND {OURS}
"""
"""What a test may have changed besides rows: a database where it did is not used again."""


@dataclass(slots=True)
class Stores:
    """The databases of a server that are as the migrations left them, and how one becomes so again."""

    name: str
    shape: object
    emptying: bytes
    free: list[str] = field(default_factory=list)


_stores: dict[str, Stores] = {}


@contextmanager
def migrated_postgres_database(server: PostgresServer) -> Iterator[str]:
    """A database with migrated stores for one test; emptied and kept for the next one afterwards."""
    if server.url not in _stores:
        _stores[server.url] = _lay_down(server)
    stores = _stores[server.url]
    url = stores.free.pop() if stores.free else new_postgres_database(server, stores.name)
    yield url
    if _is_empty_again(url, stores):
        stores.free.append(url)


def _lay_down(server: PostgresServer) -> Stores:
    """The first of them, which the others are copied from."""
    url = new_postgres_database(server)
    for context in CONTEXTS:
        _migrate(url, context, import_module(f"pointsman.services.{context}.__main__").MIGRATIONS)
    _migrate(url, "counter", None)
    with psycopg.connect(url, autocommit=True) as connection:
        tables = [sql.Identifier(*row) for row in connection.execute(TABLES)]
        seeds = [
            sql.SQL("INSERT INTO {} VALUES ({})").format(table, sql.SQL(", ").join(map(sql.Literal, row)))
            for table in tables
            for row in connection.execute(sql.SQL("SELECT * FROM {}").format(table))
        ]
        shape = connection.execute(SHAPE).fetchone()
        emptied = [sql.SQL("DELETE FROM {}").format(table) for table in tables]
        first = sql.SQL("SET session_replication_role = replica")
        emptying = sql.SQL("; ").join([first, *emptied, *seeds]).as_bytes(connection)
    return Stores(str(psycopg.conninfo.conninfo_to_dict(url)["dbname"]), shape, emptying)


def _migrate(url: str, schema: str, migrations: Path | None) -> None:
    database = Database(url, schema)
    migrate(database, migrations)
    database.close()


def _is_empty_again(url: str, stores: Stores) -> bool:
    """Take all rows away, after ending whoever is still connected; False where more than rows has changed."""
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            end_connections(connection)
            connection.execute(f"SET lock_timeout = '{scaled(2):.0f}s'")
            if connection.execute(SHAPE).fetchone() != stores.shape:
                return False
            connection.execute(stores.emptying)
    except psycopg.Error:
        return False
    return True
