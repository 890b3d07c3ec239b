"""The outbox: effects and timers, written in the transaction that decided them."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, select

from pointsman.services.chassis.core.clock import to_us
from pointsman.services.chassis.core.codec import to_json
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.core.machine import Decision, Effect, SetTimer
from pointsman.services.chassis.engine.changes import Change, Submission
from pointsman.services.chassis.engine.deliveries import (
    LEASE_SECONDS,
    Delivery,
    FiredTimer,
    PendingEffect,
    pending_effect,
)
from pointsman.services.chassis.storage.bulk import delete_rows, insert_rows, upsert_rows
from pointsman.services.chassis.storage.dialect import PreparedStatement, any_of, bind_list
from pointsman.services.chassis.storage.store import EFFECTS, TIMERS, Store
from pointsman.services.chassis.telemetry.context import transition_traceparent


class OutboxStatements:
    """The statements that write effects and timers, built once per ledger."""

    def __init__(self, store: Store) -> None:
        outbox, timers, database = store.tables.outbox, store.tables.timers, store.database
        of_entity = {"entity_id": "of_entity"}
        self.insert_effects = insert_rows(database, outbox)
        self.delete_effects = delete_rows(database, outbox, of_entity | {"seq": "of_seq", "number": "of_number"})
        self.delete_fired = delete_rows(database, timers, of_entity | {"name": "of_name", "seq": "of_seq"})
        self.delete_timers = delete_rows(database, timers, of_entity | {"name": "of_name"})
        self.drop_effects = delete_rows(database, outbox, of_entity)
        self.drop_timers = delete_rows(database, timers, of_entity)
        self.set_timers = upsert_rows(database, timers, ("entity_id", "name"))
        busy = select(outbox.c.entity_id).where(any_of(database, outbox.c.entity_id)).distinct()
        self.find_busy = PreparedStatement(database, busy)
        pending = select(timers.c.entity_id, timers.c.name, timers.c.seq)
        self.find_timers = PreparedStatement(database, pending.where(any_of(database, timers.c.entity_id)))


class OutboxBatch:
    """The effects and timers of one transaction; used by the writing thread only."""

    def __init__(self, store: Store, statements: OutboxStatements) -> None:
        self._store = store
        self._sql = statements
        self._acknowledged: list[Delivery] = []
        self._dropped: dict[str, None] = {}
        self._effects: list[dict[str, Any]] = []
        self._timers: dict[tuple[str, str], dict[str, Any] | None] = {}
        """The last word of the batch on each timer: its row, or None where it is cancelled."""
        self._leased: list[dict[str, Any]] = []
        self._pending: dict[tuple[str, str], int] = {}
        """The seq under which each timer is set."""

    def load(self, connection: Connection, items: Sequence[Submission]) -> None:
        """Read which timers are set, if the batch holds firings; their entities are locked by now."""
        fired = {item.acknowledges.entity_id for item in items if isinstance(item.acknowledges, FiredTimer)}
        if fired:
            found = self._sql.find_timers.fetch(connection, {"values": bind_list(self._store.database, sorted(fired))})
            self._pending = {(entity_id, name): seq for entity_id, name, seq in found}

    def require_pending(self, item: Submission) -> None:
        """Refuse the firing of a timer that was set again or cancelled since it was claimed."""
        timer = item.acknowledges
        if isinstance(timer, FiredTimer) and self._pending.get((timer.entity_id, timer.name)) != timer.seq:
            raise Refusal(Reason.LOST_RACE, "the timer was set again or cancelled", metadata={"id": timer.entity_id})

    def collect(self, now_us: int, change: Change[Any], decision: Decision, item: Submission) -> None:
        """Add the effects and timers of a decision; later decisions of the batch win over earlier ones."""
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

    def acknowledge(self, item: Submission) -> None:
        """Delete the delivery that a command acknowledges, also where the command was answered before."""
        if item.acknowledges is not None:
            self._acknowledged.append(item.acknowledges)

    def _drop(self, entity_id: str) -> None:
        self._dropped[entity_id] = None
        self._effects = [row for row in self._effects if row["entity_id"] != entity_id]
        self._timers = {key: row for key, row in self._timers.items() if key[0] != entity_id}
        self._pending = {key: seq for key, seq in self._pending.items() if key[0] != entity_id}

    def write(self, connection: Connection) -> None:
        """Delete what was acknowledged, dropped or cancelled, then write what is new."""
        self._write_deletions(connection)
        if self._effects:
            if self._store.delivers_effects:
                self._lease_first_attempts(connection)
            self._sql.insert_effects.run(connection, self._effects)
        cancelled = [{"of_entity": key[0], "of_name": key[1]} for key, row in self._timers.items() if row is None]
        if cancelled:
            self._sql.delete_timers.run(connection, cancelled)
        rows = [row for row in self._timers.values() if row is not None]
        if rows:
            self._sql.set_timers.run(connection, rows)

    def _write_deletions(self, connection: Connection) -> None:
        effects = [effect for effect in self._acknowledged if isinstance(effect, PendingEffect)]
        timers = [timer for timer in self._acknowledged if isinstance(timer, FiredTimer)]
        if effects:
            keys = [{"of_entity": e.entity_id, "of_seq": e.seq, "of_number": e.number} for e in effects]
            self._sql.delete_effects.run(connection, keys)
        if timers:
            fired = [{"of_entity": t.entity_id, "of_name": t.name, "of_seq": t.seq} for t in timers]
            self._sql.delete_fired.run(connection, fired)
        if self._dropped:
            entities = [{"of_entity": entity_id} for entity_id in self._dropped]
            self._sql.drop_effects.run(connection, entities)
            self._sql.drop_timers.run(connection, entities)

    def _lease_first_attempts(self, connection: Connection) -> None:
        """Lease what is first in its entity's line to this process, which delivers it right after the commit."""
        entity_ids = sorted({row["entity_id"] for row in self._effects})
        found = self._sql.find_busy.fetch(connection, {"values": bind_list(self._store.database, entity_ids)})
        busy = {entity_id for (entity_id,) in found}
        for row in self._effects:
            if row["entity_id"] not in busy:
                row["attempts"] = 1
                row["lease_owner"] = self._store.owner
                row["lease_until_us"] = row["created_at_us"] + LEASE_SECONDS * 1_000_000
                self._leased.append(row)

    def after_commit(self) -> None:
        """Dispatch the leased effects, and wake the loops that deliver effects and fire timers."""
        wake = {EFFECTS} if self._effects or self._acknowledged else set()
        if any(row["due_at_us"] < self._store.next_timer_poll_us for row in self._timers.values() if row is not None):
            wake.add(TIMERS)
        if self._leased:
            self._store.dispatch_first_attempts([pending_effect(row) for row in self._leased])
        if wake:
            self._store.notify(wake)


def _context_of(change: Change[Any]) -> str:
    """The trace context of the transition that asked for it: the spans that it leads to are its children."""
    return transition_traceparent(change.trace, change.entity_id, change.version)


def _effect_row(now_us: int, change: Change[Any], number: int, effect: Effect) -> dict[str, Any]:
    return {
        "entity_id": change.entity_id, "seq": change.version, "number": number, "kind": effect.kind,
        "payload": to_json(effect.data), "project": change.project, "traceparent": _context_of(change),
        "created_at_us": now_us, "attempts": 0, "due_at_us": now_us, "lease_owner": "", "lease_until_us": 0,
        "last_error": "",
    }  # fmt: skip


def _timer_row(change: Change[Any], timer: SetTimer) -> dict[str, Any]:
    return {
        "entity_id": change.entity_id, "name": timer.name, "seq": change.version, "payload": to_json(timer.data),
        "project": change.project, "traceparent": _context_of(change), "attempts": 0,
        "due_at_us": to_us(timer.due_at), "lease_until_us": 0,
    }  # fmt: skip
