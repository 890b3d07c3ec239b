"""The router's store: decisions, policies, outcomes and thinking decisions; every change goes through a ledger."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, bindparam, func, or_, select

from pointsman.services.chassis.core.caller import Caller
from pointsman.services.chassis.core.clock import from_us, to_us
from pointsman.services.chassis.core.codec import from_json
from pointsman.services.chassis.engine.journal import Journal
from pointsman.services.chassis.engine.ledger import Ledger
from pointsman.services.chassis.engine.retention import forget_run
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.dialect import PreparedStatement
from pointsman.services.chassis.storage.store import Store
from pointsman.services.router.domain import outcomes, thinking_journal
from pointsman.services.router.domain.decision_record import KIND as DECISION
from pointsman.services.router.domain.decision_record import MACHINE as DECISIONS
from pointsman.services.router.domain.decision_record import (
    DecisionRecord,
    RoutingDecision,
    StoredDecision,
    StoreDecision,
)
from pointsman.services.router.domain.enums import Confidence, Mode
from pointsman.services.router.domain.policy import MACHINE as POLICIES
from pointsman.services.router.domain.policy import Policy, policy_id
from pointsman.services.router.domain.views import Filter, Stats
from pointsman.services.router.store.children import DecisionChildren, OutcomeChildren
from pointsman.services.router.store.measures import measure
from pointsman.services.router.store.tables import METADATA, router_tables

LOG_PAGE = 500


class RouterStore:
    """The ledgers and queries of the router."""

    def __init__(self, database: Database) -> None:
        self.store = Store(database, METADATA)
        self._tables = router_tables(METADATA)
        self.decisions = Ledger(self.store, DECISIONS, DecisionChildren(database, self._tables), measure)
        self.policies = Ledger(self.store, POLICIES)
        self.outcomes = Ledger(self.store, outcomes.MACHINE, OutcomeChildren(database, self._tables))
        self.thinking_decisions = Ledger(self.store, thinking_journal.MACHINE)
        self.journal = Journal(self.store)
        entities = self.store.tables.entities
        policy = select(entities.c.body).where(entities.c.entity_id == bindparam("policy_id"))
        self._find_policy = PreparedStatement(database, policy)

    async def store_decisions(self, caller: Caller, decisions: Sequence[RoutingDecision]) -> list[StoredDecision]:
        """Stores the decisions of one call together, each under its own part of the call's request id."""
        if len(decisions) == 1:
            return [await self.decisions.submit(caller, StoreDecision(decisions[0].decision_id, decisions[0]))]
        parts = (replace(caller, request_id=f"{caller.request_id}/{number}") for number in range(len(decisions)))
        submissions = (
            self.decisions.submit(part, StoreDecision(decision.decision_id, decision))
            for part, decision in zip(parts, decisions, strict=True)
        )
        return list(await asyncio.gather(*submissions))

    async def decision(self, project: str, decision_id: str) -> RoutingDecision:
        """A stored decision; refuses an unknown id."""
        stored = await self.store.database.read(
            lambda connection: self.decisions.load(connection, project, decision_id)
        )
        return stored.made

    async def policy(self, project: str) -> Policy | None:
        """The project's policy; None if it never set one."""
        return await self.store.database.read(lambda connection: self._policy(connection, project))

    async def decision_context(
        self, project: str, session_id: str, tasks: Sequence[str]
    ) -> tuple[Policy | None, frozenset[str]]:
        """What decisions depend on beside their texts: the policy, and which tasks were debated in this session."""

        def query(connection: Connection) -> tuple[Policy | None, frozenset[str]]:
            debated = self._debated(connection, project, session_id, tasks) if session_id else frozenset()
            return self._policy(connection, project), debated

        return await self.store.database.read(query)

    async def page(
        self, project: str, wanted: Filter, after: tuple[int, str] | None, limit: int
    ) -> list[tuple[RoutingDecision, datetime]]:
        """A page of a project's decisions, newest first, after a cursor."""
        table = self._tables.decisions
        conditions = self._conditions(project, wanted)
        if after is not None:
            same = and_(table.c.at_us == after[0], table.c.entity_id < after[1])
            conditions.append(or_(table.c.at_us < after[0], same))
        order = (table.c.at_us.desc(), table.c.entity_id.desc())
        return await self._read_records(conditions, order, limit)

    async def day(self, project: str, day: date) -> AsyncIterator[list[tuple[RoutingDecision, datetime]]]:
        """One day's decisions by time, page by page."""
        start = datetime.combine(day, time.min, UTC)
        wanted = Filter(start=start, end=start + timedelta(days=1))
        table = self._tables.decisions
        order = (table.c.at_us, table.c.entity_id)
        last: tuple[int, str] | None = None
        while True:
            conditions = self._conditions(project, wanted)
            if last is not None:
                later = and_(table.c.at_us == last[0], table.c.entity_id > last[1])
                conditions.append(or_(table.c.at_us > last[0], later))
            rows = await self._read_records(conditions, order, LOG_PAGE)
            if rows:
                yield rows
                last = (to_us(rows[-1][1]), rows[-1][0].decision_id)
            if len(rows) < LOG_PAGE:
                return

    async def stats(self, project: str, wanted: Filter) -> Stats:
        """Counts of decisions in a time window."""
        table = self._tables.decisions
        action = table.c.mode == str(Mode.ACTION)
        columns = (
            func.count(),
            _counted(table.c.mode == str(Mode.ANSWER)),
            _counted(action),
            _counted(and_(action, table.c.confidence == str(Confidence.STRONG))),
            _counted(and_(action, table.c.confidence != str(Confidence.STRONG))),
            func.coalesce(func.sum(table.c.fast_path), 0),
            func.coalesce(func.sum(table.c.debate), 0),
            func.coalesce(func.sum(table.c.overridden), 0),
            func.coalesce(func.sum(table.c.clarifications), 0),
        )
        statement = select(*columns).where(*self._conditions(project, wanted))
        row = await self.store.database.read(lambda connection: connection.execute(statement).one())
        return Stats(*(int(value) for value in row))

    async def forget_run(self, caller: Caller, run_id: str) -> int:
        """Removes the routing and thinking decisions of a run."""
        return await forget_run(self.store, caller, run_id, lambda row: row.kind in (DECISION, thinking_journal.KIND))

    def _conditions(self, project: str, wanted: Filter) -> list[ColumnElement[bool]]:
        table = self._tables.decisions
        conditions = [table.c.project == project]
        for column, value in (
            (table.c.mode, wanted.mode),
            (table.c.run_id, wanted.run_id),
            (table.c.task_id, wanted.task_id),
        ):
            if value:
                conditions.append(column == value)
        if wanted.start is not None:
            conditions.append(table.c.at_us >= to_us(wanted.start))
        if wanted.end is not None:
            conditions.append(table.c.at_us < to_us(wanted.end))
        return conditions

    async def _read_records(
        self, conditions: list[ColumnElement[bool]], order: tuple[Any, ...], limit: int
    ) -> list[tuple[RoutingDecision, datetime]]:
        table, entities = self._tables.decisions, self.store.tables.entities
        statement = (
            select(entities.c.body, table.c.at_us)
            .join(entities, entities.c.entity_id == table.c.entity_id)
            .where(*conditions)
            .order_by(*order)
            .limit(limit)
        )
        rows = await self.store.database.read(lambda connection: connection.execute(statement).all())
        return [(from_json(body, DecisionRecord).made, from_us(at_us)) for body, at_us in rows]

    def _policy(self, connection: Connection, project: str) -> Policy | None:
        found = self._find_policy.fetch(connection, {"policy_id": policy_id(project)})
        return from_json(found[0][0], Policy) if found else None

    def _debated(self, connection: Connection, project: str, session_id: str, tasks: Sequence[str]) -> frozenset[str]:
        table = self._tables.tracks
        found = select(table.c.task_id, table.c.body).where(
            table.c.entity_id == outcomes.outcomes_id(project), table.c.task_id.in_(tasks)
        )
        rows = connection.execute(found).all()
        return frozenset(task for task, body in rows if session_id in from_json(body, outcomes.Track).sessions)


def _counted(condition: ColumnElement[bool]) -> Any:
    return func.count().filter(condition)
