"""Who of several replicas does a job that only one may do: named leases with a fencing epoch."""

from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, select

from pointsman.services.chassis.core.clock import to_us
from pointsman.services.chassis.storage.dialect import insert_or_ignore
from pointsman.services.chassis.storage.store import Store


@dataclass(frozen=True, slots=True)
class Lease:
    """A job held by one owner until a time; a later holder has a higher epoch."""

    name: str
    owner: str
    epoch: int
    until_us: int


class Leases:
    """The named leases of a store, by the database's clock."""

    def __init__(self, store: Store) -> None:
        table = store.tables.leases
        self._store = store
        self._create = insert_or_ignore(store.database, table)
        free = table.c.until_us <= bindparam("now_us")
        self._take = (
            table.update()
            .where(table.c.name == bindparam("of_name"), free)
            .values(owner=bindparam("new_owner"), epoch=table.c.epoch + 1, until_us=bindparam("new_until_us"))
        )
        held = (
            (table.c.name == bindparam("of_name"))
            & (table.c.owner == bindparam("of_owner"))
            & (table.c.epoch == bindparam("of_epoch"))
        )
        self._renew = table.update().where(held).values(until_us=bindparam("new_until_us"))
        self._read = select(table.c.name, table.c.owner, table.c.epoch, table.c.until_us).where(
            table.c.name == bindparam("of_name")
        )

    async def acquire(self, name: str, owner: str, seconds: float) -> Lease | None:
        """Take the lease if nobody holds it."""

        def job(connection: Connection) -> Lease | None:
            now_us = to_us(self._store.database.clock.now())
            until_us = now_us + int(seconds * 1_000_000)
            connection.execute(self._create, {"name": name, "owner": "", "epoch": 0, "until_us": 0})
            parameters = {"of_name": name, "now_us": now_us, "new_owner": owner, "new_until_us": until_us}
            if connection.execute(self._take, parameters).rowcount != 1:
                return None
            return Lease(*connection.execute(self._read, {"of_name": name}).one())

        return await self._store.write(job)

    async def renew(self, lease: Lease, seconds: float) -> Lease | None:
        """Hold it longer, unless somebody else has taken it meanwhile."""

        def job(connection: Connection) -> Lease | None:
            until_us = to_us(self._store.database.clock.now()) + int(seconds * 1_000_000)
            key = {"of_name": lease.name, "of_owner": lease.owner, "of_epoch": lease.epoch}
            if connection.execute(self._renew, {**key, "new_until_us": until_us}).rowcount != 1:
                return None
            return Lease(lease.name, lease.owner, lease.epoch, until_us)

        return await self._store.write(job)

    async def release(self, lease: Lease) -> None:
        """Give it back at once."""
        await self.renew(lease, 0)
