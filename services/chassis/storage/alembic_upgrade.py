"""Runs what is missing of a line of migrations; imported only where something is, since Alembic takes a while to load."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection

SCRIPTS = Path(__file__).parent / "migrations"


def upgrade(connection: Connection, folder: Path, version_table: str) -> None:
    """Bring the line up to its newest revision, on a connection that is held open and locked."""
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    config.set_main_option("path_separator", "newline")
    config.set_main_option("version_locations", str(folder / "versions"))
    config.attributes["version_table"] = version_table
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
