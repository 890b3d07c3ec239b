"""A statement that cannot run is a bug that its caller learns of at once, not an outage to wait for."""

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from pointsman.services.chassis.storage.database import Database, driver_of
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


async def test_an_error_while_rows_are_still_read_is_told_and_locks_nobody_out(database_url: str) -> None:
    database = Database(database_url, "counter")
    migrate(database, None)
    counters = CounterStore(database)

    def broken(connection: Connection) -> int:
        connection.execute(text("DELETE FROM entities"))
        rows = driver_of(connection).cursor()
        rows.execute("SELECT 1 UNION SELECT 2")
        assert rows.fetchone() == (1,)
        raise LookupError("in the middle of the rows")

    with pytest.raises(LookupError):
        await counters.store.write(broken)
    counters.store.close()
