"""Migrates the tables of a store: forward only, and safe when several replicas start together."""

import re
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import BigInteger, Column, Connection, MetaData, String, Table, column, inspect, select, table, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.schema import CreateSchema, CreateTable

from pointsman.services.chassis.storage.database import Database, cannot_open, is_missing_store, is_outage
from pointsman.services.chassis.storage.dialect import insert_or_ignore
from pointsman.services.chassis.storage.driver_errors import conflict_errors, integrity_errors

CHASSIS_MIGRATIONS = Path(__file__).parent / "migrations"
ADVISORY_LOCK = 0x706F696E74
LOCK_ROWS = Table(
    "migration_lock",
    MetaData(),
    Column("name", String(32), primary_key=True),
    Column("holders", BigInteger, nullable=False),
)
"""Where advisory locks are not used: replicas that update its row are in conflict with each other."""
MAX_CONFLICTS = 20
REVISION = re.compile(r"^(down_)?revision\b[^=\n]*= *[\"'](\w+)[\"']", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class MigrationState:
    """The state of one line of migrations: the chassis' or the context's."""

    line: str
    current: str | None
    newest: str
    is_ahead: bool = False
    """Whether a newer version has migrated the store."""

    @property
    def is_current(self) -> bool:
        """Whether no migration is missing."""
        return self.is_ahead or self.current == self.newest


def migrate(database: Database, context_migrations: Path | None) -> None:
    """Run the missing migrations of the chassis, then of the context, in one locked transaction."""
    try:
        _migrate_through_conflicts(database, context_migrations)
    except DBAPIError as error:
        if is_outage(error) or is_missing_store(error):
            raise cannot_open(database, error) from error
        raise


def _migrate_through_conflicts(database: Database, context_migrations: Path | None) -> None:
    """Without advisory locks, of replicas that start together one migrates and the others try again after it."""
    for _ in range(MAX_CONFLICTS):  # each waits until the one before it has committed
        try:
            return _migrate(database, context_migrations)
        except DBAPIError as error:
            if database.features.advisory_locks or not isinstance(
                error.orig, (*conflict_errors(), *integrity_errors())
            ):
                raise
    return _migrate(database, context_migrations)


def _migrate(database: Database, context_migrations: Path | None) -> None:
    if database.is_postgresql:
        _create_schema(database)
    with database.writing.begin() as connection:
        _lock(database, connection)
        for line, folder in _lines(context_migrations):
            _upgrade(connection, line, folder)


def migration_states(database: Database, context_migrations: Path | None) -> list[MigrationState]:
    """The state of each line of migrations."""

    def query(connection: Connection) -> list[MigrationState]:
        return [_state(connection, line, folder) for line, folder in _lines(context_migrations)]

    return database.read_now(query)


def _state(connection: Connection, line: str, folder: Path) -> MigrationState:
    current, known = _current(connection, line), _revisions(folder)
    return MigrationState(line, current, known[-1], current is not None and current not in known)


def _lines(context_migrations: Path | None) -> list[tuple[str, Path]]:
    lines = [("chassis", CHASSIS_MIGRATIONS)]
    return [*lines, ("context", context_migrations)] if context_migrations is not None else lines


def _create_schema(database: Database) -> None:
    with database.writing.begin() as connection:
        if database.features.advisory_locks:
            _lock(database, connection)
        connection.execute(CreateSchema(database.schema, if_not_exists=True))
        if not database.features.advisory_locks:
            connection.execute(CreateTable(LOCK_ROWS, if_not_exists=True))
            connection.execute(insert_or_ignore(database, LOCK_ROWS), {"name": "migrate", "holders": 0})


def _lock(database: Database, connection: Connection) -> None:
    """Serialize the replicas of a PostgreSQL store, without the timeouts of commands."""
    if not database.is_postgresql:
        return
    for setting in ("statement_timeout", "lock_timeout"):
        connection.execute(text(f"SET LOCAL {setting} = 0"))
    if database.features.advisory_locks:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": ADVISORY_LOCK})
    else:
        connection.execute(LOCK_ROWS.update().values(holders=LOCK_ROWS.c.holders + 1))


def _upgrade(connection: Connection, line: str, folder: Path) -> None:
    """Upgrade unless current or ahead: a newer version only adds, so this one can serve beside it."""
    if not _state(connection, line, folder).is_current:
        from pointsman.services.chassis.storage.alembic_upgrade import upgrade  # noqa: PLC0415 - slow to import

        upgrade(connection, folder, _version_table(line))


def _current(connection: Connection, line: str) -> str | None:
    name = _version_table(line)
    if not inspect(connection).has_table(name):
        return None
    found: str | None = connection.execute(select(table(name, column("version_num")).c.version_num)).scalar()
    return found


def _revisions(folder: Path) -> list[str]:
    """The revisions of a line, oldest first, ordered by down_revision."""
    texts = [path.read_text() for path in (folder / "versions").glob("*.py")]
    after = {before: revision for revision, before in map(_named, texts)}
    found: list[str] = []
    while (following := after.get(found[-1] if found else "")) is not None:
        found.append(following)
    if not found or len(found) != len(texts):
        raise RuntimeError(f"no single line of migrations below {folder}")
    return found


def _named(script: str) -> tuple[str, str]:
    """Revision and down_revision of a migration script."""
    names = dict(REVISION.findall(script))
    return names[""], names.get("down_", "")


def _version_table(line: str) -> str:
    return f"{line}_version"
