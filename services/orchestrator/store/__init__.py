"""Runs, assignments, documents, agents and artifacts: every table and transaction of the orchestrator."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, case, delete, exists, func, select

from pointsman.services.chassis.engine.journal import Journal
from pointsman.services.chassis.engine.ledger import Ledger
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.store import Store
from pointsman.services.orchestrator.domain.enums import Capability, InternalEvent
from pointsman.services.orchestrator.domain.machine import MACHINE
from pointsman.services.orchestrator.domain.model import Usage
from pointsman.services.orchestrator.domain.run import RunState
from pointsman.services.orchestrator.domain.views import RunView
from pointsman.services.orchestrator.domain.waiting import NOBODY
from pointsman.services.orchestrator.store.accounts import Accounts
from pointsman.services.orchestrator.store.admission import Admission
from pointsman.services.orchestrator.store.agents import Agents
from pointsman.services.orchestrator.store.attention import RunAttention
from pointsman.services.orchestrator.store.children import LEASED, RunChildren
from pointsman.services.orchestrator.store.landing import LIVE_NAMES, Entries
from pointsman.services.orchestrator.store.matcher import AssignmentMatcher, Terms
from pointsman.services.orchestrator.store.measures import measure, queue_gauge
from pointsman.services.orchestrator.store.outputs import Outputs
from pointsman.services.orchestrator.store.polling import UNLIMITED, Limits
from pointsman.services.orchestrator.store.predictions import Predictions
from pointsman.services.orchestrator.store.run_index import RunIndex
from pointsman.services.orchestrator.store.schedules import Schedules
from pointsman.services.orchestrator.store.sessions import Sessions
from pointsman.services.orchestrator.store.tables import METADATA

TASK_EVENTS = tuple(
    str(name)
    for name in (
        InternalEvent.WAVE_CLAIMED, InternalEvent.ASSIGNED, InternalEvent.ASSIGNMENT_RETRIED, InternalEvent.STAGE_FAILED, InternalEvent.WORK_HANDED_IN,
        InternalEvent.WAVE_VERIFIED, InternalEvent.TASK_JUDGED, InternalEvent.CONTENDER_HANDED_IN,
        InternalEvent.CONTENDER_PROVEN, InternalEvent.CONTENDER_CHOSEN,
    )
)  # fmt: skip
"""The events about the work on a task."""


class OrchestratorStore:
    """The orchestrator's durable rows."""

    def __init__(
        self,
        database: Database,
        lease_seconds: float = 60.0,
        present_seconds: float = 120.0,
        limits: Limits = UNLIMITED,
    ) -> None:
        self.store = Store(database, METADATA)
        self.agents = Agents(self.store, METADATA, present_seconds)
        self.accounts = Accounts(self.store, METADATA, self.agents)
        self.children = RunChildren(self.store, METADATA, self.agents.present)
        self.ledger: Ledger[RunState] = Ledger(
            self.store, MACHINE, self.children, measure, Sessions(self.store, self.children).read
        )
        self.journal = Journal(self.store)
        self.store.gauges.append(queue_gauge(self.store, self.children))
        self.matcher = AssignmentMatcher(self.store, self.children, self.accounts, Terms(lease_seconds, limits))
        self.run_index = RunIndex(self.store, self.children)
        self.attention = RunAttention(self.store, self.children, lease_seconds)
        self.artifacts = self.children.artifacts
        self.entries = Entries(self.store, METADATA, self.artifacts, lease_seconds)
        self.schedules = Schedules(self.store, METADATA)
        self.predictions = Predictions(self.store, METADATA)
        self.outputs = Outputs(self.store, METADATA, self.children.assignments)
        self.admission = Admission(self.store, self.children)
        self._sql = _Queries(self.store, self.children, self.outputs, self.entries)

    @property
    def now(self) -> datetime:
        """The store's time."""
        return self.store.database.clock.now()

    async def view(self, project: str, run_id: str) -> RunView:
        """A run as it is now, or not found."""
        return await self.store.database.read(lambda connection: self.view_on(connection, project, run_id))

    def view_on(self, connection: Connection, project: str, run_id: str) -> RunView:
        """The same, on an open connection."""
        run = self.ledger.load(connection, project, run_id).run
        row = connection.execute(self._sql.times, {"entity_id": run_id}).one()
        starts = connection.execute(self._sql.starts, {"entity_id": run_id}).scalar() or 0
        at_work = (
            self.attention.at_work(connection, project, [run_id]).get(run_id, NOBODY) if run.assignments else NOBODY
        )
        return RunView(run, row.version, row.created_at_us, row.updated_at_us, int(starts), at_work)

    def documents(self, connection: Connection, run_id: str) -> Mapping[str, str]:
        """What was handed in for a run, by name."""
        return {row.name: row.body for row in connection.execute(self._sql.documents, {"entity_id": run_id})}

    def history(self, connection: Connection, run_id: str) -> Sequence[Any]:
        """What the journal says about the work on a run's tasks, in order."""
        return connection.execute(self._sql.history, {"entity_id": run_id}).all()

    def assignments(self, connection: Connection, project: str, run_id: str, after: str, limit: int) -> Sequence[Any]:
        """Assignments of a run, or of the project, by id."""
        statement = self._sql.assignments_of_run if run_id else self._sql.assignments_of_project
        parameters = {"project": project, "after": after, "limit": limit}
        return connection.execute(statement, {**parameters, "run_id": run_id} if run_id else parameters).all()

    def usage_by_agent(self, connection: Connection, project: str) -> dict[str, Usage]:
        """What each agent has spent, over the assignments it held last."""
        rows = connection.execute(self._sql.usage, {"project": project})
        return {row.agent_id: Usage(row.held, 0, int(row.tokens), int(row.cost_micros)) for row in rows}

    def working_agents(self, connection: Connection, project: str) -> frozenset[str]:
        """Agents that hold a lease."""
        return frozenset(connection.scalars(self._sql.working, {"project": project}))

    def forget(self, connection: Connection, run_id: str, ended_before_us: int) -> bool:
        """Remove an ended run with all its rows; whether it was there and old enough, checked again here."""
        key = {"entity_id": run_id, "before": ended_before_us}
        if connection.execute(self._sql.is_old, key).first() is None:
            return False
        self.entries.forget_of(connection, run_id)
        for statement in self._sql.forget:
            connection.execute(statement, {"of_entity": run_id})
        self.artifacts.forget(connection, run_id)
        self.accounts.limited.forget_of(connection, run_id)
        return True

    def ended_before(self, connection: Connection, before_us: int, limit: int) -> Sequence[Any]:
        """Runs that ended before a time."""
        return connection.execute(self._sql.ended, {"before": before_us, "limit": limit}).all()


