"""A store with a long history, so that a benchmark can tell whether age makes it slower."""

from collections.abc import Iterator

from sqlalchemy import Connection

from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.migrate import migrate
from tests.helpers.counter import CounterStore

CHUNK = 20_000
SEQS_EACH = 100


def preload(url: str, rows: int) -> None:
    """Write that many journal rows, as old counters would have left them."""
    database = Database(url, "counter")
    migrate(database, None)
    counters = CounterStore(database)
    tables = counters.store.tables
    try:
        with database.writing.connect() as connection:
            for chunk in _chunks(rows):
                _insert(connection, counters, chunk)
        with database.writing.begin() as connection:
            connection.execute(tables.head.update().values(position=rows))
    finally:
        counters.store.close()


def _insert(connection: Connection, counters: CounterStore, chunk: list[dict[str, object]]) -> None:
    with connection.begin():
        connection.execute(counters.store.tables.journal.insert(), chunk)


def _chunks(rows: int) -> Iterator[list[dict[str, object]]]:
    for first in range(0, rows, CHUNK):
        yield [_row(number) for number in range(first, min(first + CHUNK, rows))]


def _row(number: int) -> dict[str, object]:
    entity, seq = divmod(number, SEQS_EACH)
    return {
        "position": number + 1, "entity_id": f"old_{entity:08}", "seq": seq + 1, "kind": "counter", "project": "local",
        "run_id": "", "machine_version": 1, "at_us": number, "event": "added", "source": "counting",
        "target": "counting", "payload": '{"amount":1}', "actor": "local", "traceparent": "", "digest": "0" * 64,
    }  # fmt: skip
