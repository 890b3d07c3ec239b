"""Backup and restore by the scripts that the manual names: copied under load, lost, restored, proven, brought to its end."""

import asyncio
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Connection, MetaData, inspect, make_url, text

from pointsman.api.orchestrator.v1.run_pb2 import RUN_STATE_COMPLETE
from pointsman.services.chassis.core.config import StoreSettings
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.store import Store
from tests.helpers.databases import new_postgres_database
from tests.helpers.eventually import eventually
from tests.helpers.limits import scaled
from tests.helpers.postgres import PostgresServer
from tests.scenarios.planes import TERMINAL, Plane, plane
from tests.unit.deploy.cluster import ROOT

CONTEXTS = ("router", "workflow", "pipeline", "orchestrator")
AT_ONCE = 4
Row = tuple[str, str, int, str]
"""Store, entity, seq and digest of a transition."""


@dataclass(frozen=True, slots=True)
class Stores:
    """The four stores, on files or in one database, and how to lose them."""

    data: Path
    server: PostgresServer | None = None
    url: str = ""
    lease_seconds: float = field(default_factory=lambda: scaled(3))
    """Measured once: leases that were copied last as long as when they were taken, however quiet the machine is since."""

    @property
    def environment(self) -> dict[str, str]:
        """Where they are, for scripts and commands."""
        path = os.environ["PATH"] if self.server is None else f"{self.server.binaries}:{os.environ['PATH']}"
        return {"POINTSMAN_DATA": str(self.data), "POINTSMAN_DATABASE_URL": self.url, "PATH": path}

    @asynccontextmanager
    async def opened(self, context: str) -> AsyncIterator[Database]:
        """One store's database, to look into."""
        settings = StoreSettings(data=self.data, database_url=self.url)
        database = Database(settings.url_for(context), context)
        try:
            yield database
        finally:
            database.close()

    async def journal(self) -> set[Row]:
        """Every transition of every store."""
        found: set[Row] = set()
        for context in CONTEXTS:
            async with self.opened(context) as database:
                table = Store(database, MetaData()).tables.journal
                wanted = table.select().with_only_columns(table.c.entity_id, table.c.seq, table.c.digest)
                rows = await database.read(lambda c, wanted=wanted: c.execute(wanted).all())  # type: ignore[misc]
                found |= {(context, *row) for row in rows}
        return found

    async def counts(self) -> dict[str, int]:
        """How many rows each table of each store has."""
        found: dict[str, int] = {}
        for context in CONTEXTS:
            schema = context if self.server else None

            def query(connection: Connection, schema: str | None = schema) -> dict[str, int]:
                tables = inspect(connection).get_table_names(schema=schema)
                named = {table: f'"{schema}"."{table}"' if schema else f'"{table}"' for table in tables}
                return {
                    table: connection.execute(text(f"SELECT count(*) FROM {name}")).scalar_one()
                    for table, name in named.items()
                }

            async with self.opened(context) as database:
                found |= {f"{context}.{table}": count for table, count in (await database.read(query)).items()}
        return found

    def destroy(self) -> None:
        """Lose all of it; where there was a database, an empty one is left."""
        if self.server is None:
            shutil.rmtree(self.data)
            return
        name = make_url(self.url).database
        with psycopg.connect(self.server.url, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
            connection.execute(f'CREATE DATABASE "{name}"')


@pytest.fixture(params=["sqlite", "postgresql"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Stores:
    """Empty stores of each kind."""
    if request.param == "postgresql":
        server: PostgresServer = request.getfixturevalue("postgres")
        return Stores(tmp_path / "data", server, new_postgres_database(server))
    if shutil.which("sqlite3") is None:
        pytest.skip("NOT CHECKED: sqlite3 is not on this machine, so no files were copied")
    return Stores(tmp_path / "data")


async def run(stores: Stores, *command: str) -> tuple[int, str]:
    """Run a command that finds the stores in its environment; its exit code and what it printed."""
    process = await asyncio.create_subprocess_exec(
        *command,
        env={**os.environ, **stores.environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return process.returncode or 0, output.decode()


async def script(name: str, stores: Stores, argument: Path) -> None:
    """Run one of the scripts."""
    code, output = await run(stores, str(ROOT / "deploy" / name), str(argument))
    assert code == 0, output


async def broken_promises(stores: Stores) -> list[str]:
    """What `pointsman audit --all` says is broken, but for runs that the manual speaks of: those that began while files were copied."""
    code, output = await run(stores, sys.executable, "-m", "pointsman.cli", "audit", "--all")
    lines = output.splitlines()
    broken = [line for line in lines if line.startswith("BROKEN")]
    assert code == bool(broken), output
    assert len(lines) - len(broken) == len(CONTEXTS) + 1, output
    runs = {entity for store, entity, *_ in await stores.journal() if store == "orchestrator"}
    unknown = [re.search(r"no run (\S+)$", line) for line in broken]
    return [
        line for line, named in zip(broken, unknown, strict=True) if stores.server or named is None or named[1] in runs
    ]


def serving(stores: Stores) -> AbstractAsyncContextManager[Plane]:
    """A control plane on the stores; leases of a time that is lost run out soon."""
    return plane(stores.data, database_url=stores.url, lease_seconds=stores.lease_seconds)


@asynccontextmanager
async def load(control: Plane) -> AsyncIterator[list[str]]:
    """Runs one after the other, some at once, until the block ends; the ids of those that were answered."""
    answered: list[str] = []

    async def work() -> None:
        while True:
            run_id = (await control.submit()).id
            answered.append(run_id)
            await control.ended(run_id)

    working = [asyncio.ensure_future(work()) for _ in range(AT_ONCE)]
    try:
        yield answered
    finally:
        for task in working:
            task.cancel()
        ends = await asyncio.gather(*working, return_exceptions=True)
    assert all(isinstance(end, asyncio.CancelledError) for end in ends), ends


async def more(answered: list[str], count: int) -> None:
    """Wait for so many more runs."""
    wanted = len(answered) + count

    async def check() -> bool:
        return len(answered) >= wanted

    await eventually(check, 60)


async def copied_under_load(stores: Stores, target: Path) -> tuple[list[str], set[Row], set[Row]]:
    """Back up while runs are on their way: the runs answered before, the journal then, and the journal in the end."""
    async with serving(stores) as control, load(control) as answered:
        await more(answered, 2 * AT_ONCE)
        runs, known = list(answered), await stores.journal()
        await script("backup.sh", stores, target)
        await more(answered, AT_ONCE)
    return runs, known, await stores.journal()


@pytest.mark.timeout(180)
async def test_what_was_copied_under_load_and_lost_comes_back_whole_and_goes_on(stores: Stores, tmp_path: Path) -> None:
    runs, known, last = await copied_under_load(stores, tmp_path / "copy")
    stores.destroy()
    await script("restore.sh", stores, tmp_path / "copy")
    restored = await stores.journal()
    assert known <= restored, "what was committed before the backup began is in it"
    assert restored < last, "it is of a moment, and more was written after it"
    assert await broken_promises(stores) == []
    async with serving(stores) as control:
        under_way = [run_id for run_id in runs if (await control.get(run_id)).state not in TERMINAL]
        assert under_way, "void: nothing was on its way"
        for run_id in runs:
            assert (await control.ended(run_id, 30 + stores.lease_seconds)).state == RUN_STATE_COMPLETE
        again = await control.submit()
        assert (await control.ended(again.id)).state == RUN_STATE_COMPLETE
    assert await broken_promises(stores) == []


async def test_every_row_of_every_table_comes_back(stores: Stores, tmp_path: Path) -> None:
    async with serving(stores) as control:
        run = await control.ended((await control.submit()).id)
        waiting = await control.submit(message="Fix the typo in README.md")
    held, journal = await stores.counts(), await stores.journal()
    assert all(held[f"{context}.journal"] for context in CONTEXTS)
    await script("backup.sh", stores, tmp_path / "copy")
    stores.destroy()
    await script("restore.sh", stores, tmp_path / "copy")
    assert await stores.counts() == held
    assert await stores.journal() == journal
    async with serving(stores) as control:
        assert await control.get(run.id) == run
        assert (await control.ended(waiting.id)).state == RUN_STATE_COMPLETE
