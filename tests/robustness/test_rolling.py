"""A rolling update, as a cluster does it: the next version's migration, then every replica in turn, under load."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg
import pytest

from pointsman.api.orchestrator.v1.run_pb2 import RUN_STATE_COMPLETE
from pointsman.client import Order
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.migrate import migrate
from tests.helpers.databases import new_postgres_database
from tests.helpers.eventually import eventually
from tests.helpers.postgres import PostgresServer
from tests.robustness.replicas import CONTEXTS, PATIENCE_SECONDS, Replicas, two_of_each

WISH = "Fix the failing test in src/parser.py and add a regression test"
CALLERS = 3
SERVICES = Path(__file__).resolve().parents[2] / "services"


class Load:
    """Runs that are submitted and watched to their end, one after the other by each caller."""

    def __init__(self, replicas: Replicas) -> None:
        self._client = replicas.client
        self._stopped = asyncio.Event()
        self.journals: dict[str, list[int]] = {}

    async def caller(self) -> None:
        """Submit a run, watch it to its end, and again."""
        while not self._stopped.is_set():
            answer = await self._client.runs.submit(Order(WISH))
            seqs = [transition.seq async for transition in self._client.runs.watch(answer.run.id)]
            self.journals[answer.run.id] = seqs

    async def ended(self, runs: int) -> None:
        """Wait until so many runs have been taken to their end."""

        async def enough() -> bool:
            return len(self.journals) >= runs

        await eventually(enough, PATIENCE_SECONDS)

    def stop(self) -> None:
        """Let each caller finish the run that it has."""
        self._stopped.set()


@asynccontextmanager
async def under_load(replicas: Replicas) -> AsyncIterator[Load]:
    """Callers at work for the length of the block; whatever failed for one of them fails here."""
    load = Load(replicas)
    async with asyncio.TaskGroup() as group:
        for _ in range(CALLERS):
            group.create_task(load.caller())
        yield load
        load.stop()


NEXT_VERSION = """
import sqlalchemy as sa
from alembic import op

revision = "9999"
down_revision = "{newest}"


def upgrade() -> None:
    op.add_column("entities", sa.Column("of_the_next_version", sa.Text, nullable=True))
    op.create_index("entities_of_the_next_version", "entities", ["of_the_next_version"])
"""


def _migrate_to_the_next_version(url: str, context: str, folder: Path) -> None:
    """What the next version's migration job does to a store: one step more, that only adds, at the busiest table."""
    shutil.copytree(SERVICES / context / "migrations" / "versions", folder / "versions")
    newest = max(path.name for path in (folder / "versions").glob("[0-9]*.py")).partition("_")[0]
    (folder / "versions" / "9999_next.py").write_text(NEXT_VERSION.format(newest=newest))
    database = Database(url, context)
    migrate(database, folder)
    database.close()


def _is_migrated(url: str, context: str) -> bool:
    with psycopg.connect(url) as connection:
        found = connection.execute(f"SELECT count(of_the_next_version) FROM {context}.entities").fetchone()
    return found == (0,)


@pytest.mark.timeout(300)
async def test_the_next_version_migrates_and_every_replica_restarts_in_turn_and_nothing_fails_or_is_lost(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    url = new_postgres_database(postgres)
    async with two_of_each(url, tmp_path) as replicas:
        async with under_load(replicas) as load:
            await load.ended(1)
            for context in CONTEXTS:
                await asyncio.to_thread(_migrate_to_the_next_version, url, context, tmp_path / "next" / context)
            await load.ended(len(load.journals) + CALLERS)
            for replica in replicas.members:
                await replica.restart()
            await load.ended(len(load.journals) + CALLERS)
        for run_id, seqs in load.journals.items():
            run = await replicas.client.runs.get(run_id)
            assert run.state == RUN_STATE_COMPLETE, run
            assert seqs == list(range(1, run.seq + 1)), "watched without gap or repeat"
        kept = {run.id async for run in replicas.client.runs.all()}
        assert kept == set(load.journals), "each acknowledged run is there, and no other"
        for context in CONTEXTS:
            assert _is_migrated(url, context)
            assert await replicas.transitions(context) >= len(load.journals)
