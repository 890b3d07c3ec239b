"""One transaction of a ledger: load the entities, decide each command in memory, write, and what follows the commit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import itemgetter
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection

from pointsman.services.chassis.core.caller import Caller
from pointsman.services.chassis.core.clock import to_us
from pointsman.services.chassis.core.codec import DIGEST_COLUMNS, chained_digest, from_json, to_json
from pointsman.services.chassis.core.crash import CrashPoint, reach
from pointsman.services.chassis.core.errors import Reason, Refusal, not_found
from pointsman.services.chassis.core.machine import Decision, Event, Machine
from pointsman.services.chassis.engine.changes import AnswerKey, Change, Children, Premise, Premises, Submission
from pointsman.services.chassis.engine.outbox import OutboxBatch, OutboxStatements
from pointsman.services.chassis.engine.request_quota import RequestQuota
from pointsman.services.chassis.engine.state_cache import StateCache
from pointsman.services.chassis.storage.dialect import bind_list, pipeline
from pointsman.services.chassis.storage.statements import EntityRow, Statements, find_answers, find_entities
from pointsman.services.chassis.storage.store import Store
from pointsman.services.chassis.storage.writer import LostRaceError
from pointsman.services.chassis.telemetry import metrics
from pointsman.services.chassis.telemetry.context import new_traceparent
from pointsman.services.chassis.telemetry.recording import Commit, call_recorder

State = TypeVar("State")
_digest_values = itemgetter(*DIGEST_COLUMNS)
_NOT_ANSWERED = object()
"""Marks a request that has no answer yet: every other value, None included, may be an answer."""


class StoreParts:
    """What the batches of all ledgers of a store share; all of it is used by the writing thread only."""

    def __init__(self, store: Store) -> None:
        self.statements = Statements(store)
        self.outbox = OutboxStatements(store)
        self.requests = RequestQuota(store)
        self.find_answers = find_answers(store)
        self.find_entities = find_entities(store)


@dataclass(slots=True)
class Parts(Generic[State]):
    """What the batches of a ledger share; all of it is used by the writing thread only."""

    store: Store
    shared: StoreParts
    machine: Machine[State]
    children: Children[State] | None = None
    measure: Callable[[Event], None] | None = None
    premises: Premises[State] | None = None
    cache: StateCache[State] = field(default_factory=StateCache)

    def state_of(self, row: EntityRow) -> State:
        """The state in an entity's row, without its children."""
        if row.machine_version > self.machine.version:
            raise Refusal(
                Reason.UNKNOWN_VERSION,
                f"{row.kind} '{row.entity_id}' was written by a newer version; upgrade this server",
                metadata={"kind": row.kind, "version": str(row.machine_version)},
            )
        body = from_json(row.body, self.children.body_type if self.children else self.machine.state_type)
        return self.children.state(body) if self.children else body

    def body_of(self, state: State) -> Any:
        """The part of the state that is stored in the entity's row."""
        return self.children.body(state) if self.children else state


