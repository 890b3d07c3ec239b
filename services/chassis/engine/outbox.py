"""What has to happen outside the store: effects and timers, written in the transaction that decided them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, select

from pointsman.services.chassis.core.clock import to_us
from pointsman.services.chassis.core.codec import from_json, to_json
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.core.machine import Decision, Effect, SetTimer
from pointsman.services.chassis.storage.bulk import delete_rows, insert_rows, upsert_rows
from pointsman.services.chassis.storage.dialect import PreparedStatement, any_of, bind_list
from pointsman.services.chassis.storage.store import EFFECTS, TIMERS, Store
from pointsman.services.chassis.telemetry.context import transition_traceparent

if TYPE_CHECKING:
    from pointsman.services.chassis.engine.ledger import Change, Submission

LEASE_SECONDS = 30


@dataclass(frozen=True, slots=True)
class PendingEffect:
    """An effect on its way; its id stays the same however often it is delivered."""

    entity_id: str
    seq: int
    number: int
    kind: str
    payload: str
    project: str
    traceparent: str
    created_at_us: int
    attempts: int

    @property
    def effect_id(self) -> str:
        """The idempotency key of the delivery and of its acknowledgement."""
        return f"{self.entity_id}:{self.seq}:{self.number}"

    def data(self, expected: Any) -> Any:
        """The payload as the domain's value."""
        return from_json(self.payload, expected)


@dataclass(frozen=True, slots=True)
class FiredTimer:
    """A timer that has come due."""

    entity_id: str
    name: str
    seq: int
    payload: str
    project: str
    traceparent: str
    attempts: int

    @property
    def timer_id(self) -> str:
        """The idempotency key of the firing: a timer that was set again is another one."""
        return f"timer:{self.entity_id}:{self.name}:{self.seq}"

    def data(self, expected: Any) -> Any:
        """The payload as the domain's value."""
        return from_json(self.payload, expected)


Delivery = PendingEffect | FiredTimer


