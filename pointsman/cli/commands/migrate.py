"""`pointsman migrate`: the stores' tables, brought up to date before a rollout."""

import json
from contextlib import nullcontext
from typing import Annotated

import typer

from pointsman.services.all_in_one import CONTEXTS, migrations_of
from pointsman.services.chassis.core.config import StoreSettings, load
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.file_lock import lock_store
from pointsman.services.chassis.storage.migrate import MigrationState, migrate, migration_states

app = typer.Typer(add_completion=False)


@app.command("migrate")
def run(as_json: Annotated[bool, typer.Option("--json", help="The result as JSON.")] = False) -> None:
    """Run the missing migrations of all four stores; safe to run twice, and on PostgreSQL from several places at once."""
    stores = load(StoreSettings)
    done = [(name, state) for name in CONTEXTS for state in _migrated(stores, name)]
    if as_json:
        print(json.dumps([{"store": name, "line": state.line, "at": state.current} for name, state in done], indent=2))
        return
    for name, state in done:
        print(f"{name:<13} {state.line:<8} at {state.current}")


def _migrated(stores: StoreSettings, name: str) -> list[MigrationState]:
    """Runs a store's migrations under its lock and returns their states."""
    database = Database(stores.url_for(name), name)
    try:
        with lock_store(database) or nullcontext():
            migrate(database, migrations_of(name))
        return migration_states(database, migrations_of(name))
    finally:
        database.close()
