"""Brings a store's tables up to date: forward only, and safe when several replicas start at once."""

from dataclasses import dataclass
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text
from sqlalchemy.schema import CreateSchema

from pointsman.services.chassis.db import Database

CHASSIS_MIGRATIONS = Path(__file__).parent / "migrations"
ADVISORY_LOCK = 0x706F696E74


@dataclass(frozen=True, slots=True)
class MigrationState:
    """How far one line of migrations has come."""

    line: str
    current: str | None
    newest: str
    is_ahead: bool = False
    """Whether a newer version of the software has migrated it already."""

    @property
    def is_current(self) -> bool:
        """Whether nothing is left to do."""
        return self.is_ahead or self.current == self.newest


def migrate(database: Database, context_migrations: Path | None) -> None:
    """Run what is missing of the chassis' migrations, then of the context's, in one locked transaction."""
    if database.is_postgresql:
        _create_schema(database)
    with database.writing.begin() as connection:
        if database.is_postgresql:
            _lock(connection)
        for line, folder in _lines(context_migrations):
            _upgrade(connection, line, folder)


def migration_states(database: Database, context_migrations: Path | None) -> list[MigrationState]:
    """How far each line of a store's migrations has come."""

    def query(connection: Connection) -> list[MigrationState]:
        return [_state(connection, line, folder) for line, folder in _lines(context_migrations)]

    return database.read_now(query)


def _state(connection: Connection, line: str, folder: Path) -> MigrationState:
    current = _current(connection, line)
    return MigrationState(line, current, _newest(line, folder), _is_ahead(current, _config(line, folder)))


def _lines(context_migrations: Path | None) -> list[tuple[str, Path]]:
    lines = [("chassis", CHASSIS_MIGRATIONS)]
    return [*lines, ("context", context_migrations)] if context_migrations is not None else lines


def _create_schema(database: Database) -> None:
    with database.writing.begin() as connection:
        _lock(connection)
        connection.execute(CreateSchema(database.schema, if_not_exists=True))


def _lock(connection: Connection) -> None:
    """One replica at a time, and for as long as it takes: the limits of commands are not for migrations."""
    for setting in ("statement_timeout", "lock_timeout"):
        connection.execute(text(f"SET LOCAL {setting} = 0"))
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": ADVISORY_LOCK})


def _upgrade(connection: Connection, line: str, folder: Path) -> None:
    config = _config(line, folder)
    if _is_ahead(_current(connection, line), config):
        return
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _is_ahead(current: str | None, config: Config) -> bool:
    """Whether a newer version has migrated already: migrations only add, so this one serves on beside it."""
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    return current is not None and current not in known


def _current(connection: Connection, line: str) -> str | None:
    return MigrationContext.configure(connection, opts={"version_table": _version_table(line)}).get_current_revision()


def _newest(line: str, folder: Path) -> str:
    head = ScriptDirectory.from_config(_config(line, folder)).get_current_head()
    if head is None:
        raise RuntimeError(f"no migrations below {folder}")
    return head


def _config(line: str, folder: Path) -> Config:
    config = Config()
    config.set_main_option("script_location", str(CHASSIS_MIGRATIONS))
    config.set_main_option("path_separator", "newline")
    config.set_main_option("version_locations", str(folder / "versions"))
    config.attributes["version_table"] = _version_table(line)
    return config


def _version_table(line: str) -> str:
    return f"{line}_version"
