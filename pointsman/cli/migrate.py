"""`pointsman migrate`: the stores' tables, brought up to date before a rollout."""

from importlib import import_module
from pathlib import Path

import typer

from pointsman.cli.plane import CONTEXTS
from pointsman.services.chassis.config import StoreSettings, load
from pointsman.services.chassis.db import Database
from pointsman.services.chassis.migrate import migrate, migration_states

app = typer.Typer(add_completion=False)


@app.command("migrate")
def run() -> None:
    """Run the missing migrations of all four stores; safe to run twice and from several places at once."""
    stores = load(StoreSettings)
    for name in CONTEXTS:
        database = Database(stores.url_for(name), name)
        migrate(database, migrations_of(name))
        for state in migration_states(database, migrations_of(name)):
            print(f"{name:<13} {state.line:<8} at {state.current}")
        database.close()


def migrations_of(name: str) -> Path:
    """The folder of a context's migrations."""
    package = import_module(f"pointsman.services.{name}.migrations")
    return Path(str(package.__file__)).parent
