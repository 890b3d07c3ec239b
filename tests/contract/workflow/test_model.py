"""Random commands on a real store, joined into batches as they come: it must agree with the pure model."""

import asyncio
import itertools
from datetime import datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from pointsman.services.chassis.core.caller import Caller
from pointsman.services.chassis.core.errors import Refusal
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.migrate import migrate
from pointsman.services.workflow.__main__ import MIGRATIONS
from pointsman.services.workflow.domain.model import Workflow
from pointsman.services.workflow.store import WorkflowStore
from tests.contract.workflow.proof import assert_kept
from tests.unit.workflow.flow import ID, NOON
from tests.unit.workflow.random_commands import COMMANDS, START, assert_sound
from tests.unit.workflow.test_model import StillFlow

_numbers = itertools.count(1)
EXAMPLES = 40


class Noon:
    """A clock that stands still, as the model's does."""

    def now(self) -> datetime:
        """Noon."""
        return NOON


@pytest.fixture
def workflows(database_url: str) -> Any:
    database = Database(database_url, "workflow", Noon())
    migrate(database, MIGRATIONS)
    store = WorkflowStore(database)
    yield store
    store.store.close()


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.lists(st.lists(COMMANDS, min_size=1, max_size=5), max_size=8))
def test_the_store_agrees_with_the_model(workflows: WorkflowStore, database_url: str, batches: list[list[Any]]) -> None:
    project = f"project-{next(_numbers)}"
    _forget_everything(workflows)
    asyncio.run(_compare(workflows, project, [[*START], *batches]))
    assert assert_kept(database_url) == 1


async def _compare(workflows: WorkflowStore, project: str, batches: list[list[Any]]) -> None:
    model = StillFlow()
    for batch in batches:
        expected = [model.outcome(command) for command in batch]
        found = await asyncio.gather(*(_outcome(workflows, project, command) for command in batch))
        assert found == expected
    stored = await workflows.read_whole(project, ID)
    assert stored.header == model.state.header
    assert stored.tasks.by_id == model.state.tasks.by_id
    assert stored.details == model.state.details
    assert_sound(stored)
    rows = await workflows.journal.page(project, ("workflow", ID), 0, 1000)
    assert len(rows) == len(model.journal)
    await _check_list(workflows, project, stored)


async def _check_list(workflows: WorkflowStore, project: str, stored: Workflow) -> None:
    listed = await workflows.list_resumable(project, (), 10)
    assert [one.header for one in listed] == ([stored.header] if stored.header.resumable else [])


async def _outcome(workflows: WorkflowStore, project: str, command: Any) -> Any:
    request_id = f"request-{next(_numbers)}"
    try:
        return await workflows.submit(Caller("local", project, request_id=request_id, fingerprint="same"), command)
    except Refusal as refusal:
        return str(refusal)


def _forget_everything(workflows: WorkflowStore) -> None:
    """Each example begins with an empty store."""

    def empty(connection: Connection) -> None:
        for table in workflows.store.metadata.sorted_tables:
            if table.name != "head":
                connection.execute(table.delete())

    asyncio.run(workflows.store.write(empty))
