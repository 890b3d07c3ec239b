"""What is forgotten is forgotten whole, and only what may go."""

import pytest
from sqlalchemy import func, select

from pointsman.services.chassis.core.caller import Caller
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.engine.retention import forget_run
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.migrate import migrate
from tests.helpers.counter import Add, CounterStore


def caller(request_id: str, fingerprint: str = "f") -> Caller:
    return Caller("local", "local", request_id=request_id, fingerprint=fingerprint)


async def used(database_url: str) -> CounterStore:
    database = Database(database_url, "counter")
    migrate(database, None)
    counters = CounterStore(database)
    await counters.ledger.submit(caller("r1"), Add("c1", 1, ("them",), 60.0))
    await counters.ledger.submit(caller("r2"), Add("c2", 1, ("them",), 60.0))
    return counters


def rows_of(counters: CounterStore, entity_id: str) -> int:
    tables = [table for table in counters.store.metadata.sorted_tables if "entity_id" in table.c]
    return counters.store.database.read_now(
        lambda connection: sum(
            connection.execute(select(func.count()).where(table.c.entity_id == entity_id)).scalar_one()
            for table in tables
        )
    )


async def test_every_row_of_a_forgotten_entity_goes_and_none_of_another(database_url: str) -> None:
    counters = await used(database_url)
    kept = rows_of(counters, "c2")
    assert await forget_run(counters.store, caller("f1"), "", lambda row: row.entity_id == "c1") == 1
    assert rows_of(counters, "c1") == 0
    assert rows_of(counters, "c2") == kept > 3
    counters.store.close()


async def test_asking_again_with_the_same_request_id_gives_the_first_answer(database_url: str) -> None:
    counters = await used(database_url)
    assert await forget_run(counters.store, caller("f1"), "", lambda _row: True) == 2
    assert await forget_run(counters.store, caller("f1"), "", lambda _row: True) == 2
    assert await forget_run(counters.store, caller("f2"), "", lambda _row: True) == 0
    with pytest.raises(Refusal) as refused:
        await forget_run(counters.store, caller("f1", "other"), "", lambda _row: True)
    assert refused.value.reason is Reason.REQUEST_ID_REUSED
    counters.store.close()
