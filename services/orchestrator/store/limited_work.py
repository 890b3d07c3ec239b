"""Work that went back because of a provider's limit, written with the lease, until the journal of its run tells of it."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, MetaData, bindparam, or_, select

from pointsman.services.chassis.storage.dialect import insert_or_ignore
from pointsman.services.chassis.storage.store import Store
from pointsman.services.orchestrator.store import tables

MOST = 1000


class LimitedWork:
    """One row for each lease that went back, with who took the work up afterwards."""

    def __init__(self, store: Store, metadata: MetaData) -> None:
        table = self.table = tables.limited_work(metadata)
        columns = table.c
        self._insert = insert_or_ignore(store.database, table)
        of_work = (columns.entity_id == bindparam("of_entity"), columns.assignment_id == bindparam("of_assignment"))
        self._take = (
            table.update()
            .where(*of_work, columns.taken_epoch == 0)
            .values(
                taken_epoch=bindparam("by_epoch"),
                taken_agent=bindparam("by_agent"),
                taken_account=bindparam("by_account"),
            )
        )
        self._untold = (
            select(table)
            .where(or_(columns.reported == 0, columns.taken_epoch > 0))
            .order_by(columns.entity_id, columns.assignment_id, columns.epoch)
            .limit(MOST)
        )
        self._mark_reported = table.update().where(*of_work, columns.epoch == bindparam("of_epoch")).values(reported=1)
        self._forget = table.delete().where(*of_work, columns.epoch == bindparam("of_epoch"))
        self._forget_run = table.delete().where(columns.entity_id == bindparam("of_entity"))

    def returned(self, connection: Connection, row: Mapping[str, Any]) -> None:
        """A lease went back; in the commit that returns it."""
        nobody = {"reported": 0, "taken_epoch": 0, "taken_agent": "", "taken_account": ""}
        connection.execute(self._insert, {**row, **nobody})

    def taken(self, connection: Connection, leases: Sequence[Mapping[str, Any]], accounts: Mapping[str, str]) -> None:
        """Somebody holds the work now; in the commit that gives it out. An epoch without an attempt is a lease that went back."""
        again = [
            {
                "of_entity": lease["entity_id"], "of_assignment": lease["assignment_id"], "by_epoch": lease["epoch"],
                "by_agent": lease["agent_id"], "by_account": accounts[lease["poll_id"]],
            }
            for lease in leases
            if lease["epoch"] > lease["attempt"]
        ]  # fmt: skip
        if again:
            connection.execute(self._take, again)

    def untold(self, connection: Connection) -> Sequence[Any]:
        """The rows of which a journal does not tell all yet."""
        return connection.execute(self._untold).all()

    def reported(self, connection: Connection, row: Any) -> None:
        """The journal tells what the row said: all of it, once somebody had taken the work."""
        key = {"of_entity": row.entity_id, "of_assignment": row.assignment_id, "of_epoch": row.epoch}
        connection.execute(self._forget if row.taken_epoch else self._mark_reported, key)

    def forget_of(self, connection: Connection, run_id: str) -> None:
        """Remove what was said about a run."""
        connection.execute(self._forget_run, {"of_entity": run_id})
