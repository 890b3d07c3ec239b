"""Proves what the chassis promises of a store: numbering, digests, fold, idempotency, outbox and timers."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, func, select

from pointsman.services.chassis.clock import from_us
from pointsman.services.chassis.codec import from_text, to_text
from pointsman.services.chassis.journal import Journal, Transition, broken_links
from pointsman.services.chassis.ledger import Ledger
from pointsman.services.chassis.machine import Event
from pointsman.services.chassis.refusals import Refusal
from pointsman.services.chassis.store import Store

PAGE = 500
WHOLE_JOURNAL = 10_000_000


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that does not hold: which, where, and what was found."""

    invariant: str
    entity_id: str
    seq: int
    detail: str


class Auditor:
    """Reads one store; it never writes."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._ledgers: dict[str, Ledger[Any]] = {ledger.machine.kind: ledger for ledger in store.ledgers}
        self._journal = Journal(store)
        entities = store.tables.entities
        self._entities = (
            select(entities).where(entities.c.entity_id > bindparam("after")).order_by(entities.c.entity_id).limit(PAGE)
        )

    def violations(self, connection: Connection, only: str = "") -> Iterator[Violation]:
        """Everything that is wrong, with one entity or with all of them."""
        for row in self._rows(connection):
            if not only or only in (row.entity_id, row.run_id):
                yield from self._entity(connection, row)
        if not only:
            yield from self._leftovers(connection)

    def _rows(self, connection: Connection) -> Iterator[Any]:
        after = ""
        while rows := connection.execute(self._entities, {"after": after}).all():
            yield from rows
            after = rows[-1].entity_id

    def _entity(self, connection: Connection, row: Any) -> Iterator[Violation]:
        journal = self._journal.rows(connection, row.entity_id, 0, WHOLE_JOURNAL)
        for seq in broken_links(journal):
            yield Violation(
                "journal-chain", row.entity_id, seq, "numbering or digest does not follow from the row before"
            )
        last = journal[-1] if journal else None
        if last is None or (last.seq, last.digest) != (row.version, row.digest):
            yield Violation("journal-head", row.entity_id, row.version, "the entity is not where its journal ends")
        yield from self._moves(row, journal)
        yield from self._fold(row, journal)

    def _moves(self, row: Any, journal: list[Transition]) -> Iterator[Violation]:
        terminal = self._ledgers[row.kind].machine.terminal
        state = ""
        for step in journal:
            if step.source != state:
                yield Violation("one-state", row.entity_id, step.seq, f"left {step.source}, but was in {state}")
            if step.source in terminal and step.target != step.source:
                yield Violation(
                    "terminal", row.entity_id, step.seq, f"{step.source} is terminal, went to {step.target}"
                )
            state = step.target
        if state != row.status:
            yield Violation("one-state", row.entity_id, row.version, f"journal ends in {state}, entity is {row.status}")

    def _fold(self, row: Any, journal: list[Transition]) -> Iterator[Violation]:
        ledger = self._ledgers[row.kind]
        state: Any = None
        try:
            for step in journal:
                data = from_text(step.payload, ledger.machine.events[step.event])
                event = Event(step.event, step.source, step.target, data)
                state = ledger.machine.apply(state, event, from_us(step.at_us))
        except (Refusal, KeyError) as error:
            yield Violation("fold", row.entity_id, 0, f"cannot be folded: {type(error).__name__}")
            return
        if state is not None and to_text(ledger.body_of(state)) != row.body:
            yield Violation("fold", row.entity_id, row.version, "the stored state is not the fold of the journal")

    def _leftovers(self, connection: Connection) -> Iterator[Violation]:
        tables = self._store.tables
        known = select(tables.entities.c.entity_id)
        for table in (tables.journal, tables.outbox, tables.timers):
            orphans = select(table.c.entity_id).where(table.c.entity_id.not_in(known)).distinct()
            for (entity_id,) in connection.execute(orphans):
                yield Violation("orphan", entity_id, 0, f"{table.name} has rows of an entity that is not there")
        positions = connection.execute(
            select(func.count(), func.count(tables.journal.c.position.distinct()), func.max(tables.journal.c.position))
        ).one()
        head = connection.execute(select(tables.head.c.position)).scalar_one()
        if positions[0] != positions[1] or (positions[2] or 0) > head:
            yield Violation("position", "", 0, "positions are not unique, or lie beyond the head")
        yield from self._ended_with_work(connection)

    def _ended_with_work(self, connection: Connection) -> Iterator[Violation]:
        tables = self._store.tables
        for kind, ledger in self._ledgers.items():
            ended = (
                select(tables.outbox.c.entity_id, tables.outbox.c.seq)
                .join(tables.entities, tables.entities.c.entity_id == tables.outbox.c.entity_id)
                .where(tables.entities.c.kind == kind, tables.entities.c.status.in_(ledger.machine.terminal))
            )
            for entity_id, seq in connection.execute(ended):
                yield Violation("outbox", entity_id, seq, "an effect is pending although its entity has ended")
