"""Migrates new stores by what Alembic has sent to the first one: the same statements, in a quarter of the time."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy import Connection, event, inspect

from pointsman.services.chassis.storage import alembic_upgrade
from pointsman.services.chassis.storage.database import Database, driver_of
from pointsman.services.chassis.storage.migrate import migrate

CONTEXTS = ("router", "workflow", "pipeline", "orchestrator")
READS = ("SELECT", "PRAGMA")
SERVICES = Path(alembic_upgrade.__file__).parents[2]
"""Tests write migrations of their own elsewhere, and change them."""
BY_ALEMBIC = alembic_upgrade.upgrade
Statements = Sequence[tuple[str, Any]]


def remember_migrations() -> None:
    """From now on, migrate the stores of this process so."""
    known: dict[tuple[str, Path, str], Statements] = {}

    def upgrade_once(connection: Connection, folder: Path, version_table: str, revision: str = "head") -> None:
        """Upgrade as Alembic does; a line that is new, to its head, from memory."""
        key = (connection.dialect.name, folder, version_table)
        is_new = revision == "head" and not inspect(connection).has_table(version_table)
        if not is_new or not folder.is_relative_to(SERVICES):
            BY_ALEMBIC(connection, folder, version_table, revision)
        elif key in known:
            for text, parameters in known[key]:
                driver_of(connection).execute(text, parameters)
        else:
            with _recorded(connection) as statements:
                BY_ALEMBIC(connection, folder, version_table)
            known[key] = statements

    alembic_upgrade.upgrade = upgrade_once


def migrate_beforehand() -> None:
    """Remember the migrations of SQLite stores now, before anybody asks for one."""
    with TemporaryDirectory() as folder:
        for context in CONTEXTS:
            database = Database(f"sqlite:///{folder}/{context}.db", context)
            migrate(database, import_module(f"pointsman.services.{context}.__main__").MIGRATIONS)
            database.close()


@contextmanager
def _recorded(connection: Connection) -> Iterator[list[tuple[str, Any]]]:
    """Everything but readings that is sent on the connection in the block."""
    statements: list[tuple[str, Any]] = []

    def keep(_connection: Any, _cursor: Any, text: str, parameters: Any, *_: Any) -> None:
        if not text.lstrip().upper().startswith(READS):
            statements.append((text, parameters))

    event.listen(connection, "after_cursor_execute", keep)
    try:
        yield statements
    finally:
        event.remove(connection, "after_cursor_execute", keep)
