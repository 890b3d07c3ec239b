"""The one way to change state: load, decide, and write journal, state, outbox and answer in one transaction."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import itemgetter
from typing import Any, Generic, Protocol, TypeVar

from sqlalchemy import Connection, bindparam, select

from pointsman.services.chassis.core.caller import Caller
from pointsman.services.chassis.core.clock import to_us
from pointsman.services.chassis.core.codec import DIGEST_COLUMNS, chained_digest, from_json, to_json
from pointsman.services.chassis.core.crash import CrashPoint, reach
from pointsman.services.chassis.core.errors import Reason, Refusal, not_found
from pointsman.services.chassis.core.machine import Command, Decision, Event, Machine
from pointsman.services.chassis.engine.joint import answers_to, joined, parties
from pointsman.services.chassis.engine.outbox import Delivery, OutboxWriter
from pointsman.services.chassis.engine.state_cache import StateCache
from pointsman.services.chassis.storage.dialect import bind_list, pipeline
from pointsman.services.chassis.storage.statements import (
    EntityRow,
    Statements,
    entity_columns,
    find_answers,
    find_entities,
)
from pointsman.services.chassis.storage.store import Store
from pointsman.services.chassis.storage.writer import LostRaceError
from pointsman.services.chassis.telemetry import metrics
from pointsman.services.chassis.telemetry.call_records import Commit
from pointsman.services.chassis.telemetry.context import current_transition, new_traceparent
from pointsman.services.chassis.telemetry.recording import call_recorder

State = TypeVar("State")
AttachChildren = Callable[[Mapping[str, State]], None]
"""Adds child rows to states, which are known only after the rows were asked for."""
_digest_values = itemgetter(*DIGEST_COLUMNS)


@dataclass(slots=True)
class Submission:
    """A command on its way to its entity, with who sent it and what it acknowledges."""

    command: Command
    caller: Caller
    acknowledges: Delivery | None = None
    step: tuple[str, str, int] | None = None
    """The transition it led to, where spans are exported: its trace, its entity, its seq."""


@dataclass(slots=True)
class Change(Generic[State]):
    """An entity in the memory of one batch: as it was loaded, and as the batch's commands have made it."""

    entity_id: str
    project: str
    state: State | None
    version: int
    digest: str
    loaded_version: int
    traceparent: str
    """The trace of its run, else its own."""
    created_at_us: int
    entered_at_us: int
    """When it came into the state it is in."""
    at: datetime
    joined_run: bool = False
    """Whether this batch has given it a run, or another one."""
    is_carried: bool = False
    """Whether the last decision has carried the state, which is nobody else's then and does not change any more."""
    rows: list[dict[str, Any]] = field(default_factory=list)
    events: list[Any] = field(default_factory=list)
    """The events of this batch, in order: what the children have to follow."""
    trace: str = ""
    """The trace of its last transition: what never ends has no trace to itself and is found in its caller's."""
    step: tuple[str, str, int] | None = None
    """Its last transition, where spans are exported."""

    @property
    def is_new(self) -> bool:
        """Whether this batch creates the entity."""
        return self.loaded_version == 0


class Children(Protocol[State]):
    """The rows of an entity beyond its body: loaded by slice, saved by what changed."""

    body_type: type

    def body(self, state: State) -> Any:
        """The part of the state that is kept in the entity's row."""

    def state(self, body: Any) -> State:
        """A state with that body and no children loaded yet."""

    def load(self, connection: Connection, commands: Mapping[str, Sequence[Any]]) -> "AttachChildren[State] | None":
        """Ask for the child rows that the commands need, `pipeline` with their entities; what shows them to the states."""

    def save(self, connection: Connection, changes: Sequence[Change[State]]) -> None:
        """Write the child rows of what changed, one statement per table; `pipeline` with the rest of the batch."""


class Premise(Protocol[State]):
    """What a batch's commands have to know about other entities, read in their own transaction."""

    def complete(self, command: Any, changes: Mapping[str, Change[State]]) -> Any:
        """The command with what is true at its turn, after the commands of the batch that were decided before it."""

    def confirm(self, connection: Connection) -> Callable[[], bool]:
        """Read it again behind the lock of the journal's head, `pipeline`; whether what was decided still stands."""


Premises = Callable[[Connection, Sequence[Any]], Premise[State] | None]
"""Asks for what commands have to know, `pipeline` with their entities; nothing where none of them has to."""


