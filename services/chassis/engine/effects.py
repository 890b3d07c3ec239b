"""Delivers effects: at least once, in order for each entity, by the replica that holds the lease."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from sqlalchemy import Connection, and_, bindparam, or_, select

from pointsman.services.chassis.core.clock import to_us
from pointsman.services.chassis.core.crash import CrashPoint, reach
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.core.ids import jitter
from pointsman.services.chassis.engine.deliveries import (
    LEASE_SECONDS,
    PendingEffect,
    pending_effect,
    set_log_context,
)
from pointsman.services.chassis.engine.waiting import TRANSIENT, wait_for_notification
from pointsman.services.chassis.storage.store import EFFECTS, Store
from pointsman.services.chassis.telemetry import metrics

CLAIM_LIMIT = 100

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class DeliveryPolicy:
    """How long and how often a delivery is tried."""

    poll_seconds: float = 1.0
    first_backoff_seconds: float = 0.1
    max_backoff_seconds: float = 30.0
    deadline_seconds: float = 24 * 3600.0
    """How long a peer may be unavailable before the machine gets a refusal."""
    max_faults: int = 8
    """How often a delivery may fail in a way that is neither a refusal nor an outage."""


@dataclass(frozen=True, slots=True)
class EffectHandlers:
    """What a context does with its effects; each submits its command with `acknowledges=effect`."""

    deliver: Callable[[PendingEffect], Awaitable[None]]
    """Do it, and commit its answer and the acknowledgement together."""
    give_up: Callable[[PendingEffect, Refusal], Awaitable[None]]
    """Tell the machine that it was refused for good, or could not be done."""


class EffectRunner:
    """One chain of deliveries per entity; chains run side by side."""

    def __init__(self, store: Store, handlers: EffectHandlers, policy: DeliveryPolicy) -> None:
        self._store = store
        self._handlers = handlers
        self._policy = policy
        self._chains: dict[str, deque[PendingEffect]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = False
        self._sql = _EffectStatements(store)

    async def run(self) -> None:
        """Deliver what is committed here at once, and claim what others left behind."""
        self._store.deliver_with(self.accept)
        with self._store.hub.subscribed(EFFECTS) as news:
            while True:
                news.clear()
                self.accept(await self._claim())
                await wait_for_notification(news, self._policy.poll_seconds)

    async def close(self) -> None:
        """Stop delivering; what was not acknowledged is given back for others to deliver."""
        self._closing = True
        held = [effect for chain in self._chains.values() for effect in chain]
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._release(held)

    def accept(self, effects: Sequence[PendingEffect]) -> None:
        """Put effects that this process holds the lease of into their entities' chains."""
        for effect in effects if not self._closing else ():
            chain = self._chains.get(effect.entity_id)
            if chain is not None:
                chain.append(effect)
                continue
            self._chains[effect.entity_id] = deque([effect])
            task = asyncio.create_task(self._drain(effect.entity_id))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _drain(self, entity_id: str) -> None:
        """Deliver in order; what cannot be settled now, not even as a failure, is claimed again after its lease."""
        chain = self._chains[entity_id]
        try:
            while chain and await self._deliver(chain[0]):
                chain.popleft()
                if chain and not await self._keep(chain[0]):
                    break
        except Exception as error:  # noqa: BLE001 - a chain that stays behind would block its entity for ever
            log.error("delivery_unsettled", entity=entity_id, error=repr(error))
        finally:
            del self._chains[entity_id]
        await self._release(list(chain)[1:])

    async def _keep(self, effect: PendingEffect) -> bool:
        """Whether the effect is still there and still ours, now that its turn has come."""
        until_us = to_us(self._store.database.clock.now()) + LEASE_SECONDS * 1_000_000
        return await self._store.write(
            lambda connection: self._sql.keep(connection, effect, self._store.owner, until_us)
        )

    async def _release(self, effects: Sequence[PendingEffect]) -> None:
        if not effects:
            return
        try:
            await self._store.write(lambda connection: self._sql.release(connection, effects, self._store.owner))
        except Refusal as refusal:
            log.warning("release_failed", effects=len(effects), reason=refusal.reason)
        self._store.notify({EFFECTS})

    async def _deliver(self, effect: PendingEffect) -> bool:
        """Whether the effect is settled and the next of its entity may go."""
        set_log_context(effect)
        reach(CrashPoint.BEFORE_DELIVERY)
        try:
            async with asyncio.timeout(LEASE_SECONDS * 2 / 3):
                await self._handlers.deliver(effect)
        except Refusal as refusal:
            return await self._settle_refusal(effect, refusal)
        except TimeoutError:
            return await self._settle_refusal(effect, Refusal(Reason.DEADLINE_EXCEEDED, "timed out"))
        except Exception as error:  # noqa: BLE001 - a bug in a handler must not end the chain silently
            log.error("delivery_failed", effect=effect.effect_id, kind=effect.kind, error=repr(error))
            if effect.attempts >= self._policy.max_faults:
                await self._handlers.give_up(effect, _fault(error))
                self._count(effect, "refused")
                return True
            return await self._postpone(effect, type(error).__name__)
        self._count(effect, "done")
        reach(CrashPoint.AFTER_DELIVERY)
        return True

    def _count(self, effect: PendingEffect, result: str) -> None:
        metrics.deliveries.labels(self._store.database.schema, effect.kind, result).inc()

    async def _settle_refusal(self, effect: PendingEffect, refusal: Refusal) -> bool:
        age_us = to_us(self._store.database.clock.now()) - effect.created_at_us
        if refusal.code in TRANSIENT and age_us < self._policy.deadline_seconds * 1_000_000:
            return await self._postpone(effect, str(refusal.reason))
        log.warning("delivery_refused", effect=effect.effect_id, kind=effect.kind, reason=refusal.reason)
        await self._handlers.give_up(effect, refusal)
        self._count(effect, "refused")
        return True

    async def _postpone(self, effect: PendingEffect, error: str) -> bool:
        self._count(effect, "postponed")
        backoff_seconds = self._policy.first_backoff_seconds * 2 ** min(effect.attempts - 1, 20)
        wait_seconds = jitter(min(backoff_seconds, self._policy.max_backoff_seconds))
        due_at_us = to_us(self._store.database.clock.now()) + int(wait_seconds * 1_000_000)
        await self._store.write(lambda connection: self._sql.postpone(connection, effect, due_at_us, error))
        asyncio.get_running_loop().call_later(wait_seconds, self._store.notify, {EFFECTS})
        return False

    async def _claim(self) -> list[PendingEffect]:
        now_us = to_us(self._store.database.clock.now())
        if not await self._store.database.read(lambda connection: self._sql.any_due(connection, now_us)):
            return []
        return await self._store.write(lambda connection: self._sql.claim(connection, now_us, self._store.owner))


