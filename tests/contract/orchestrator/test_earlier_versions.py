"""Stores that an earlier version has written: they are read, proven and gone on with."""

import json

from sqlalchemy import select

from pointsman.services.chassis.engine.audit import Auditor
from pointsman.services.orchestrator.store import OrchestratorStore
from tests.contract.orchestrator.orchestrators import caller, orchestrator, report, researching, take


async def forget_fields(store: OrchestratorStore, run_id: str) -> None:
    """Make the run's body what the version before had written."""
    entities = store.store.tables.entities
    mine = entities.c.entity_id == run_id
    text = await store.store.database.read(
        lambda connection: connection.execute(select(entities.c.body).where(mine)).scalar_one()
    )
    body = json.loads(text)
    del body["attempts"], body["order"]["barrier_timeout_seconds"]
    for assignment in body["assignments"].values():
        del assignment["restarts"]
    written = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
    await store.store.write(
        lambda connection: connection.execute(entities.update().where(mine).values(body=written)).rowcount
    )


async def test_a_run_without_the_fields_of_today_is_sound_and_goes_on(database_url: str) -> None:
    async with orchestrator(database_url) as store:
        await researching(store, "run_a")
        await forget_fields(store, "run_a")
        auditor = Auditor(store.store)
        assert await store.store.database.read(lambda connection: list(auditor.violations(connection))) == []
        (held,) = await take(store, "ada")
        assert (await store.ledger.submit(caller(), report(held))).accepted
        assert await store.store.database.read(lambda connection: list(auditor.violations(connection))) == []
