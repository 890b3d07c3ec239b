"""The chassis from end to end."""

from pointsman.services.chassis.core.caller import Caller
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.migrate import migrate
from tests.helpers.counter import Add, Counter, CounterStore


async def test_a_command_is_decided_journalled_and_answered(database_url: str) -> None:
    database = Database(database_url, "counter")
    migrate(database, None)
    counters = CounterStore(database)
    counters.store.start()
    answer = await counters.ledger.submit(Caller("local", "local", request_id="r1", fingerprint="f"), Add("c1", 5))
    assert answer.value == 5
    again = await counters.ledger.submit(Caller("local", "local", request_id="r1", fingerprint="f"), Add("c1", 5))
    assert again == answer
    rows = await counters.journal.page("local", ("counter", "c1"), 0, 10)
    assert [(row.seq, row.event, row.position) for row in rows] == [(1, "added", 1)]
    state = await database.read(lambda connection: counters.ledger.load(connection, "local", "c1"))
    assert isinstance(state, Counter)
    assert state.value == 5
    counters.store.close()
