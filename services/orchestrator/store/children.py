"""The child rows of a run: written from its events, loaded for its commands."""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, MetaData, Table, bindparam, case, select

from pointsman.services.chassis.core.clock import to_us
from pointsman.services.chassis.core.codec import to_json
from pointsman.services.chassis.core.machine import Event
from pointsman.services.chassis.engine.changes import AttachChildren, Change
from pointsman.services.chassis.storage.bulk import insert_rows, update_rows, upsert_rows
from pointsman.services.chassis.storage.dialect import PreparedStatement, any_of, bind_list
from pointsman.services.chassis.storage.store import Store
from pointsman.services.chassis.telemetry.context import transition_traceparent
from pointsman.services.orchestrator.domain import events
from pointsman.services.orchestrator.domain.commands import CompleteAssignments
from pointsman.services.orchestrator.domain.enums import TERMINAL, AssignmentEnd, InternalEvent, State
from pointsman.services.orchestrator.domain.model import Order
from pointsman.services.orchestrator.domain.run import Crew, Lease, RunState
from pointsman.services.orchestrator.store import tables
from pointsman.services.orchestrator.store.agents import Present
from pointsman.services.orchestrator.store.artifacts import Artifacts
from pointsman.services.orchestrator.store.bodies import Bodies

ASSIGNMENTS = "#assignments"
OPEN = "OPEN"
LEASED = "LEASED"
MAX_WORDS = 16_384


class RunChildren:
    """Assignments, documents and the index of runs."""

    body_type: type = msgspec.Raw

    def __init__(
        self, store: Store, metadata: MetaData, present: Callable[[Connection], dict[str, tuple[Present, ...]]]
    ):
        self._store = store
        self.present = present
        self.artifacts = Artifacts(store, metadata)
        self.bodies = Bodies()
        self.index = tables.run_index(metadata)
        self.assignments = tables.assignments(metadata)
        self.documents = tables.documents(metadata)
        database, table = store.database, self.assignments
        leases = (
            table.c.entity_id,
            table.c.assignment_id,
            table.c.agent_id,
            table.c.epoch,
            table.c.attempt,
            table.c.status,
            holder_of(table),
            secrets_of(table),
        )
        of_runs = any_of(database, table.c.entity_id, "runs")
        self._find_leases = PreparedStatement(
            database, select(*leases).where(of_runs, any_of(database, table.c.assignment_id))
        )
        named = (of_runs, any_of(database, table.c.assignment_id))
        self._end_assignments = PreparedStatement(
            database, table.update().where(*named).values(status=bindparam("new_status"))
        )
        self._insert_index = insert_rows(database, self.index)
        key = {"entity_id": "of_entity"}
        self._end_index = update_rows(database, self.index, key, ("ended_at_us", "outcome", "asked_at_us"))
        self._note_asked = update_rows(database, self.index, key, ("asked_at_us",))
        self._note_words = update_rows(database, self.index, key, ("words",))
        self._insert_assignment = insert_rows(database, table)
        self._write_document = upsert_rows(database, self.documents, ("entity_id", "name"))
        self._spend = (
            table.update()
            .where(table.c.entity_id == bindparam("of_entity"), table.c.assignment_id == bindparam("of_assignment"))
            .values(
                tokens=table.c.tokens + bindparam("add_tokens"), cost_micros=table.c.cost_micros + bindparam("add_cost")
            )
        )
        self._cancel_all = (
            table.update()
            .where(table.c.entity_id == bindparam("of_entity"), table.c.status.in_((OPEN, LEASED)))
            .values(status=str(AssignmentEnd.CANCELLED))
        )

    def body(self, state: RunState) -> msgspec.Raw:
        """The run itself is the body."""
        return self.bodies.written(state.run)

    def state(self, body: msgspec.Raw) -> RunState:
        """A run without leases."""
        return RunState(self.bodies.run(body))

    def load(self, connection: Connection, commands: Mapping[str, Sequence[Any]]) -> AttachChildren[RunState]:
        """The leases that the commands name, and which agents are there."""
        database = self._store.database
        names = [name for group in commands.values() for command in group for name in _named(command)]
        wanted = {"values": bind_list(database, names), "runs": bind_list(database, list(commands))}
        leases = self._find_leases.start(connection, wanted) if names else None

        def show(states: Mapping[str, RunState]) -> None:
            for row in leases.fetchall() if leases is not None else ():
                run_id, assignment_id, agent_id, epoch, attempt, status, principal, digests = row
                if run_id in states:
                    held = Lease(agent_id, epoch, attempt, status == LEASED, principal, tuple(digests.split()))
                    states[run_id].leases[assignment_id] = held
            if states:
                self._note_presence(connection, states)

        return show

    def _note_presence(self, connection: Connection, states: Mapping[str, RunState]) -> None:
        present = self.present(connection)
        for run_id, state in states.items():
            order = state.run.order
            state.asked = state.run.question is not None
            state.crews = tuple(
                Crew(group.can(order.repository_id), group.principals)
                for group in present.get(order.project, ())
                if group.work_for(run_id, reserved=order.reserved)
            )
            state.present = frozenset(chain.from_iterable(crew.capabilities for crew in state.crews))

    def save(self, connection: Connection, changes: Sequence[Change[RunState]]) -> None:
        """Writes the rows of the batch's events."""
        written = _Rows()
        for change in changes:
            for seq, event in enumerate(change.events, change.loaded_version + 1):
                written.step = (change.traceparent, change.entity_id, seq)
                written.take(change, event)
            written.note(change)
        for statement, rows in (
            (self._insert_index, written.index),
            (self._note_words, written.words),
            (self._note_asked, written.asked),
            (self._end_index, written.ended),
            (self._insert_assignment, written.assigned),
            (self._write_document, list(written.documents.values())),
        ):
            if rows:
                statement.run(connection, rows)
        self._close(connection, written.closed)
        for rare, rows in (
            (self._spend, written.spent),
            (self._cancel_all, written.cancelled),
            (self.artifacts.insert_use, written.uses),
        ):
            if rows:
                connection.execute(rare, rows)
        if written.assigned or written.reopened:
            self._store.notify({ASSIGNMENTS})

    def _close(self, connection: Connection, closed: Mapping[tuple[str, str], str]) -> None:
        """Closes assignments, with one statement for all that end alike: most do."""
        for status in sorted(set(closed.values())):
            keys = [key for key, ended in closed.items() if ended == status]
            self._end_assignments.start(
                connection,
                {
                    "new_status": status,
                    "runs": bind_list(self._store.database, sorted({run_id for run_id, _ in keys})),
                    "values": bind_list(self._store.database, [assignment_id for _, assignment_id in keys]),
                },
            )


