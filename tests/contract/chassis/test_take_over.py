"""A process that starts on a file does not wait for the leases of the one that died before it."""

from pathlib import Path

from sqlalchemy import Connection, select

from pointsman.services.chassis.core.caller import Caller
from pointsman.services.chassis.core.config import ServerSettings
from pointsman.services.chassis.runtime.service import start
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.migrate import migrate
from tests.helpers.counter import Add, CounterStore, build
from tests.helpers.eventually import eventually


async def test_an_effect_that_a_dead_owner_had_leased_is_delivered_at_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    database = Database(url, "counter")
    migrate(database, None)
    dead = CounterStore(database)
    await dead.ledger.submit(Caller("local", "local", request_id="r1", fingerprint="f"), Add("c1", 1, ("them",)))
    outbox = dead.store.tables.outbox
    await dead.store.write(lambda connection: lease_for_ever(connection, dead))
    dead.store.close()
    running = await start(lambda _address: [build(Database(url, "counter"))], ServerSettings(port=0))
    store = running.services[0].store
    assert store is not None

    async def delivered() -> bool:
        rows = await store.database.read(lambda connection: connection.execute(select(outbox.c.seq)).all())
        return not rows

    await eventually(delivered, 5)
    await running.stop()


def lease_for_ever(connection: Connection, counters: CounterStore) -> None:
    connection.execute(counters.store.tables.outbox.update().values(lease_owner="dead", lease_until_us=2**60))