class _Queries:
    """The reading statements, built once."""

    def __init__(self, store: Store, children: RunChildren, outputs: Outputs, entries: Entries) -> None:
        entities, index, assignments = store.tables.entities.c, children.index.c, children.assignments.c
        self.times = select(entities.version, entities.created_at_us, entities.updated_at_us).where(
            entities.entity_id == bindparam("entity_id")
        )
        self.starts = select(func.sum(case((assignments.attempt > 1, assignments.attempt), else_=1))).where(
            assignments.entity_id == bindparam("entity_id"), assignments.capability != str(Capability.VERIFY)
        )
        documents = children.documents.c
        self.documents = select(documents.name, documents.body).where(documents.entity_id == bindparam("entity_id"))
        journal = store.tables.journal.c
        self.history = (
            select(journal.seq, journal.at_us, journal.event, journal.payload)
            .where(journal.entity_id == bindparam("entity_id"), journal.event.in_(TASK_EVENTS))
            .order_by(journal.seq)
        )
        by_id = (
            select(children.assignments)
            .where(assignments.project == bindparam("project"), assignments.assignment_id > bindparam("after"))
            .order_by(assignments.assignment_id)
            .limit(bindparam("limit"))
        )
        self.assignments_of_project = by_id
        self.assignments_of_run = by_id.where(assignments.entity_id == bindparam("run_id"))
        self.usage = (
            select(
                assignments.agent_id,
                func.count().label("held"),
                func.sum(assignments.tokens).label("tokens"),
                func.sum(assignments.cost_micros).label("cost_micros"),
            )
            .where(assignments.project == bindparam("project"), assignments.agent_id != "")
            .group_by(assignments.agent_id)
        )
        self.working = (
            select(assignments.agent_id)
            .where(assignments.status == LEASED, assignments.project == bindparam("project"))
            .distinct()
        )
        entry = entries.children.index.c
        lands = exists().where(entry.run_id == index.entity_id, entry.status.in_(LIVE_NAMES))
        is_old = (index.ended_at_us > 0, index.ended_at_us < bindparam("before"), ~lands)
        self.ended = select(index.entity_id, index.project).where(*is_old).limit(bindparam("limit"))
        self.is_old = select(index.entity_id).where(index.entity_id == bindparam("entity_id"), *is_old)
        tables = store.tables
        owned = (
            children.assignments, children.documents, outputs.table, tables.journal, tables.outbox, tables.timers,
        )  # fmt: skip
        self.forget = [
            delete(table).where(table.c.entity_id == bindparam("of_entity"))
            for table in (*owned, tables.idempotency, tables.entities, children.index)
        ]
