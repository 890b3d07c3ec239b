"""The rows of a run beyond its body: written as its events say, loaded as its commands need."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, MetaData, bindparam, select

from pointsman.services.chassis.clock import to_us
from pointsman.services.chassis.codec import to_text
from pointsman.services.chassis.ledger import Change
from pointsman.services.chassis.machine import Event
from pointsman.services.chassis.sql import among, packed, upsert
from pointsman.services.chassis.store import Store
from pointsman.services.orchestrator.domain import facts
from pointsman.services.orchestrator.domain.run import Run, RunState
from pointsman.services.orchestrator.domain.values import Lease
from pointsman.services.orchestrator.domain.words import TERMINAL, AssignmentEnd, Capability, Fact, State
from pointsman.services.orchestrator.store import tables

ASSIGNMENTS = "#assignments"
OPEN = "OPEN"
LEASED = "LEASED"


class RunChildren:
    """Assignments, documents and the index of runs."""

    body_type: type = Run

    def __init__(
        self, store: Store, metadata: MetaData, present: Callable[[Connection], dict[str, frozenset[Capability]]]
    ):
        self._store = store
        self._present = present
        self.index = tables.run_index(metadata)
        self.assignments = tables.assignments(metadata)
        self.documents = tables.documents(metadata)
        table = self.assignments
        self._find_leases = select(
            table.c.entity_id, table.c.assignment_id, table.c.agent_id, table.c.epoch, table.c.attempt, table.c.status
        ).where(among(store.database, table.c.entity_id, "runs"), among(store.database, table.c.assignment_id))
        mine = (table.c.entity_id == bindparam("of_entity")) & (table.c.assignment_id == bindparam("of_assignment"))
        self._insert_assignment = table.insert()
        self._end_assignment = (
            table.update()
            .where(mine)
            .values(
                status=bindparam("new_status"),
                tokens=table.c.tokens + bindparam("add_tokens"),
                cost_micros=table.c.cost_micros + bindparam("add_cost"),
            )
        )
        self._cancel_all = (
            table.update()
            .where(table.c.entity_id == bindparam("of_entity"), table.c.status.in_((OPEN, LEASED)))
            .values(status=str(AssignmentEnd.CANCELLED))
        )
        self._write_document = upsert(store.database, self.documents, ("entity_id", "name"), ("body",))
        self._insert_index = self.index.insert()
        self._end_index = (
            self.index.update()
            .where(self.index.c.entity_id == bindparam("of_entity"))
            .values(ended_at_us=bindparam("new_end"))
        )

    def body(self, state: RunState) -> Run:
        """The run itself is the body."""
        return state.run

    def state(self, body: Run) -> RunState:
        """A run without leases."""
        return RunState(body)

    def load(
        self, connection: Connection, states: Mapping[str, RunState], commands: Mapping[str, Sequence[Any]]
    ) -> None:
        """The leases that the commands name, and which agents are there."""
        names = [c.assignment_id for group in commands.values() for c in group if hasattr(c, "assignment_id")]
        if names:
            wanted = {"values": packed(self._store.database, names), "runs": packed(self._store.database, list(states))}
            rows = connection.execute(self._find_leases, wanted)
            for row in rows:
                if row.entity_id in states:
                    lease = Lease(row.agent_id, row.epoch, row.attempt, row.status == LEASED)
                    states[row.entity_id].leases[row.assignment_id] = lease
        if states:
            self._note_presence(connection, states)

    def _note_presence(self, connection: Connection, states: Mapping[str, RunState]) -> None:
        present = self._present(connection)
        for state in states.values():
            state.present = present.get(state.run.order.project, frozenset())

    def save(self, connection: Connection, changes: Sequence[Change[RunState]]) -> None:
        """Follow the events of the batch."""
        written = _Rows()
        for change in changes:
            for event in change.events:
                written.take(change, event)
        for statement, rows in (
            (self._insert_index, written.index),
            (self._end_index, written.ended),
            (self._insert_assignment, written.assigned),
            (self._end_assignment, written.closed),
            (self._cancel_all, written.cancelled),
            (self._write_document, list(written.documents.values())),
        ):
            if rows:
                connection.execute(statement, rows)
        if written.assigned or written.reopened:
            self._store.announce({ASSIGNMENTS})


class _Rows:
    """The rows that a batch's events ask for."""

    def __init__(self) -> None:
        self.index: list[dict[str, Any]] = []
        self.ended: list[dict[str, Any]] = []
        self.cancelled: list[dict[str, Any]] = []
        self.assigned: list[dict[str, Any]] = []
        self.closed: list[dict[str, Any]] = []
        self.documents: dict[tuple[str, str], dict[str, Any]] = {}
        self.reopened = False

    def take(self, change: Change[RunState], event: Event) -> None:
        """Add what one event asks for."""
        handler = _FOLLOW.get(event.name)
        if handler is not None:
            handler(self, change, event.data)
        if event.target in TERMINAL_NAMES and event.source != event.target:
            self.ended.append({"of_entity": change.entity_id, "new_end": to_us(change.at)})
            self.cancelled.append({"of_entity": change.entity_id})

    def submitted(self, change: Change[RunState], data: facts.Submitted) -> None:
        """A new run."""
        row = {"entity_id": change.entity_id, "project": change.project, "session_id": data.order.session_id}
        self.index.append({**row, "ended_at_us": 0})

    def new_assignment(self, change: Change[RunState], data: facts.Assigned) -> None:
        """A piece of work in the queue."""
        assert change.state is not None
        item, run = data.assignment, change.state.run
        deadline_us = to_us(run.created_at) + int(run.budget.wall_clock_seconds * 1_000_000)
        row = {
            "entity_id": change.entity_id, "assignment_id": item.assignment_id, "project": change.project,
            "status": OPEN, "capability": str(item.capability), "excluded_agent": item.excluded_agent,
            "repository_id": run.order.repository_id if item.needs_repository else "", "agent_id": "", "epoch": 0,
            "attempt": 0, "lease_until_us": 0, "priority": run.order.priority, "deadline_us": deadline_us,
            "created_at_us": to_us(change.at), "traceparent": run.order.traceparent, "poll_id": "", "tokens": 0,
            "cost_micros": 0, "body": to_text(item),
        }  # fmt: skip
        self.assigned.append(row)

    def retried(self, change: Change[RunState], data: facts.AssignmentRetried) -> None:
        """A failed attempt: back into the queue."""
        self._close(change, data.assignment_id, OPEN, data)
        self.reopened = True

    def closed_assignment(self, change: Change[RunState], data: facts.AssignmentEnded) -> None:
        """Out of the queue."""
        self._close(change, data.assignment_id, str(data.end), data)

    def _close(self, change: Change[RunState], assignment_id: str, status: str, data: Any) -> None:
        row = {"of_entity": change.entity_id, "of_assignment": assignment_id, "new_status": status}
        self.closed.append({**row, "add_tokens": data.usage.tokens, "add_cost": data.usage.cost_micros})

    def document(self, name: str, change: Change[RunState], body: str) -> None:
        """A document; a later one of the same name replaces it."""
        row = {"entity_id": change.entity_id, "name": name, "body": body}
        self.documents[change.entity_id, name] = row


TERMINAL_NAMES = frozenset(str(state) for state in State if state in TERMINAL)
_FOLLOW: Mapping[str, Callable[[_Rows, Change[RunState], Any], None]] = {
    str(Fact.SUBMITTED): _Rows.submitted,
    str(Fact.ASSIGNED): _Rows.new_assignment,
    str(Fact.ASSIGNMENT_RETRIED): _Rows.retried,
    str(Fact.ASSIGNMENT_ENDED): _Rows.closed_assignment,
    str(Fact.PLANNED): lambda rows, change, data: rows.document("plan", change, data.plan.document),
    str(Fact.RESUMED): lambda rows, change, data: rows.document("plan", change, data.plan.document),
    str(Fact.RESEARCHED): lambda rows, change, data: rows.document(f"research/{data.slot}", change, data.document),
    str(Fact.DESIGNED): lambda rows, change, data: rows.document("design", change, data.document),
    str(Fact.WORK_HANDED_IN): lambda rows, change, data: rows.document(
        f"work/{data.task_id}", change, data.work.document
    ),
    str(Fact.WAVE_VERIFIED): lambda rows, change, data: rows.document("verification", change, data.document),
}
