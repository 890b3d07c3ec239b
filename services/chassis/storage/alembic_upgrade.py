"""Runs missing migrations with Alembic; imported only if there are any, because Alembic loads slowly."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection

SCRIPTS = Path(__file__).parent / "migrations"


def upgrade(connection: Connection, folder: Path, version_table: str, revision: str = "head") -> None:
    """Upgrade a line of migrations to a revision, by default the newest, on a locked connection."""
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    config.set_main_option("path_separator", "newline")
    config.set_main_option("version_locations", str(folder / "versions"))
    config.attributes["version_table"] = version_table
    config.attributes["connection"] = connection
    command.upgrade(config, revision)