class Batch(Generic[State]):
    """The commands of one transaction and everything that belongs to it; dropped whole if the transaction fails."""

    def __init__(self, parts: Parts[State], items: Sequence[Submission], now: datetime) -> None:
        self._parts = parts
        self._items = items
        self._now = now
        self._now_us = to_us(now)
        self._outbox = OutboxBatch(parts.store, parts.shared.outbox)
        self._changes: dict[str, Change[State]] = {}
        self._premise: Premise[State] | None = None
        self._stored_answers: dict[AnswerKey, tuple[str, str]] = {}
        """Fingerprint and answer of the requests that were answered by an earlier transaction."""
        self._answers: dict[AnswerKey, tuple[str, Any]] = {}
        self._answer_rows: list[dict[str, Any]] = []
        self._journal_rows: list[dict[str, Any]] = []
        self._dwells: list[tuple[str, int]] = []

    def load(self, connection: Connection) -> None:
        """Read the entities, their children, and the answers that were given before."""
        parts, database = self._parts, self._parts.store.database
        commands: dict[str, list[Any]] = {}
        for item in self._items:
            commands.setdefault(item.command.entity_id, []).append(item.command)
        with pipeline(database, connection):
            request_ids = bind_list(database, [item.caller.request_id for item in self._items])
            answers = parts.shared.find_answers.start(connection, {"values": request_ids})
            found = parts.shared.find_entities.start(connection, {"values": bind_list(database, sorted(commands))})
            attach = parts.children.load(connection, commands) if parts.children else None
            if parts.premises is not None:
                self._premise = parts.premises(connection, [item.command for item in self._items])
        self._stored_answers = {AnswerKey(*row[:3]): (row[3], row[4]) for row in answers.fetchall()}
        for row in map(EntityRow._make, found.fetchall()):
            self._changes[row.entity_id] = self._loaded(row)
        self._outbox.load(connection, self._items)
        parts.shared.requests.load(connection, [item.caller for item in self._items])
        if attach is not None:
            attach({key: change.state for key, change in self._changes.items() if change.state is not None})

    def _loaded(self, row: EntityRow) -> Change[State]:
        state = self._parts.cache.get(row.entity_id, row.digest)
        if state is None and row.kind == self._parts.machine.kind:
            state = self._parts.state_of(row)
        return Change(
            row.entity_id, row.project, state, row.version, row.digest, row.version, row.traceparent, row.created_at_us,
            row.entered_at_us, self._now,
        )  # fmt: skip

    def decide(self) -> list[Any]:
        """Decide the commands one after the other; for each its answer or its refusal."""
        return list(map(self._outcome, self._items))

    def _outcome(self, item: Submission) -> Any:
        answer = self._previous_answer(item)
        if answer is not _NOT_ANSWERED:
            return answer
        try:
            return self._decide(item)
        except Refusal as refusal:
            return refusal

    def _previous_answer(self, item: Submission) -> Any:
        """The first answer to this request_id, or the refusal to use it for another request."""
        stored = self._stored_answer(item)
        if stored is not None:
            fingerprint, text = stored
            if fingerprint != item.caller.fingerprint:
                return _reused(item)
            self._outbox.acknowledge(item)
            return from_json(text, self._parts.machine.answers[type(item.command)])
        if item.key in self._answers:
            fingerprint, answer = self._answers[item.key]
            return answer if fingerprint == item.caller.fingerprint else _reused(item)
        return _NOT_ANSWERED

    def _stored_answer(self, item: Submission) -> tuple[str, str] | None:
        """Fingerprint and answer of the caller's record; one that nobody is named in counts for the same request only."""
        stored = self._stored_answers.get(item.key)
        if stored is not None:
            return stored
        nobodys = self._stored_answers.get(item.key._replace(principal=""))
        return nobodys if nobodys is not None and nobodys[0] == item.caller.fingerprint else None

    def _decide(self, item: Submission) -> Any:
        """Let the machine decide a new command, and collect what follows from it."""
        machine, command = self._parts.machine, item.command
        change = self._change_for(item)
        self._outbox.require_pending(item)
        if self._premise is not None:
            command = self._premise.complete(command, self._changes)
        decision = machine.decide(change.state, command, self._now)
        self._parts.shared.requests.take(item.caller)
        self._changes[change.entity_id] = change
        self._apply(change, item.caller, decision)
        if call_recorder.is_on and decision.events:
            change.transition = item.transition = (change.trace, change.entity_id, change.version)
        self._answers[item.key] = (item.caller.fingerprint, decision.answer)
        self._answer_rows.append(_answer_row(item, decision.answer, self._now_us))
        self._outbox.collect(self._now_us, change, decision, item)
        return decision.answer

    def _change_for(self, item: Submission) -> Change[State]:
        """The entity of a command, or a new one; an entity of another project or kind is not found."""
        entity_id, caller = item.command.entity_id, item.caller
        change = self._changes.get(entity_id)
        if change is None:
            trace = caller.traceparent or new_traceparent(entity_id, self._now_us)
            times = (self._now_us, self._now_us, self._now)
            return Change(entity_id, caller.project, None, 0, "", 0, trace, *times)
        if change.project != caller.project or (change.state is None and change.version > 0):
            raise not_found(self._parts.machine.kind, entity_id)
        return change

    def _apply(self, change: Change[State], caller: Caller, decision: Decision) -> None:
        """Apply the events to the state, unless the decision has done so, and make their journal rows."""
        machine = self._parts.machine
        change.is_shared = decision.state is not None
        for event in decision.events:
            previous_run_id = machine.run_id(change.state) if change.state is not None else ""
            change.state = machine.apply(change.state, event, self._now) if decision.state is None else decision.state
            change.version += 1
            if event.source != event.target:
                self._dwells.append((event.source, self._now_us - change.entered_at_us))
                change.entered_at_us = self._now_us
            run_id = machine.run_id(change.state)
            if run_id != previous_run_id:
                change.joined_run = True
                change.traceparent = caller.traceparent or change.traceparent
            row = self._journal_row(change, event, caller) | {"run_id": run_id}
            row["digest"] = change.digest = chained_digest(change.digest, _digest_values(row))
            change.rows.append(row)
            change.events.append(event)
            self._journal_rows.append(row)
        change.trace = change.traceparent if machine.terminal else caller.traceparent or change.traceparent

    def _journal_row(self, change: Change[State], event: Event, caller: Caller) -> dict[str, Any]:
        machine = self._parts.machine
        return {
            "entity_id": change.entity_id, "seq": change.version, "kind": machine.kind, "project": change.project,
            "machine_version": machine.version, "at_us": self._now_us, "event": event.name, "source": event.source,
            "target": event.target, "payload": to_json(event.data), "actor": caller.principal,
            "traceparent": caller.traceparent,
        }  # fmt: skip

    def write(self, connection: Connection) -> None:
        """Write children, journal, entities, outbox and answers; raise LostRaceError if something loaded has changed."""
        parts = self._parts
        changed = [change for change in self._changes.values() if change.rows]
        rows = [self._entity_row(change) for change in changed]
        checks: list[Callable[[], bool]] = []
        with pipeline(parts.store.database, connection):
            if parts.children and changed:
                parts.children.save(connection, changed)
            reach(CrashPoint.CHILDREN_WRITTEN)
            if self._journal_rows:
                parts.shared.statements.write_journal(connection, self._journal_rows, list(self._changes))
                reach(CrashPoint.JOURNAL_WRITTEN)
                if self._premise is not None:
                    checks.append(self._premise.confirm(connection))
            checks.append(parts.shared.statements.write_entities(connection, rows))
            reach(CrashPoint.ENTITIES_WRITTEN)
            self._outbox.write(connection)
            reach(CrashPoint.OUTBOX_WRITTEN)
            if self._answer_rows:
                parts.shared.statements.insert_answer.run(connection, self._answer_rows)
            reach(CrashPoint.ANSWERS_WRITTEN)
        if not all(holds() for holds in checks):
            raise LostRaceError

    def _entity_row(self, change: Change[State]) -> dict[str, Any]:
        state, machine = change.state, self._parts.machine
        assert state is not None
        return {
            "entity_id": change.entity_id, "of_version": change.loaded_version, "kind": machine.kind,
            "project": change.project, "run_id": machine.run_id(state), "machine_version": machine.version,
            "joined_run": change.joined_run, "version": change.version, "status": machine.status(state),
            "digest": change.digest, "traceparent": change.traceparent, "created_at_us": change.created_at_us,
            "entered_at_us": change.entered_at_us, "updated_at_us": self._now_us,
            "body": to_json(self._parts.body_of(state)),
        }  # fmt: skip

    def after_commit(self) -> None:
        """Wake watchers and loops, count metrics, cache states, record the commit's span, dispatch effects."""
        changed = [change for change in self._changes.values() if change.rows]
        if changed:
            store, kind = self._parts.store, self._parts.machine.kind
            store.notify({change.entity_id for change in changed})
            metrics.count_transitions(store.database.schema, self._journal_rows)
            metrics.observe_dwells(store.database.schema, kind, self._dwells)
            self._observe(changed)
        self._outbox.after_commit()

    def _observe(self, changed: Sequence[Change[State]]) -> None:
        parts = self._parts
        for change in changed:
            if change.is_shared and change.state is not None:
                parts.cache.put(change.entity_id, change.digest, change.state)
            if parts.measure is not None:
                for event in change.events:
                    parts.measure(event)
        if call_recorder.has_room():
            database = parts.store.database
            system, end_us = "postgresql" if database.is_postgresql else "sqlite", to_us(database.clock.now())
            counts = (len(self._items), len(self._journal_rows))
            commit = Commit(database.schema, system, *counts, self._now_us, end_us)
            call_recorder.committed(commit, [one.transition for one in changed if one.transition is not None])


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
        "at_us": at_us, "principal": item.caller.principal,
    }  # fmt: skip