class _EffectStatements:
    """The outbox's queue: only the first undelivered effect of an entity can be claimed."""

    def __init__(self, store: Store) -> None:
        outbox = store.tables.outbox
        earlier = outbox.alias("earlier")
        is_first = (
            ~select(earlier.c.entity_id)
            .where(
                earlier.c.entity_id == outbox.c.entity_id,
                or_(
                    earlier.c.seq < outbox.c.seq,
                    and_(earlier.c.seq == outbox.c.seq, earlier.c.number < outbox.c.number),
                ),
            )
            .exists()
        )
        due = and_(outbox.c.due_at_us <= bindparam("now_us"), outbox.c.lease_until_us <= bindparam("now_us"), is_first)
        self._any = select(outbox.c.entity_id).where(due).limit(1)
        self._due = select(outbox).where(due).order_by(outbox.c.due_at_us).limit(CLAIM_LIMIT)
        if store.database.features.skip_locked:
            self._due = self._due.with_for_update(skip_locked=True, of=outbox)
        mine = and_(
            outbox.c.entity_id == bindparam("of_entity"),
            outbox.c.seq == bindparam("of_seq"),
            outbox.c.number == bindparam("of_number"),
        )
        self._lease = (
            outbox.update()
            .where(mine)
            .values(
                lease_owner=bindparam("lease_owner"),
                lease_until_us=bindparam("lease_until_us"),
                attempts=outbox.c.attempts + 1,
            )
        )
        self._postpone = (
            outbox.update()
            .where(mine)
            .values(
                lease_owner="", lease_until_us=0, due_at_us=bindparam("due_at_us"), last_error=bindparam("last_error")
            )
        )
        ours = and_(mine, outbox.c.lease_owner == bindparam("of_owner"))
        self._keep = outbox.update().where(ours).values(lease_until_us=bindparam("until_us"))
        self._release = outbox.update().where(ours).values(lease_owner="", lease_until_us=0)

    def any_due(self, connection: Connection, now_us: int) -> bool:
        """Whether there is anything to claim."""
        return connection.execute(self._any, {"now_us": now_us}).first() is not None

    def claim(self, connection: Connection, now_us: int, owner: str) -> list[PendingEffect]:
        """Lease what is due; the attempt counts before it is made."""
        rows = connection.execute(self._due, {"now_us": now_us}).mappings().all()
        until_us = now_us + LEASE_SECONDS * 1_000_000
        if rows:
            leases = [_mine(row) | {"lease_owner": owner, "lease_until_us": until_us} for row in rows]
            connection.execute(self._lease, leases)
        return [pending_effect({**row, "attempts": row["attempts"] + 1}) for row in rows]

    def postpone(self, connection: Connection, effect: PendingEffect, due_at_us: int, error: str) -> None:
        """Give the lease back until later, remembering what went wrong."""
        key = {"of_entity": effect.entity_id, "of_seq": effect.seq, "of_number": effect.number}
        connection.execute(self._postpone, {**key, "due_at_us": due_at_us, "last_error": error[:256]})

    def keep(self, connection: Connection, effect: PendingEffect, owner: str, until_us: int) -> bool:
        """Hold the lease longer, unless the effect was dropped or another replica has taken it."""
        key = {"of_entity": effect.entity_id, "of_seq": effect.seq, "of_number": effect.number, "of_owner": owner}
        return bool(connection.execute(self._keep, {**key, "until_us": until_us}).rowcount)

    def release(self, connection: Connection, effects: Sequence[PendingEffect], owner: str) -> None:
        """Give back the leases of effects that have to wait."""
        keys = [{"of_entity": e.entity_id, "of_seq": e.seq, "of_number": e.number, "of_owner": owner} for e in effects]
        connection.execute(self._release, keys)


def _mine(row: Any) -> dict[str, Any]:
    return {"of_entity": row["entity_id"], "of_seq": row["seq"], "of_number": row["number"]}


def _fault(error: Exception) -> Refusal:
    return Refusal(Reason.INTERNAL, f"delivery failed: {type(error).__name__}")
