"""Fires timers when they are due: at least once, by the replica that holds the lease."""

import asyncio
from collections.abc import Awaitable, Callable
from math import inf
from typing import Any

import structlog
from sqlalchemy import Connection, and_, bindparam, func, select

from pointsman.services.chassis.core.clock import to_us
from pointsman.services.chassis.core.crash import CrashPoint, reach
from pointsman.services.chassis.core.errors import Refusal
from pointsman.services.chassis.engine.deliveries import LEASE_SECONDS, FiredTimer, fired_timer, set_log_context
from pointsman.services.chassis.engine.waiting import TRANSIENT, wait_for_notification
from pointsman.services.chassis.storage.store import TIMERS, Store

CLAIM_LIMIT = 100
LOOK_PAUSE_SECONDS = 0.02
"""Timers that are set at the same time are read together, not each by itself."""
MAX_LEASE_DOUBLINGS = 7
"""A timer whose firing fails is tried about once an hour in the end."""

log = structlog.get_logger()


class TimerRunner:
    """Fires timers when they are due, also when no client is there."""

    def __init__(self, store: Store, fire: Callable[[FiredTimer], Awaitable[None]], poll_seconds: float = 1.0) -> None:
        self._store = store
        self._fire = fire
        self._poll_seconds = poll_seconds
        self._sql = _TimerStatements(store)

    async def run(self) -> None:
        """Fire what is due, then wait for the next one."""
        with self._store.hub.subscribed(TIMERS) as news:
            while True:
                news.clear()
                self._store.next_timer_poll_us = inf
                await self.fire_due()
                wait_seconds = await self._seconds_to_next()
                self._store.next_timer_poll_us = to_us(self._store.database.clock.now()) + wait_seconds * 1_000_000
                await wait_for_notification(news, wait_seconds)
                await asyncio.sleep(LOOK_PAUSE_SECONDS)

    async def fire_due(self) -> int:
        """Fire every timer that is due now; how many there were."""
        count = 0
        while True:
            now_us = to_us(self._store.database.clock.now())
            if not await self._store.database.read(lambda connection: self._sql.any_due(connection, now_us)):  # noqa: B023
                return count
            timers = await self._store.write(lambda connection: self._sql.claim(connection, now_us))  # noqa: B023
            await asyncio.gather(*(self._fire_one(timer) for timer in timers))
            count += len(timers)
            if not timers:
                return count

    async def _fire_one(self, timer: FiredTimer) -> None:
        set_log_context(timer)
        reach(CrashPoint.BEFORE_TIMER)
        try:
            await self._fire(timer)
        except Refusal as refusal:
            if refusal.code in TRANSIENT:
                return
            log.info("timer_refused", timer=timer.timer_id, reason=refusal.reason)
            await self._store.write(lambda connection: self._sql.forget(connection, timer))
        except Exception as error:  # noqa: BLE001 - fired again when its lease is over
            log.error("timer_failed", timer=timer.timer_id, error=repr(error))

    async def _seconds_to_next(self) -> float:
        due_at_us = await self._store.database.read(self._sql.next_due)
        if due_at_us is None:
            return self._poll_seconds
        left_us = due_at_us - to_us(self._store.database.clock.now())
        return min(self._poll_seconds, max(0.001, left_us / 1_000_000))


class _TimerStatements:
    """The timers' queue."""

    def __init__(self, store: Store) -> None:
        timers = store.tables.timers
        due = and_(timers.c.due_at_us <= bindparam("now_us"), timers.c.lease_until_us <= bindparam("now_us"))
        self._any = select(timers.c.entity_id).where(due).limit(1)
        self._due = select(timers).where(due).order_by(timers.c.due_at_us).limit(CLAIM_LIMIT)
        if store.database.features.skip_locked:
            self._due = self._due.with_for_update(skip_locked=True)
        mine = and_(
            timers.c.entity_id == bindparam("of_entity"),
            timers.c.name == bindparam("of_name"),
            timers.c.seq == bindparam("of_seq"),
        )
        self._lease = (
            timers.update()
            .where(mine)
            .values(lease_until_us=bindparam("lease_until_us"), attempts=timers.c.attempts + 1)
        )
        self._forget = timers.delete().where(mine)
        self._next = select(func.min(timers.c.due_at_us)).where(timers.c.lease_until_us == 0)

    def any_due(self, connection: Connection, now_us: int) -> bool:
        """Whether a timer is due."""
        return connection.execute(self._any, {"now_us": now_us}).first() is not None

    def next_due(self, connection: Connection) -> int | None:
        """When the next timer that nobody holds is due."""
        return connection.execute(self._next).scalar_one_or_none()

    def claim(self, connection: Connection, now_us: int) -> list[FiredTimer]:
        """Lease what is due, so that one replica fires it; one that keeps failing is held longer each time."""
        rows = connection.execute(self._due, {"now_us": now_us}).mappings().all()
        if rows:
            leases = [_timer_key(row) | {"lease_until_us": now_us + _timer_lease_us(row["attempts"])} for row in rows]
            connection.execute(self._lease, leases)
        return [fired_timer(row) for row in rows]

    def forget(self, connection: Connection, timer: FiredTimer) -> None:
        """Delete a timer that its machine has no use for."""
        connection.execute(self._forget, {"of_entity": timer.entity_id, "of_name": timer.name, "of_seq": timer.seq})


def _timer_key(row: Any) -> dict[str, Any]:
    return {"of_entity": row["entity_id"], "of_name": row["name"], "of_seq": row["seq"]}


def _timer_lease_us(attempts: int) -> int:
    return (LEASE_SECONDS << min(attempts, MAX_LEASE_DOUBLINGS)) * 1_000_000
