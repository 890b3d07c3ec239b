"""A statement that cannot run is a bug that its caller learns of at once, not an outage to wait for."""

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.migrate import migrate
from tests.helpers.counter import CounterStore


async def test_a_missing_column_is_no_outage(database_url: str) -> None:
    database = Database(database_url, "counter")
    migrate(database, None)
    counters = CounterStore(database)
    tries: list[int] = []

    def broken(connection: Connection) -> int:
        tries.append(1)
        return connection.execute(text("UPDATE entities SET no_such_column = 1")).rowcount

    with pytest.raises(DBAPIError):
        await counters.store.write(broken)
    assert len(tries) == 2, "joined once, alone once"
    counters.store.close()