class Ledger(Generic[State]):
    """Commands of one kind of entity, decided by its machine and committed by the store's writer."""

    def __init__(
        self,
        store: Store,
        machine: Machine[State],
        children: Children[State] | None = None,
        measure: Callable[[Event], None] | None = None,
        premises: Premises[State] | None = None,
    ) -> None:
        self.store = store
        self.machine = machine
        self._measure = measure
        self._premises = premises
        store.ledgers.append(self)
        self._children = children
        self._body_type: Any = children.body_type if children else machine.state_type
        self._outbox = OutboxWriter(store)
        self._find_answers = find_answers(store)
        self._find_entities = find_entities(store)
        entities = store.tables.entities
        self._find_one = select(*entity_columns(store)).where(entities.c.entity_id == bindparam("entity_id"))
        self._statements = Statements(store)
        self._batch: _Batch[State] | None = None
        self._state_cache: StateCache[State] = StateCache()

    async def submit(self, caller: Caller, command: Command, acknowledges: Delivery | None = None) -> Any:
        """Decide the command and commit what it leads to; the answer, the first one if it was asked before."""
        item = Submission(command, caller, acknowledges)
        answer = await self.store.writer.write(self, item)
        if item.step is not None:
            current_transition.set(item.step)
        return answer

    def load(self, connection: Connection, project: str, entity_id: str) -> State:
        """The state's body for reading, or not found."""
        row = EntityRow._make(connection.execute(self._find_one, {"entity_id": entity_id}).first() or _NO_ROW)
        if row.kind != self.machine.kind or row.project != project:
            raise not_found(self.machine.kind, entity_id)
        return self._load_state(row)

    def body_of(self, state: State) -> Any:
        """The part of the state that is kept in the entity's row."""
        return self._children.body(state) if self._children else state

    def execute(self, connection: Connection, items: Sequence[Submission]) -> Sequence[Any]:
        """Decide a batch in memory, one party of commands after the other, and write it with one statement per table."""
        batch = _Batch[State](self.store.database.clock.now())
        self._batch = batch
        self._outbox.begin()
        answered = self._load(connection, batch, items)
        reach(CrashPoint.BATCH_LOADED)
        outcomes = self._outcomes(batch, answered, items)
        reach(CrashPoint.BATCH_DECIDED)
        self._write(connection, batch)
        return outcomes

    def committed(self, items: Sequence[Submission], outcomes: Sequence[Any]) -> None:  # noqa: ARG002 - the outcomes
        """Wake watchers and loops, and hand the new effects over for their first delivery."""
        batch, self._batch = self._batch, None
        if batch is not None and batch.journal_rows:
            self.store.notify({change.entity_id for change in batch.changes.values() if change.rows})
            metrics.count_transitions(self.store.database.schema, batch.journal_rows)
            metrics.observe_dwells(self.store.database.schema, self.machine.kind, batch.dwells)
            self._observe(batch, len(items))
        self._outbox.committed()

    def _observe(self, batch: "_Batch[State]", commands: int) -> None:
        """Let the context count what its events mean, remember where they led, and note the commit's span."""
        moved = [change for change in batch.changes.values() if change.rows]
        for change in moved:
            if change.is_carried and change.state is not None:
                self._state_cache.put(change.entity_id, change.digest, change.state)
        if self._measure is not None:
            for change in moved:
                for event in change.events:
                    self._measure(event)
        if call_recorder.has_room():
            database = self.store.database
            system, end_us = "postgresql" if database.is_postgresql else "sqlite", to_us(database.clock.now())
            commit = Commit(database.schema, system, commands, len(batch.journal_rows), batch.now_us, end_us)
            call_recorder.committed(commit, [one.step for one in moved if one.step is not None])

    def _load(self, connection: Connection, batch: "_Batch[State]", items: Sequence[Submission]) -> "_Answered":
        """The batch's entities into memory; which of its requests were answered before, and how."""
        database = self.store.database
        commands: dict[str, list[Any]] = {}
        for item in items:
            commands.setdefault(item.command.entity_id, []).append(item.command)
        with pipeline(database, connection):
            keys = bind_list(database, [item.caller.request_id for item in items])
            answers = self._find_answers.start(connection, {"values": keys})
            found = self._find_entities.start(connection, {"values": bind_list(database, sorted(commands))})
            show = self._children.load(connection, commands) if self._children else None
            if self._premises is not None:
                batch.premise = self._premises(connection, [item.command for item in items])
        answered = {(row[0], row[1]): (row[2], row[3]) for row in answers.fetchall()}
        for row in map(EntityRow._make, found.fetchall()):
            batch.changes[row.entity_id] = self._loaded_change(row, batch.now)
        self._outbox.load(connection, items)
        if show is not None:
            show({key: change.state for key, change in batch.changes.items() if change.state is not None})
        return answered

    def _loaded_change(self, row: "EntityRow", now: datetime) -> Change[State]:
        state = self._state_cache.get(row.entity_id, row.digest)
        if state is None and row.kind == self.machine.kind:
            state = self._load_state(row)
        return Change(
            row.entity_id, row.project, state, row.version, row.digest, row.version, row.traceparent, row.created_at_us,
            row.entered_at_us, now,
        )  # fmt: skip

    def _load_state(self, row: "EntityRow") -> State:
        if row.machine_version > self.machine.version:
            raise Refusal(
                Reason.UNKNOWN_VERSION,
                f"{row.kind} '{row.entity_id}' was written by a newer version; upgrade this server",
                metadata={"kind": row.kind, "version": str(row.machine_version)},
            )
        body = from_json(row.body, self._body_type)
        return self._children.state(body) if self._children else body

    def _outcomes(self, batch: "_Batch[State]", answered: "_Answered", items: Sequence[Submission]) -> list[Any]:
        """The answer to each, or its refusal."""
        outcomes: dict[int, Any] = {}
        for party in parties(self.machine.joint, items):
            new: list[Submission] = []
            for item in party:
                told = self._previous_answer(batch, answered, item)
                if told is _NOT_ANSWERED:
                    new.append(item)
                else:
                    outcomes[id(item)] = told
            try:
                outcomes.update(zip(map(id, new), self._decide(batch, new) if new else (), strict=True))
            except Refusal as refusal:
                outcomes.update(dict.fromkeys(map(id, new), refusal))
        return [outcomes[id(item)] for item in items]

    def _previous_answer(self, batch: "_Batch[State]", answered: "_Answered", item: Submission) -> Any:
        """What was answered when it was asked before, or that something else was asked then."""
        key = _key(item)
        if key in answered:
            fingerprint, text = answered[key]
            if fingerprint != item.caller.fingerprint:
                return _reused(item)
            self._outbox.acknowledge(item)
            return from_json(text, self.machine.answers[type(item.command)])
        if key in batch.answers:
            fingerprint, answer = batch.answers[key]
            return answer if fingerprint == item.caller.fingerprint else _reused(item)
        return _NOT_ANSWERED

    def _decide(self, batch: "_Batch[State]", party: Sequence[Submission]) -> Sequence[Any]:
        """The answer to each of those that are decided as one; most parties are of one."""
        lead = party[0]
        entity_id, caller = lead.command.entity_id, lead.caller
        change = batch.changes.get(entity_id)
        if change is None:
            trace = caller.traceparent or new_traceparent(entity_id, batch.now_us)
            times = (batch.now_us, batch.now_us, batch.now)
            change = Change(entity_id, caller.project, None, 0, "", 0, trace, *times)
        elif change.project != caller.project or (change.state is None and change.version > 0):
            raise not_found(self.machine.kind, entity_id)
        self._outbox.require_pending(lead)
        command = joined(self.machine.joint, party)
        if batch.premise is not None:
            command = batch.premise.complete(command, batch.changes)
        decision = self.machine.decide(change.state, command, batch.now)
        batch.changes[entity_id] = change
        self._apply(batch, change, [item.caller for item in party], decision)
        if call_recorder.is_on and decision.events:
            change.step = (change.trace, entity_id, change.version)
        answers = answers_to(self.machine.joint, party, decision.answer)
        for item, answer in zip(party, answers, strict=True):
            item.step = change.step if decision.events else None
            batch.answers[_key(item)] = (item.caller.fingerprint, answer)
            batch.answer_rows.append(_answer_row(item, answer, batch.now_us))
        self._outbox.collect(batch.now_us, change, decision, lead)
        return answers

    def _apply(
        self, batch: "_Batch[State]", change: Change[State], callers: Sequence[Caller], decision: Decision
    ) -> None:
        at_us, folded = batch.now_us, decision.state
        change.is_carried = folded is not None
        for event in decision.events:
            caller = callers[event.part] if len(callers) > 1 else callers[0]
            owner = self.machine.run_id(change.state) if change.state is not None else ""
            change.state = self.machine.apply(change.state, event, batch.now) if folded is None else folded
            change.version += 1
            if event.source != event.target:
                batch.dwells.append((event.source, at_us - change.entered_at_us))
                change.entered_at_us = at_us
            payload = to_json(event.data)
            run_id = self.machine.run_id(change.state)
            if run_id != owner:
                change.joined_run = True
                change.traceparent = caller.traceparent or change.traceparent
            row = {
                "entity_id": change.entity_id, "seq": change.version, "kind": self.machine.kind,
                "project": change.project, "run_id": run_id, "machine_version": self.machine.version, "at_us": at_us,
                "event": event.name, "source": event.source, "target": event.target, "payload": payload,
                "actor": caller.principal, "traceparent": caller.traceparent,
            }  # fmt: skip
            row["digest"] = change.digest = chained_digest(change.digest, _digest_values(row))
            change.rows.append(row)
            change.events.append(event)
            batch.journal_rows.append(row)
        change.trace = change.traceparent if self.machine.terminal else callers[-1].traceparent or change.traceparent

    def _write(self, connection: Connection, batch: "_Batch[State]") -> None:
        changed = [change for change in batch.changes.values() if change.rows]
        rows = [self._entity_row(change, batch.now_us) for change in changed]
        checks: list[Callable[[], bool]] = []
        with pipeline(self.store.database, connection):
            if self._children and changed:
                self._children.save(connection, changed)
            reach(CrashPoint.CHILDREN_WRITTEN)
            if batch.journal_rows:
                self._statements.write_journal(connection, batch.journal_rows, list(batch.changes))
                reach(CrashPoint.JOURNAL_WRITTEN)
                if batch.premise is not None:
                    checks.append(batch.premise.confirm(connection))
            checks.append(self._statements.write_entities(connection, rows))
            reach(CrashPoint.ENTITIES_WRITTEN)
            self._outbox.write(connection)
            reach(CrashPoint.OUTBOX_WRITTEN)
            if batch.answer_rows:
                self._statements.insert_answer.run(connection, batch.answer_rows)
            reach(CrashPoint.ANSWERS_WRITTEN)
        if not all(holds() for holds in checks):
            raise LostRaceError

    def _entity_row(self, change: Change[State], now_us: int) -> dict[str, Any]:
        state = change.state
        assert state is not None
        return {
            "entity_id": change.entity_id, "of_version": change.loaded_version, "kind": self.machine.kind,
            "project": change.project, "run_id": self.machine.run_id(state), "machine_version": self.machine.version,
            "joined_run": change.joined_run, "version": change.version, "status": self.machine.status(state), "digest": change.digest,
            "traceparent": change.traceparent, "created_at_us": change.created_at_us,
            "entered_at_us": change.entered_at_us, "updated_at_us": now_us, "body": to_json(self.body_of(state)),
        }  # fmt: skip


