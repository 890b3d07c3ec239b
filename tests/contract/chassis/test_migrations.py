"""Migrations: from nothing, twice, by several processes at once, and what can be said of how far they are."""

import asyncio
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path

import pytest
from sqlalchemy import inspect, text

from pointsman.services.chassis.storage import alembic_upgrade
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.migrate import migrate, migration_states
from tests.helpers.counter import Add, CounterStore
from tests.helpers.counters import a_caller
from tests.helpers.databases import empty_postgres_database
from tests.helpers.migrations import BY_ALEMBIC, CONTEXTS

ROOT = Path(__file__).resolve().parents[3]
MIGRATE_BY_FOUR = """
import os, sys, traceback
from pathlib import Path
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.migrate import migrate
gate, opener = os.pipe()
children = []
for _ in range(4):
    child = os.fork()
    if child == 0:
        os.close(opener)
        os.read(gate, 1)
        code = 1
        try:
            migrate(Database(sys.argv[1], "counter"), Path(sys.argv[2]))
            code = 0
        except Exception:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    children.append(child)
os.close(opener)
sys.exit(sum(os.waitpid(child, 0)[1] for child in children) > 0)
"""
LINE = """
import sqlalchemy as sa
from alembic import op

revision = "{revision}"
down_revision = {before!r}


def upgrade() -> None:
    {body}
"""
CREATE_NOTES = 'op.create_table("notes", sa.Column("entity_id", sa.String(64), primary_key=True))'
NO_TIME_LIMIT = """for name in ("statement_timeout", "lock_timeout"):
        assert op.get_bind().execute(sa.text(f"SHOW {name}")).scalar_one() == "0", name"""


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database of each kind in turn that nobody has migrated."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'store.db'}"
        return
    with empty_postgres_database(request.getfixturevalue("postgres")) as url:
        yield url


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A context's own migrations."""
    _write(tmp_path, "0001", None, CREATE_NOTES)
    return tmp_path


def test_an_empty_database_is_migrated_and_then_left_alone(database_url: str, folder: Path) -> None:
    database = Database(database_url, "counter")
    before = migration_states(database, folder)
    assert [(state.line, state.current, state.is_current) for state in before] == [
        ("chassis", None, False),
        ("context", None, False),
    ]
    for _ in range(2):
        migrate(database, folder)
        assert all(state.is_current for state in migration_states(database, folder))
    with database.reading.connect() as connection:
        found = set(inspect(connection).get_table_names(schema="counter" if database.is_postgresql else None))
    assert {"entities", "journal", "outbox", "notes", "chassis_version", "context_version"} <= found
    database.close()


async def test_four_processes_migrate_at_once(database_url: str, folder: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", MIGRATE_BY_FOUR, database_url, str(folder), cwd=ROOT, stderr=asyncio.subprocess.PIPE
    )
    _, said = await process.communicate()
    assert process.returncode == 0, said.decode()
    database = Database(database_url, "counter")
    assert all(state.is_current for state in migration_states(database, folder))
    counters = CounterStore(database)
    assert (await counters.ledger.submit(a_caller(), Add("c1", 1))).value == 1
    await asyncio.to_thread(counters.store.close)


def test_a_later_migration_keeps_the_rows(database_url: str, folder: Path) -> None:
    database = Database(database_url, "counter")
    migrate(database, folder)
    with database.writing.begin() as connection:
        connection.execute(text("INSERT INTO notes VALUES ('kept')"))
    _write(folder, "0002", "0001", 'op.add_column("notes", sa.Column("body", sa.Text))')
    assert [state.is_current for state in migration_states(database, folder)] == [True, False]
    migrate(database, folder)
    with database.reading.connect() as connection:
        assert [tuple(row) for row in connection.execute(text("SELECT entity_id, body FROM notes"))] == [("kept", None)]
    database.close()


def test_a_failed_migration_leaves_nothing_behind(database_url: str, folder: Path) -> None:
    database = Database(database_url, "counter")
    _write(folder, "0002", "0001", 'op.execute("INSERT INTO nowhere VALUES (1)")')
    with pytest.raises(Exception, match="nowhere"):
        migrate(database, folder)
    assert [state.current for state in migration_states(database, folder)] == [None, None]
    database.close()


def test_a_long_migration_is_not_cut_off_by_the_limits_of_commands(database_url: str, folder: Path) -> None:
    database = Database(database_url, "counter")
    if database.is_postgresql:
        _write(folder, "0002", "0001", NO_TIME_LIMIT)
        migrate(database, folder)
        with database.writing.connect() as connection:
            assert connection.execute(text("SHOW statement_timeout")).scalar_one() == "30s"
    database.close()


def test_the_tables_that_statements_see_are_those_that_migrations_lay_down(database_url: str) -> None:
    database = Database(database_url, "counter")
    migrate(database, None)
    counters = CounterStore(database)
    with database.reading.connect() as connection:
        inspector = inspect(connection)
        for table in counters.store.metadata.tables.values():
            laid = {column["name"]: column["nullable"] for column in inspector.get_columns(table.name)}
            assert laid == {column.name: column.nullable for column in table.columns}, table.name
    counters.store.close()


def _write(folder: Path, revision: str, before: str | None, body: str) -> None:
    versions = folder / "versions"
    versions.mkdir(exist_ok=True)
    (versions / f"{revision}_step.py").write_text(LINE.format(revision=revision, before=before, body=body))


@pytest.mark.parametrize("context", CONTEXTS)
def test_a_store_that_a_test_migrates_from_memory_is_as_alembic_leaves_it(
    context: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remembered = [_migrated(tmp_path / name, context) for name in ("first", "second")]
    monkeypatch.setattr(alembic_upgrade, "upgrade", BY_ALEMBIC)
    assert remembered == [_migrated(tmp_path / "third", context)] * 2


def _migrated(folder: Path, context: str) -> list[str]:
    """The text of a new store."""
    database = Database(f"sqlite:///{folder / 'store.db'}", context)
    migrate(database, import_module(f"pointsman.services.{context}.__main__").MIGRATIONS)
    database.close()
    with closing(sqlite3.connect(folder / "store.db")) as store:
        return list(store.iterdump())