def holder_of(table: Table) -> ColumnElement[str]:
    """Whose lease it is; empty where the version before gave it out, which leaves the holder before it in the row."""
    return case((table.c.principal_epoch == table.c.epoch, table.c.principal), else_="")


def secrets_of(table: Table) -> ColumnElement[str]:
    """The digests of a lease's secrets; empty where the version before gave it out, which leaves the older ones in the row."""
    return case((table.c.secret_epoch == table.c.epoch, table.c.secret_digests), else_="")


def _named(command: Any) -> Sequence[str]:
    """The assignments that a command is about."""
    if isinstance(command, CompleteAssignments):
        return [item.assignment_id for item in command.items]
    return (command.assignment_id,) if hasattr(command, "assignment_id") else ()


def words(run_id: str, intent: str, order: Order) -> str:
    """What a run is found by, in small letters."""
    labels = (f"{key}={value}" for key, value in order.labels.items())
    story = (order.origin.run_id, order.origin.first_run_id) if order.origin else ()
    return " ".join((run_id, *story, intent, order.session_id, *labels))[:MAX_WORDS].lower()


class _Rows:
    """Collects the child rows that a batch's events write."""

    def __init__(self) -> None:
        self.index: list[dict[str, Any]] = []
        self.words: list[dict[str, Any]] = []
        self.asked: list[dict[str, Any]] = []
        self.ended: list[dict[str, Any]] = []
        self.cancelled: list[dict[str, Any]] = []
        self.assigned: list[dict[str, Any]] = []
        self.closed: dict[tuple[str, str], str] = {}
        """The status of each assignment that is out of somebody's hands, as the last event says."""
        self.spent: list[dict[str, Any]] = []
        self.documents: dict[tuple[str, str], dict[str, Any]] = {}
        self.uses: list[dict[str, Any]] = []
        self.reopened = False
        self.step = ("", "", 0)
        """Where in the run's trace the event is that is being followed."""

    def take(self, change: Change[RunState], event: Event) -> None:
        """Adds the rows of one event."""
        handler = _FOLLOW.get(event.name)
        if handler is not None:
            handler(self, change, event.data)
        if event.target in TERMINAL_NAMES and event.source != event.target:
            ended = {"of_entity": change.entity_id, "ended_at_us": to_us(change.at)}
            self.ended.append({**ended, "outcome": event.target, "asked_at_us": 0})
            self.cancelled.append({"of_entity": change.entity_id})

    def note(self, change: Change[RunState]) -> None:
        """What the run asks, once all events of the batch have been followed."""
        assert change.state is not None
        question = change.state.run.question
        if change.state.asked or question is not None:
            asked_at_us = to_us(question.asked_at) if question is not None and not change.state.run.ended else 0
            self.asked.append({"of_entity": change.entity_id, "asked_at_us": asked_at_us})

    def submitted(self, change: Change[RunState], data: events.Submitted) -> None:
        """A new run."""
        row = {"entity_id": change.entity_id, "project": change.project, "session_id": data.order.session_id}
        found_by = words(change.entity_id, data.intent, data.order)
        bundle = _NAMED_ARTIFACT.findall(data.order.origin.accepted_bundle) if data.order.origin else []
        use = {"entity_id": change.entity_id, "project": change.project}
        self.uses += [{**use, "sha256": digest} for digest in (data.order.proof_terms.held_out, *bundle) if digest]
        self.index.append({**row, "ended_at_us": 0, "outcome": "", "asked_at_us": 0, "words": found_by})

    def reworded(self, change: Change[RunState], data: Any) -> None:  # noqa: ARG002
        """The words that a run is found by have changed."""
        assert change.state is not None
        run = change.state.run
        self.words.append({"of_entity": change.entity_id, "words": words(change.entity_id, run.intent, run.order)})

    def new_assignment(self, change: Change[RunState], data: events.Assigned) -> None:
        """A piece of work in the queue."""
        assert change.state is not None
        item, run = data.assignment, change.state.run
        deadline_us = to_us(run.created_at) + int(run.budget.wall_clock_seconds * 1_000_000)
        row = {
            "entity_id": change.entity_id, "assignment_id": item.assignment_id, "project": change.project,
            "status": OPEN, "capability": str(item.capability), "excluded_agent": item.excluded_agent,
            "repository_id": run.order.repository_id if item.needs_repository else "", "agent_id": "", "epoch": 0,
            "attempt": 0, "lease_until_us": 0, "priority": run.order.priority, "deadline_us": deadline_us,
            "created_at_us": to_us(change.at), "traceparent": transition_traceparent(*self.step), "poll_id": "", "tokens": 0,
            "cost_micros": 0, "body": to_json(item), "principal": "", "principal_epoch": 0, "apart_epoch": 0,
            "secret_digests": "", "secret_epoch": 0, "excluded_principals": "\n".join(item.excluded_principals),
            "reserved": int(run.order.reserved),
        }  # fmt: skip
        self.assigned.append(row)

    def retried(self, change: Change[RunState], data: events.AssignmentRetried) -> None:
        """A failed attempt: back into the queue."""
        self._close(change, data.assignment_id, OPEN, data)
        self.reopened = True

    def closed_assignment(self, change: Change[RunState], data: events.AssignmentEnded) -> None:
        """Out of the queue."""
        self._close(change, data.assignment_id, str(data.end), data)

    def work(self, change: Change[RunState], data: events.WorkHandedIn) -> None:
        """The work that a task has now, and that of the stage, on which a later one begins."""
        self.document(f"work/{data.task_id}", change, data.work.document)
        if data.work.stage:
            self.document(f"work/{data.task_id}/{data.work.stage}", change, data.work.document)

    def report(self, change: Change[RunState], data: events.Researched) -> None:
        """A report, and the end of the assignment that it was for."""
        self.document(f"research/{data.slot}", change, data.document)
        if data.ended is not None:
            self.closed_assignment(change, data.ended)

    def _close(self, change: Change[RunState], assignment_id: str, status: str, data: Any) -> None:
        self.closed[change.entity_id, assignment_id] = status
        if data.usage.tokens or data.usage.cost_micros:
            key = {"of_entity": change.entity_id, "of_assignment": assignment_id}
            self.spent.append({**key, "add_tokens": data.usage.tokens, "add_cost": data.usage.cost_micros})

    def document(self, name: str, change: Change[RunState], body: str) -> None:
        """A document; a later one of the same name replaces it."""
        row = {"entity_id": change.entity_id, "name": name, "body": body}
        self.documents[change.entity_id, name] = row
        if '"sha256"' in body:
            named = dict.fromkeys(_NAMED_ARTIFACT.findall(body))
            self.uses += [
                {"entity_id": change.entity_id, "project": change.project, "sha256": digest} for digest in named
            ]


