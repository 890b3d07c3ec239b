"""A rolling update, as a cluster does it: the next version's migration, then every replica in turn, under load."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pointsman.api.orchestrator.v1.run_pb2 import RUN_STATE_COMPLETE
from pointsman.api.workflow.v1 import model_pb2, plans_pb2, reading_pb2
from pointsman.api.workflow.v1.workflow_pb2_grpc import WorkflowServiceStub
from pointsman.client import Order, Terms
from pointsman.client.calls import Calls
from pointsman.services.chassis.db import Database
from pointsman.services.chassis.migrate import migrate
from pointsman.services.chassis.peer import open_channel
from pointsman.services.workflow.__main__ import MIGRATIONS
from tests.helpers.databases import new_postgres_database
from tests.helpers.eventually import eventually
from tests.helpers.postgres import PostgresServer
from tests.robustness.replicas import CONTEXTS, Replicas, replicas_of, two_of_each

WISH = "Fix the failing test in src/parser.py and add a regression test"
CALLERS = 3
ENOUGH_RUNS = 10


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


@pytest.mark.timeout(240)
async def test_every_replica_is_restarted_in_turn_and_no_call_fails_and_no_transition_is_lost(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async with two_of_each(new_postgres_database(postgres), tmp_path) as replicas:
        async with under_load(replicas) as load:
            for context in CONTEXTS:
                for replica in replicas.of(context):
                    await replica.restart()
            await _enough(load)
        for run_id, seqs in load.journals.items():
            run = await replicas.client.runs.get(run_id)
            assert run.state == RUN_STATE_COMPLETE, run
            assert seqs == list(range(1, run.seq + 1)), "watched without gap or repeat"
        kept = {run.id async for run in replicas.client.runs.all()}
        assert kept == set(load.journals), "each acknowledged run is there, and no other"
        for context in CONTEXTS:
            assert await replicas.transitions(context) >= len(load.journals)


async def _enough(load: Load) -> None:
    async def enough() -> bool:
        return len(load.journals) >= ENOUGH_RUNS

    await eventually(enough, 120)


NEXT_VERSION = """
import sqlalchemy as sa
from alembic import op

revision = "9999"
down_revision = "{newest}"


def upgrade() -> None:
    op.add_column("tasks", sa.Column("of_the_next_version", sa.Text, nullable=True))
    op.create_index("tasks_of_the_next_version", "tasks", ["of_the_next_version"])
"""


def _next_version(folder: Path) -> Path:
    """The workflow's migrations as the next version would have them: one more, that only adds."""
    shutil.copytree(MIGRATIONS / "versions", folder / "versions")
    newest = max(path.name for path in (folder / "versions").glob("[0-9]*.py")).partition("_")[0]
    (folder / "versions" / "9999_next.py").write_text(NEXT_VERSION.format(newest=newest))
    return folder


def _migrate_to_the_next_version(url: str, folder: Path) -> None:
    database = Database(url, "workflow")
    migrate(database, _next_version(folder))
    database.close()


async def test_the_next_version_migrates_while_this_one_serves_and_restarts(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    url = new_postgres_database(postgres)
    async with replicas_of("workflow", 2, url, tmp_path) as (members, address):
        calls = Calls(open_channel(address), Terms(patience_seconds=40.0))
        stub: Any = WorkflowServiceStub(calls.channel)
        stopped = asyncio.Event()
        stored: list[str] = []

        async def caller(number: int) -> None:
            while not stopped.is_set():
                workflow_id = f"w-{number}-{len(stored)}"
                task = model_pb2.TaskSpec(task_id="T1", name="do it")
                request = plans_pb2.UpsertPlanRequest(request_id=workflow_id, workflow_id=workflow_id, tasks=[task])
                await calls.call(stub.UpsertPlan, request)
                stored.append(workflow_id)

        async with asyncio.TaskGroup() as group:
            for number in range(CALLERS):
                group.create_task(caller(number))
            await asyncio.to_thread(_migrate_to_the_next_version, url, tmp_path / "next")
            for member in members:
                await member.restart()
            stopped.set()
        pages = calls.pages(stub.ListWorkflows, reading_pb2.ListWorkflowsRequest())
        kept = [workflow.workflow_id async for page in pages for workflow in page.workflows]
        assert sorted(kept) == sorted(stored)
        await calls.channel.close()
