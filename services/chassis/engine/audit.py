"""Proves what the chassis promises of a store: numbering, digests, fold, idempotency, outbox and timers."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, bindparam, func, literal, select

from pointsman.services.chassis.core.caller import ENGINE_REQUESTS
from pointsman.services.chassis.core.clock import from_us, to_us
from pointsman.services.chassis.core.codec import from_json, to_json
from pointsman.services.chassis.core.errors import Refusal
from pointsman.services.chassis.core.machine import Event, Machine
from pointsman.services.chassis.engine.deliveries import PendingEffect, pending_effect
from pointsman.services.chassis.engine.effects import DeliveryPolicy
from pointsman.services.chassis.engine.journal import Journal, Transition, broken_links
from pointsman.services.chassis.engine.ledger import Ledger
from pointsman.services.chassis.storage.store import Store

PAGE = 500
WHOLE_JOURNAL = 10_000_000


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that does not hold: which, where, and what was found."""

    invariant: str
    entity_id: str
    seq: int
    detail: str


@dataclass(frozen=True, slots=True)
class History:
    """One entity with everything that its store holds of it."""

    machine: Machine[Any]
    row: Any
    """Its row of the entities' table."""
    steps: list[Transition]
    events: list[Event]
    state: Any
    """What its journal folds to."""
    effects: tuple[PendingEffect, ...] = ()
    timers: frozenset[str] = frozenset()

    def walk(self) -> Iterator[tuple[Transition, Event, Any]]:
        """Its life once more: each step, with the state that it led to."""
        state: Any = None
        for step, event in zip(self.steps, self.events, strict=True):
            state = self.machine.apply(state, event, from_us(step.at_us))
            yield step, event, state

    def violation(self, invariant: str, seq: int, detail: str) -> Violation:
        """Something wrong with this entity."""
        return Violation(invariant, str(self.row.entity_id), seq, detail)


Proof = Callable[[Connection, History], Iterator[Violation]]
"""What a context promises of one kind of entity."""


@dataclass(slots=True)
class _Queues:
    """What waits in the store, by entity."""

    effects: dict[str, list[PendingEffect]] = field(default_factory=dict)
    timers: dict[str, set[str]] = field(default_factory=dict)


class _Statements:
    """What an audit reads of every store."""

    def __init__(self, store: Store) -> None:
        tables = store.tables
        entities, journal, known = tables.entities, tables.journal, select(tables.entities.c.entity_id)
        self.entities = (
            select(entities).where(entities.c.entity_id > bindparam("after")).order_by(entities.c.entity_id).limit(PAGE)
        )
        self.outbox = select(tables.outbox)
        self.timers = select(tables.timers.c.entity_id, tables.timers.c.name)
        self.orphans = {
            table.name: select(table.c.entity_id).where(table.c.entity_id.not_in(known)).distinct()
            for table in (journal, tables.outbox, tables.timers)
        }
        position = journal.c.position
        self.positions = select(func.count(), func.count(position.distinct()), func.max(position))
        self.head = select(tables.head.c.position)


def _body_of_today(connection: Connection, ledger: Ledger[Any], row: Any) -> str:
    """The stored body as this version writes it; nothing where it cannot be read."""
    try:
        return to_json(ledger.body_of(ledger.load(connection, row.project, row.entity_id)))
    except Refusal:
        return ""


