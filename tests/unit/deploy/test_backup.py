"""Backup and restore by the scripts that the manual names: dump, destroy, restore, audit, go on."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest
from sqlalchemy import MetaData, select

from pointsman.api.orchestrator.v1.run_pb2 import RUN_STATE_COMPLETE
from pointsman.services.chassis.db import Database
from pointsman.services.chassis.journal import Journal, broken_links
from pointsman.services.chassis.store import Store
from tests.helpers.databases import new_postgres_database
from tests.helpers.postgres import PostgresServer
from tests.scenarios.planes import plane
from tests.unit.deploy.cluster import ROOT

CONTEXTS = ("router", "workflow", "pipeline", "orchestrator")


async def script(name: str, argument: Path, **environment: str) -> None:
    """Run one of the scripts."""
    command = [str(ROOT / "deploy" / name), str(argument)]
    process = await asyncio.create_subprocess_exec(
        *command, env={**os.environ, **environment}, stderr=asyncio.subprocess.PIPE
    )
    _, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()


async def audited(url: str, context: str) -> dict[str, int]:
    """How many transitions each entity of a store has, after proof that its chain is whole."""
    database = Database(url, context)
    store = Store(database, MetaData())
    journal, table = Journal(store), store.tables.journal
    try:
        ids = await database.read(lambda c: [row[0] for row in c.execute(select(table.c.entity_id).distinct())])
        counts = {}
        for entity_id in ids:
            rows = await database.read(lambda c, i=entity_id: journal.rows(c, i, 0, 100_000))  # type: ignore[misc]
            assert broken_links(rows) == []
            counts[entity_id] = len(rows)
        return counts
    finally:
        database.close()


async def test_a_database_is_dumped_lost_and_restored_and_work_goes_on(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    binaries = {"PATH": f"{postgres.binaries}:{os.environ['PATH']}"}
    lost, empty = new_postgres_database(postgres), new_postgres_database(postgres)
    async with plane(tmp_path, database_url=lost) as before:
        run = await before.submit()
        run = await before.ended(run.id)
        await script("backup.sh", tmp_path / "dump", POINTSMAN_DATABASE_URL=lost, **binaries)
    held = {context: await audited(lost, context) for context in CONTEXTS}
    await script("restore.sh", tmp_path / "dump", POINTSMAN_DATABASE_URL=empty, **binaries)
    assert {context: await audited(empty, context) for context in CONTEXTS} == held
    assert all(held.values())
    async with plane(tmp_path, database_url=empty) as after:
        assert await after.get(run.id) == run
        again = await after.submit()
        assert (await after.ended(again.id)).state == RUN_STATE_COMPLETE


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="NOT CHECKED: sqlite3 is not on this machine")
async def test_files_are_copied_while_they_are_written_and_restored(tmp_path: Path) -> None:
    data, copy, restored = tmp_path / "data", tmp_path / "copy", tmp_path / "restored"
    async with plane(data) as before:
        run = await before.submit()
        run = await before.ended(run.id)
        await script("backup.sh", copy, POINTSMAN_DATA=str(data), POINTSMAN_DATABASE_URL="")
    await script("restore.sh", copy, POINTSMAN_DATA=str(restored), POINTSMAN_DATABASE_URL="")
    async with plane(restored) as after:
        assert await after.get(run.id) == run
    for context in CONTEXTS:
        assert await audited(f"sqlite:///{restored / f'{context}.db'}", context)