_NOT_ANSWERED = object()
"""Stands for the answer to what was not asked before: any other value may be one."""
_NO_ROW = ("", "", "", 0, 0, "", "", 0, 0, "")
_Answered = dict[tuple[str, str], tuple[str, str]]


class _Batch(Generic[State]):
    """What one transaction has loaded and is about to write."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self.now_us = to_us(now)
        self.changes: dict[str, Change[State]] = {}
        self.premise: Premise[State] | None = None
        self.journal_rows: list[dict[str, Any]] = []
        self.answer_rows: list[dict[str, Any]] = []
        self.dwells: list[tuple[str, int]] = []
        self.answers: dict[tuple[str, str], tuple[str, Any]] = {}


def _key(item: Submission) -> tuple[str, str]:
    return item.caller.project, item.caller.request_id


def _reused(item: Submission) -> Refusal:
    return Refusal(
        Reason.REQUEST_ID_REUSED,
        "this request_id was used with another body; use a new one",
        metadata={"request_id": item.caller.request_id},
    )


def _answer_row(item: Submission, answer: Any, at_us: int) -> dict[str, Any]:
    return {
        "project": item.caller.project, "request_id": item.caller.request_id, "fingerprint": item.caller.fingerprint,
        "entity_id": item.command.entity_id, "command": type(item.command).__name__, "answer": to_json(answer),
        "at_us": at_us,
    }  # fmt: skip