_NAMED_ARTIFACT = re.compile(r'"sha256":\s*"([0-9a-f]{64})"')
TERMINAL_NAMES = frozenset(str(state) for state in State if state in TERMINAL)
_FOLLOW: Mapping[str, Callable[[_Rows, Change[RunState], Any], None]] = {
    str(InternalEvent.SUBMITTED): _Rows.submitted,
    str(InternalEvent.INTENT_CHANGED): _Rows.reworded,
    str(InternalEvent.LABELLED): _Rows.reworded,
    str(InternalEvent.ASSIGNED): _Rows.new_assignment,
    str(InternalEvent.ASSIGNMENT_RETRIED): _Rows.retried,
    str(InternalEvent.ASSIGNMENT_ENDED): _Rows.closed_assignment,
    str(InternalEvent.PLANNED): lambda rows, change, data: rows.document("plan", change, data.plan.document),
    str(InternalEvent.RESUMED): lambda rows, change, data: rows.document("plan", change, data.plan.document),
    str(InternalEvent.RESEARCHED): _Rows.report,
    str(InternalEvent.DESIGNED): lambda rows, change, data: rows.document("design", change, data.document),
    str(InternalEvent.WORK_HANDED_IN): _Rows.work,
    str(InternalEvent.CONTENDER_HANDED_IN): lambda rows, change, data: rows.document(
        f"work/{data.task_id}/{data.number}", change, data.work.document
    ),
    str(InternalEvent.CONTENDER_PROVEN): lambda rows, change, data: rows.document(
        f"proof/{data.task_id}/{data.number}", change, data.document
    ),
    str(InternalEvent.STAGE_PROVEN): lambda rows, change, data: rows.document(
        f"proof/{data.task_id}", change, data.document
    ),
    str(InternalEvent.WAVE_VERIFIED): lambda rows, change, data: rows.document("verification", change, data.document),
}