class Auditor:
    """Reads one store; it never writes."""

    def __init__(self, store: Store, proofs: Mapping[str, Proof] | None = None) -> None:
        self._store = store
        self._proofs = proofs or {}
        self._ledgers: dict[str, Ledger[Any]] = {ledger.machine.kind: ledger for ledger in store.ledgers}
        self._journal = Journal(store)
        self._sql = _Statements(store)

    def violations(self, connection: Connection, only: str = "") -> Iterator[Violation]:
        """Everything that is wrong, with one entity or with all of them."""
        queues = self._queues(connection)
        for row in self._rows(connection):
            if not only or only in (row.entity_id, row.run_id):
                yield from self._entity(connection, row, queues)
        if not only:
            yield from self._leftovers(connection)

    def _rows(self, connection: Connection) -> Iterator[Any]:
        after = ""
        while rows := connection.execute(self._sql.entities, {"after": after}).all():
            yield from rows
            after = rows[-1].entity_id

    def _queues(self, connection: Connection) -> _Queues:
        queues = _Queues()
        for row in connection.execute(self._sql.outbox).mappings():
            queues.effects.setdefault(row["entity_id"], []).append(pending_effect(row))
        for entity_id, name in connection.execute(self._sql.timers):
            queues.timers.setdefault(entity_id, set()).add(name)
        return queues

    def _entity(self, connection: Connection, row: Any, queues: _Queues) -> Iterator[Violation]:
        steps = self._journal.rows(connection, row.entity_id, 0, WHOLE_JOURNAL)
        for seq in broken_links(steps):
            yield Violation(
                "journal-chain", row.entity_id, seq, "numbering or digest does not follow from the row before"
            )
        last = steps[-1] if steps else None
        if last is None or (last.seq, last.digest) != (row.version, row.digest):
            yield Violation("journal-head", row.entity_id, row.version, "the entity is not where its journal ends")
        yield from self._moves(row, steps)
        effects = tuple(queues.effects.get(row.entity_id, ()))
        yield from self._effects(connection, row, effects)
        history = self._history(row, steps, effects, frozenset(queues.timers.get(row.entity_id, ())))
        if isinstance(history, Violation):
            yield history
            return
        yield from self._fold(connection, history)
        if row.kind in self._proofs:
            yield from self._proofs[row.kind](connection, history)

    def _moves(self, row: Any, steps: list[Transition]) -> Iterator[Violation]:
        terminal = self._ledgers[row.kind].machine.terminal
        state = ""
        for step in steps:
            if step.source != state:
                yield Violation("one-state", row.entity_id, step.seq, f"left {step.source}, but was in {state}")
            if step.source in terminal and step.target != step.source:
                yield Violation(
                    "terminal", row.entity_id, step.seq, f"{step.source} is terminal, went to {step.target}"
                )
            state = step.target
        if state != row.status:
            yield Violation("one-state", row.entity_id, row.version, f"journal ends in {state}, entity is {row.status}")

    def _effects(self, connection: Connection, row: Any, effects: tuple[PendingEffect, ...]) -> Iterator[Violation]:
        """What waits was asked for by a transition, was not applied before, and is not overdue on an ended entity."""
        overdue_us = to_us(self._store.database.clock.now()) - int(DeliveryPolicy().deadline_seconds * 1_000_000)
        ended = row.status in self._ledgers[row.kind].machine.terminal
        for effect in effects:
            if effect.seq > row.version:
                yield Violation("outbox", row.entity_id, effect.seq, "an effect waits that no transition asked for")
            if ended and effect.created_at_us < overdue_us:
                yield Violation("outbox", row.entity_id, effect.seq, "an effect is overdue although its entity ended")
            if self._was_answered(connection, effect):
                yield Violation("outbox", row.entity_id, effect.seq, "an effect waits that was applied before")

    def _was_answered(self, connection: Connection, effect: PendingEffect) -> bool:
        answers = self._store.tables.idempotency
        known = (answers.c.request_id == ENGINE_REQUESTS + effect.effect_id) & (answers.c.project == effect.project)
        return connection.execute(select(literal(1)).where(known)).first() is not None

    def _history(
        self, row: Any, steps: list[Transition], effects: tuple[PendingEffect, ...], timers: frozenset[str]
    ) -> History | Violation:
        machine = self._ledgers[row.kind].machine
        events: list[Event] = []
        state: Any = None
        for step in steps:
            try:
                data = from_json(step.payload, machine.events[step.event])
                events.append(Event(step.event, step.source, step.target, data))
                state = machine.apply(state, events[-1], from_us(step.at_us))
            except (Refusal, KeyError, ValueError, AttributeError, AssertionError) as error:
                return Violation("fold", row.entity_id, step.seq, f"cannot be folded: {type(error).__name__}")
        return History(machine, row, steps, events, state, effects, timers)

    def _fold(self, connection: Connection, history: History) -> Iterator[Violation]:
        """The stored state is what the journal says, also where an earlier version wrote it without fields of today."""
        row, ledger = history.row, self._ledgers[history.row.kind]
        if history.state is None:
            return
        folded = to_json(ledger.body_of(history.state))
        if folded not in (row.body, _body_of_today(connection, ledger, row)):
            yield Violation("fold", row.entity_id, row.version, "the stored state is not the fold of the journal")

    def _leftovers(self, connection: Connection) -> Iterator[Violation]:
        for table, orphans in self._sql.orphans.items():
            for (entity_id,) in connection.execute(orphans):
                yield Violation("orphan", entity_id, 0, f"{table} has rows of an entity that is not there")
        positions = connection.execute(self._sql.positions).one()
        head = connection.execute(self._sql.head).scalar_one()
        if positions[0] != positions[1] or (positions[2] or 0) > head:
            yield Violation("position", "", 0, "positions are not unique, or lie beyond the head")
