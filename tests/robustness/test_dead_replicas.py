"""Replicas on one PostgreSQL: what a dead one held is taken over at once, what a live one holds is left to it."""

from sqlalchemy import Connection

from tests.helpers.counter import Add, CounterStore
from tests.helpers.counters import a_caller, opened, rows_of
from tests.helpers.databases import new_postgres_database
from tests.helpers.eventually import eventually
from tests.helpers.postgres import PostgresServer


async def _brought_back(counters: CounterStore) -> int:
    return await counters.store.write(counters.store.requeue_stranded)


async def _hold(counters: CounterStore) -> None:
    """An effect that this replica has leased and does not get round to."""
    counters.store.deliver_with(lambda effects: None)
    await counters.ledger.submit(a_caller(), Add("c1", 1, ("somebody",)))
    assert [row["lease_owner"] for row in await rows_of(counters, "outbox")] == [counters.store.owner]


def _shown(owner: str, connection: Connection) -> bool:
    found = connection.exec_driver_sql("SELECT 1 FROM pg_stat_activity WHERE application_name = %s", (owner,))
    return found.first() is not None


async def test_what_a_dead_replica_held_is_taken_over_and_not_before(postgres: PostgresServer) -> None:
    url = new_postgres_database(postgres)
    async with opened(url) as other:
        async with opened(url, listens=True) as mortal:
            owner = mortal.store.owner

            async def shown() -> bool:
                return await other.store.database.read(lambda connection: _shown(owner, connection))

            async def gone() -> bool:
                return not await shown()

            await eventually(shown, 30)
            await _hold(mortal)
            assert await _brought_back(other) == 0, "a live replica keeps what it holds"
        await eventually(gone, 30)
        assert await _brought_back(other) == 1
