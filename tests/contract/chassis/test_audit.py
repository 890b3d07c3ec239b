"""The auditor finds nothing in a store that was used well, and each planted bug in one that was tampered with."""

import sqlite3
from contextlib import closing

import pytest

from pointsman.services.chassis.core.caller import Caller
from pointsman.services.chassis.engine.audit import Auditor, Violation
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.migrate import migrate
from tests.helpers.counter import Add, CounterStore
from tests.helpers.plain_stores import write_as_text

TRACE = "00-ddddb9a9549f7991156cd9bb37c077c3-97e90cc855776a4d-01"

PLANTED = {
    "a changed payload": ("UPDATE journal SET payload = '{\"amount\":7}' WHERE seq = 2", "journal-chain"),
    "a changed actor": ("UPDATE journal SET actor = 'mallory' WHERE seq = 2", "journal-chain"),
    "a changed time": ("UPDATE journal SET at_us = at_us + 1 WHERE seq = 3", "journal-chain"),
    "a missing row": ("DELETE FROM journal WHERE seq = 2", "journal-chain"),
    "a row number used twice": ("UPDATE journal SET seq = 9 WHERE seq = 4", "journal-chain"),
    "a last row that is gone": ("DELETE FROM journal WHERE seq = 4", "journal-head"),
    "a version that ran ahead": ("UPDATE entities SET version = 5", "journal-head"),
    "a state that was edited": ('UPDATE entities SET body = \'{"counter_id":"c1","value":9}\'', "fold"),
    "an event nobody knows": ("UPDATE journal SET event = 'vanished' WHERE seq = 4", "fold"),
    "a status that was edited": ("UPDATE entities SET status = 'done'", "one-state"),
    "a jump between states": ("UPDATE journal SET source = 'elsewhere' WHERE seq = 3", "one-state"),
    "a journal without its entity": ("DELETE FROM entities", "orphan"),
    "a position beyond the head": ("UPDATE head SET position = 1", "position"),
}


@pytest.fixture
async def counters(database_url: str) -> "CounterStore":
    database = Database(database_url, "counter")
    migrate(database, None)
    return CounterStore(database)


async def used(counters: CounterStore) -> None:
    for number in range(4):
        caller = Caller("local", "local", request_id=f"r{number}", fingerprint="f")
        await counters.ledger.submit(caller, Add("c1", number))


def audit(counters: CounterStore) -> list[Violation]:
    auditor = Auditor(counters.store)
    return counters.store.database.read_now(lambda connection: list(auditor.violations(connection)))


async def test_a_store_that_was_used_well_has_no_violations(counters: CounterStore) -> None:
    await used(counters)
    assert audit(counters) == []
    counters.store.close()


async def test_a_store_whose_texts_were_never_packed_goes_on_and_has_no_violations(counters: CounterStore) -> None:
    await used(counters)
    file = counters.store.database.file
    if file is not None:
        assert write_as_text(file) > 0
        with closing(sqlite3.connect(file)) as store:
            assert store.execute("SELECT count(*) FROM journal WHERE typeof(digest) = 'blob'").fetchone() == (0,)
    caller = Caller("local", "local", request_id="later", fingerprint="ab" * 16, traceparent=TRACE)
    answer = await counters.ledger.submit(caller, Add("c1", 5))
    assert await counters.ledger.submit(caller, Add("c1", 5)) == answer
    assert audit(counters) == []
    if file is not None:
        with closing(sqlite3.connect(file)) as store:
            newest = "SELECT typeof(digest), typeof(traceparent) FROM journal ORDER BY seq DESC"
            assert store.execute(newest).fetchone() == ("blob", "blob")
    counters.store.close()


@pytest.mark.parametrize("planted", PLANTED)
async def test_the_auditor_finds(planted: str, counters: CounterStore) -> None:
    statement, invariant = PLANTED[planted]
    await used(counters)
    await counters.store.write(lambda connection: connection.exec_driver_sql(statement).rowcount)
    assert invariant in {violation.invariant for violation in audit(counters)}
    counters.store.close()