class OutboxWriter:
    """Collects what a batch's decisions ask for, and writes it with the batch."""

    def __init__(self, store: Store) -> None:
        self._store = store
        outbox, timers, database = store.tables.outbox, store.tables.timers, store.database
        of_entity = {"entity_id": "of_entity"}
        self._insert_effect = insert_rows(database, outbox)
        self._delete_effect = delete_rows(database, outbox, of_entity | {"seq": "of_seq", "number": "of_number"})
        self._delete_fired = delete_rows(database, timers, of_entity | {"name": "of_name", "seq": "of_seq"})
        self._delete_timer = delete_rows(database, timers, of_entity | {"name": "of_name"})
        self._drop_effects = delete_rows(database, outbox, of_entity)
        self._drop_timers = delete_rows(database, timers, of_entity)
        self._set_timer = upsert_rows(database, timers, ("entity_id", "name"))
        busy = select(outbox.c.entity_id).where(any_of(store.database, outbox.c.entity_id)).distinct()
        self._find_busy = PreparedStatement(store.database, busy)
        pending = select(timers.c.entity_id, timers.c.name, timers.c.seq)
        self._find_timers = PreparedStatement(database, pending.where(any_of(database, timers.c.entity_id)))
        self.begin()

    def begin(self) -> None:
        """Start a batch with nothing collected."""
        self._acknowledged: list[Delivery] = []
        self._dropped: dict[str, None] = {}
        self._effects: list[dict[str, Any]] = []
        self._timers: dict[tuple[str, str], dict[str, Any] | None] = {}
        self._leased: list[dict[str, Any]] = []
        self._pending: dict[tuple[str, str], int] = {}

    def load(self, connection: Connection, items: Sequence["Submission"]) -> None:
        """Read which timers are set, if the batch holds firings; their entities are locked by now."""
        fired = {item.acknowledges.entity_id for item in items if isinstance(item.acknowledges, FiredTimer)}
        if fired:
            found = self._find_timers.fetch(connection, {"values": bind_list(self._store.database, sorted(fired))})
            self._pending = {(entity_id, name): seq for entity_id, name, seq in found}

    def require_pending(self, item: "Submission") -> None:
        """Refuse the firing of a timer that was set again or cancelled since it was claimed."""
        timer = item.acknowledges
        if isinstance(timer, FiredTimer) and self._pending.get((timer.entity_id, timer.name)) != timer.seq:
            raise Refusal(Reason.LOST_RACE, "the timer was set again or cancelled", metadata={"id": timer.entity_id})

    def collect(self, now_us: int, change: "Change[Any]", decision: Decision, item: "Submission") -> None:
        """Take what one decision asks for; later decisions of the batch win over earlier ones."""
        self.acknowledge(item)
        if decision.drop_effects:
            self._drop(change.entity_id)
        if not (decision.effects or decision.timers):
            return
        if not decision.events:
            raise ValueError("effects and timers need an event: their ids come from its seq")
        self._effects += [_effect_row(now_us, change, number, effect) for number, effect in enumerate(decision.effects)]
        for timer in decision.timers:
            row = _timer_row(change, timer) if isinstance(timer, SetTimer) else None
            self._timers[change.entity_id, timer.name] = row
            self._pending[change.entity_id, timer.name] = change.version if row else 0

    def acknowledge(self, item: "Submission") -> None:
        """Take what a command has settled, also when it was answered before."""
        if item.acknowledges is not None:
            self._acknowledged.append(item.acknowledges)

    def _drop(self, entity_id: str) -> None:
        self._dropped[entity_id] = None
        self._effects = [row for row in self._effects if row["entity_id"] != entity_id]
        self._timers = {key: row for key, row in self._timers.items() if key[0] != entity_id}
        self._pending = {key: seq for key, seq in self._pending.items() if key[0] != entity_id}

    def write(self, connection: Connection) -> None:
        """Delete what was acknowledged or dropped, then write what is new."""
        self._write_deletions(connection)
        if self._effects:
            if self._store.delivers_effects:
                self._lease_first_tries(connection)
            self._insert_effect.run(connection, self._effects)
        forgotten = [{"of_entity": key[0], "of_name": key[1]} for key, row in self._timers.items() if row is None]
        if forgotten:
            self._delete_timer.run(connection, forgotten)
        kept = [row for row in self._timers.values() if row is not None]
        if kept:
            self._set_timer.run(connection, kept)

    def _write_deletions(self, connection: Connection) -> None:
        effects = [effect for effect in self._acknowledged if isinstance(effect, PendingEffect)]
        timers = [timer for timer in self._acknowledged if isinstance(timer, FiredTimer)]
        if effects:
            keys = [{"of_entity": e.entity_id, "of_seq": e.seq, "of_number": e.number} for e in effects]
            self._delete_effect.run(connection, keys)
        if timers:
            fired = [{"of_entity": t.entity_id, "of_name": t.name, "of_seq": t.seq} for t in timers]
            self._delete_fired.run(connection, fired)
        if self._dropped:
            entities = [{"of_entity": entity_id} for entity_id in self._dropped]
            self._drop_effects.run(connection, entities)
            self._drop_timers.run(connection, entities)

    def _lease_first_tries(self, connection: Connection) -> None:
        """This process delivers at once what is first in its entity's line; the rest waits for its turn."""
        entity_ids = sorted({row["entity_id"] for row in self._effects})
        found = self._find_busy.fetch(connection, {"values": bind_list(self._store.database, entity_ids)})
        busy = {entity_id for (entity_id,) in found}
        for row in self._effects:
            if row["entity_id"] not in busy:
                row["attempts"] = 1
                row["lease_owner"] = self._store.owner
                row["lease_until_us"] = row["created_at_us"] + LEASE_SECONDS * 1_000_000
                self._leased.append(row)

    def committed(self) -> None:
        """Start the first deliveries, and tell the loops that there is more to do."""
        first_tries = [pending_effect(row) for row in self._leased]
        news = {EFFECTS} if self._effects or self._acknowledged else set()
        if any(row["due_at_us"] < self._store.next_look_us for row in self._timers.values() if row is not None):
            news.add(TIMERS)
        self.begin()
        if first_tries:
            self._store.dispatch_first_attempts(first_tries)
        if news:
            self._store.notify(news)


def pending_effect(row: Any) -> PendingEffect:
    """A row of the outbox as the effect it holds."""
    return PendingEffect(*(row[name] for name in PendingEffect.__slots__))


def fired_timer(row: Any) -> FiredTimer:
    """A row of the timers as the timer it holds."""
    return FiredTimer(*(row[name] for name in FiredTimer.__slots__))


def _step(change: "Change[Any]") -> str:
    """The trace context of the transition that asked for it: what it leads to hangs below."""
    return transition_traceparent(change.trace, change.entity_id, change.version)


def _effect_row(now_us: int, change: "Change[Any]", number: int, effect: Effect) -> dict[str, Any]:
    return {
        "entity_id": change.entity_id, "seq": change.version, "number": number, "kind": effect.kind,
        "payload": to_json(effect.data), "project": change.project, "traceparent": _step(change),
        "created_at_us": now_us, "attempts": 0, "due_at_us": now_us, "lease_owner": "", "lease_until_us": 0,
        "last_error": "",
    }  # fmt: skip


def _timer_row(change: "Change[Any]", timer: SetTimer) -> dict[str, Any]:
    return {
        "entity_id": change.entity_id, "name": timer.name, "seq": change.version, "payload": to_json(timer.data),
        "project": change.project, "traceparent": _step(change), "attempts": 0,
        "due_at_us": to_us(timer.due_at), "lease_until_us": 0,
    }  # fmt: skip
