"""How many more leases a principal may hold."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, func, literal_column, select

from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.storage.dialect import PreparedStatement, any_of, bind_list
from pointsman.services.chassis.storage.store import Store
from pointsman.services.orchestrator.store.agents import Holder
from pointsman.services.orchestrator.store.children import LEASED, RunChildren
from pointsman.services.orchestrator.store.polling import Waiter

FRESH_US = 200_000
RETRY_SECONDS = 5.0
_Key = tuple[str, str]
Room = dict[_Key, int]
"""How many more leases each project's principals may be given."""


class LeaseQuota:
    """Counts the leases of the principals that wait. Used by the writing thread only.

    What this replica gives out is added to the last count, so that the count is never too low here; it is taken anew
    when it is old, which shows what other replicas gave out, and before anybody is refused.
    """

    def __init__(self, store: Store, children: RunChildren, limit: int) -> None:
        self._database = store.database
        self._limit = limit
        self._held: Room = {}
        self._counted_us = 0
        columns = children.assignments.c
        self._count = PreparedStatement(
            store.database,
            select(columns.project, columns.principal, func.count())
            .where(columns.status == literal_column(f"'{LEASED}'"), any_of(store.database, columns.principal))
            .group_by(columns.project, columns.principal),
        )

    def room(self, connection: Connection, waiting: Sequence[Waiter], now_us: int) -> Room:
        """What each principal that waits may be given; empty where there is no limit."""
        if not self._limit:
            return {}
        wanted: Room = {}
        for waiter in waiting:
            key = _key(waiter.wanted.holder)
            wanted[key] = wanted.get(key, 0) + waiter.wanted.limit
        is_old = abs(now_us - self._counted_us) >= FRESH_US
        if is_old or any(self._held.get(key, self._limit) + more > self._limit for key, more in wanted.items()):
            self._count_anew(connection, wanted, now_us)
        return {key: max(0, self._limit - self._held[key]) for key in wanted}

    def _count_anew(self, connection: Connection, wanted: Iterable[_Key], now_us: int) -> None:
        principals = bind_list(self._database, sorted({principal for _, principal in wanted}))
        counted = {(row[0], row[1]): int(row[2]) for row in self._count.fetch(connection, {"values": principals})}
        self._held, self._counted_us = {key: counted.get(key, 0) for key in wanted}, now_us

    def given(self, leases: Iterable[dict[str, Any]]) -> None:
        """Count what was just given out."""
        for lease in leases if self._limit else ():
            key = (lease["project"], lease["principal"])
            self._held[key] = self._held.get(key, 0) + 1

    def refusal(self, holder: Holder) -> Refusal:
        """Why a principal that holds all it may is given nothing."""
        return Refusal(
            Reason.OVERLOADED,
            f"{holder.principal} holds {self._limit} leases in project {holder.project}, all that a principal may "
            "(POINTSMAN_ORCHESTRATOR_MAX_PRINCIPAL_LEASES): complete, fail or give back some, or raise it",
            metadata={"limit": str(self._limit)},
            retry_after_seconds=RETRY_SECONDS,
        )


def has_room(room: Room, holder: Holder) -> bool:
    """Whether a holder's principal may be given another lease."""
    return room.get(_key(holder), 1) > 0


def take_room(room: Room, holder: Holder) -> None:
    """One lease less for a holder's principal."""
    key = _key(holder)
    if key in room:
        room[key] -= 1


def _key(holder: Holder) -> _Key:
    return holder.project, holder.principal
