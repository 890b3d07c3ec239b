"""How many request ids of a principal are remembered, and the limit."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, func, select

from pointsman.services.chassis.core.caller import Caller, Role
from pointsman.services.chassis.core.clock import to_us
from pointsman.services.chassis.core.config import RequestSettings, load
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.storage.dialect import PreparedStatement
from pointsman.services.chassis.storage.store import Store

COUNT_AGAIN_US = 1_000_000
RETRY_SECONDS = 3600.0
_Key = tuple[str, str]


class RequestQuota:
    """Counts idempotency records by project and principal. Used by the writing thread only.

    What this process writes is added to the last count, so that it is never too low here; records that were deleted
    since, and those of other replicas, show when it counts again: before it refuses, at most once a second.
    """

    def __init__(self, store: Store) -> None:
        self._clock, self._limit = store.database.clock, load(RequestSettings).max_per_principal
        self._known: dict[_Key, tuple[int, int]] = {}
        """How many records, and when they were counted."""
        table = store.tables.idempotency
        some = (
            select(table.c.request_id)
            .where(table.c.project == bindparam("project"), table.c.principal == bindparam("principal"))
            .limit(bindparam("enough"))
            .subquery()
        )
        self._count = PreparedStatement(store.database, select(func.count()).select_from(some))

    def load(self, connection: Connection, callers: Sequence[Caller]) -> None:
        """Count for the callers that were not counted yet, or that have reached the limit by the last count."""
        now_us = to_us(self._clock.now())
        for key in {_key(caller) for caller in callers if self._is_limited(caller)}:
            count, at_us = self._known.get(key, (self._limit, 0))
            if count >= self._limit and abs(now_us - at_us) >= COUNT_AGAIN_US:
                wanted = {"project": key[0], "principal": key[1], "enough": self._limit}
                self._known[key] = (int(self._count.fetch(connection, wanted)[0][0]), now_us)

    def take(self, caller: Caller) -> None:
        """Count one more record, or refuse it."""
        if not self._is_limited(caller):
            return
        count, at_us = self._known[_key(caller)]
        if count >= self._limit:
            raise Refusal(
                Reason.OVERLOADED,
                f"{self._limit} request ids of {caller.principal} are remembered in project {caller.project}, all that "
                "a principal may have (POINTSMAN_REQUESTS_MAX_PER_PRINCIPAL): raise it, or wait until the oldest are "
                "forgotten, seven days after their call",
                metadata={"limit": str(self._limit)},
                retry_after_seconds=RETRY_SECONDS,
            )
        self._known[_key(caller)] = (count + 1, at_us)

    def _is_limited(self, caller: Caller) -> bool:
        """Services ask for others, as often as those do."""
        return bool(self._limit) and Role.SERVICE not in caller.roles


def _key(caller: Caller) -> _Key:
    return caller.project, caller.principal
