"""Where agents and assignments meet: one matching for all who wait, leases with a fencing epoch."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from sqlalchemy import Connection, Table, and_, bindparam, func, or_, select

from pointsman.services.chassis.clock import to_us
from pointsman.services.chassis.store import Store
from pointsman.services.orchestrator.domain.run import MAX_ATTEMPTS
from pointsman.services.orchestrator.domain.views import Held
from pointsman.services.orchestrator.domain.words import Capability
from pointsman.services.orchestrator.store.children import ASSIGNMENTS, LEASED, OPEN

SAFETY_SECONDS = 1.0
SCAN_FACTOR = 4


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an agent wants to be given, and under which idempotency key it asked."""

    project: str
    agent_id: str
    poll_id: str
    capabilities: frozenset[Capability]
    repository_ids: frozenset[str]
    limit: int = 1


@dataclass(frozen=True, slots=True)
class Limits:
    """How many leases may be live at the same time; 0 means as many as there are agents."""

    per_project: int = 0
    overall: int = 0


UNLIMITED = Limits()


@dataclass(slots=True, eq=False)
class _Waiter:
    """An agent that waits, and what it has been given."""

    wanted: Wanted
    future: "asyncio.Future[list[Held]]"
    deadline: float
    given: list[Held] = field(default_factory=list)

    def fits(self, row: Any) -> bool:
        """Whether the assignment is for this agent."""
        wanted = self.wanted
        return (
            len(self.given) < wanted.limit
            and row.project == wanted.project
            and row.capability in wanted.capabilities
            and row.excluded_agent != wanted.agent_id
            and (not row.repository_id or row.repository_id in wanted.repository_ids)
        )


class Exchange:
    """Hands each open assignment to exactly one of the agents that wait for such."""

    def __init__(self, store: Store, table: Table, lease_seconds: float, limits: Limits) -> None:
        self._store = store
        self._table = table
        self._lease_us = int(lease_seconds * 1_000_000)
        self._limits = limits
        self._waiting: list[_Waiter] = []
        self._news = asyncio.Event()
        self._sql = _Statements(store, table)

    async def take(self, wanted: Wanted, wait_seconds: float) -> list[Held]:
        """Leases for an agent: at once if there is work, else as soon as some comes, at most after the wait."""
        loop = asyncio.get_running_loop()
        waiter = _Waiter(wanted, loop.create_future(), loop.time() + wait_seconds)
        self._waiting.append(waiter)
        self._news.set()
        return await waiter.future

    async def run(self) -> None:
        """The loop: match whenever there is news and every now and then, and send away whose wait is over."""
        with self._store.hub.subscribed(ASSIGNMENTS) as hub_news:
            while True:
                await _either(self._news, hub_news, self._patience())
                self._news.clear()
                hub_news.clear()
                self._waiting = [waiter for waiter in self._waiting if not waiter.future.done()]
                if self._waiting:
                    await self._match()

    def _patience(self) -> float:
        """How long until somebody's wait is over, or it is time to look anyway."""
        now = asyncio.get_running_loop().time()
        soonest = min((waiter.deadline - now for waiter in self._waiting), default=SAFETY_SECONDS)
        return max(0.005, min(soonest, SAFETY_SECONDS))

    async def _match(self) -> None:
        """One pass for everybody who waits; each takes part in at least one."""
        waiting, self._waiting = self._waiting, []
        try:
            await self._store.perform(lambda connection: self._lease(connection, waiting))
        except BaseException:
            self._waiting = [*waiting, *self._waiting]
            raise
        now = asyncio.get_running_loop().time()
        for waiter in waiting:
            if (waiter.given or waiter.deadline <= now) and not waiter.future.done():
                waiter.future.set_result(waiter.given)
        self._waiting = [*(waiter for waiter in waiting if not waiter.future.done()), *self._waiting]

    def _lease(self, connection: Connection, waiting: Sequence[_Waiter]) -> None:
        now_us = to_us(self._store.database.clock.now())
        for waiter in waiting:
            waiter.given.clear()
        self._repeat(connection, waiting)
        hungry = [waiter for waiter in waiting if not waiter.given]
        if hungry:
            self._offer(connection, hungry, now_us)

    def _repeat(self, connection: Connection, waiting: Sequence[_Waiter]) -> None:
        """A poll that was asked before gets the leases it was given, while they live."""
        by_poll = {waiter.wanted.poll_id: waiter for waiter in waiting}
        for row in connection.execute(self._sql.given, {"polls": list(by_poll), "status": LEASED}):
            by_poll[row.poll_id].given.append(_held(row, row.agent_id, row.epoch, row.attempt, row.lease_until_us))

    def _offer(self, connection: Connection, waiting: Sequence[_Waiter], now_us: int) -> None:
        parameters = {
            "projects": sorted({waiter.wanted.project for waiter in waiting}),
            "capabilities": sorted({str(c) for waiter in waiting for c in waiter.wanted.capabilities}),
            "now_us": now_us,
            "limit": SCAN_FACTOR * sum(waiter.wanted.limit for waiter in waiting),
        }
        leases: list[dict[str, Any]] = []
        for row in self._admitted(connection, connection.execute(self._sql.available, parameters).all()):
            waiter = next((waiter for waiter in waiting if waiter.fits(row)), None)
            if waiter is not None:
                until_us = now_us + self._lease_us
                waiter.given.append(_held(row, waiter.wanted.agent_id, row.epoch + 1, row.attempt + 1, until_us))
                leases.append(
                    {
                        "of_entity": row.entity_id, "of_assignment": row.assignment_id, "of_epoch": row.epoch,
                        "new_agent": waiter.wanted.agent_id, "new_until": until_us, "new_poll": waiter.wanted.poll_id,
                    }
                )  # fmt: skip
        if leases:
            connection.execute(self._sql.lease, leases)

    def _admitted(self, connection: Connection, rows: Sequence[Any]) -> Sequence[Any]:
        """The offers in turn from each project, no more than may be worked on at the same time."""
        queues: dict[str, list[Any]] = {}
        for row in rows:
            queues.setdefault(row.project, []).append(row)
        limits = self._limits
        if limits.per_project or limits.overall:
            busy = {row.project: row.held for row in connection.execute(self._sql.busy)}
            if limits.per_project:
                queues = {key: queue[: max(0, limits.per_project - busy.get(key, 0))] for key, queue in queues.items()}
            room = max(0, limits.overall - sum(busy.values())) if limits.overall else len(rows)
            return _in_turn(list(queues.values()))[:room]
        return rows if len(queues) < 2 else _in_turn(list(queues.values()))

    def renew(self, connection: Connection, agent_id: str, keys: Sequence[tuple[str, int]]) -> tuple[int, list[str]]:
        """Extend leases; until when, and which are lost."""
        until_us = to_us(self._store.database.clock.now()) + self._lease_us
        lost = []
        for assignment_id, epoch in keys:
            key = {"of_entity": run_of(assignment_id), "of_assignment": assignment_id, "of_epoch": epoch}
            parameters = {**key, "of_agent": agent_id, "new_until": until_us}
            if connection.execute(self._sql.renew, parameters).rowcount != 1:
                lost.append(assignment_id)
        return until_us, lost

    def exhausted(self, connection: Connection, limit: int = 100) -> Sequence[Any]:
        """Assignments whose last lease ran out."""
        now_us = to_us(self._store.database.clock.now())
        return connection.execute(self._sql.exhausted, {"now_us": now_us, "limit": limit}).all()


class _Statements:
    """The queue's statements, built once."""

    def __init__(self, store: Store, table: Table) -> None:
        ran_out = and_(
            table.c.status == LEASED, table.c.lease_until_us < bindparam("now_us"), table.c.attempt < MAX_ATTEMPTS
        )
        self.available: Any = (
            select(table)
            .where(
                or_(table.c.status == OPEN, ran_out),
                table.c.status.in_((OPEN, LEASED)),
                table.c.project.in_(bindparam("projects", expanding=True)),
                table.c.capability.in_(bindparam("capabilities", expanding=True)),
            )
            .order_by(table.c.priority, table.c.created_at_us, table.c.assignment_id)
            .limit(bindparam("limit"))
        )
        if store.database.is_postgresql:
            self.available = self.available.with_for_update(skip_locked=True)
        mine = (table.c.entity_id == bindparam("of_entity")) & (table.c.assignment_id == bindparam("of_assignment"))
        self.lease = (
            table.update()
            .where(mine, table.c.epoch == bindparam("of_epoch"))
            .values(
                status=LEASED,
                agent_id=bindparam("new_agent"),
                epoch=table.c.epoch + 1,
                attempt=table.c.attempt + 1,
                lease_until_us=bindparam("new_until"),
                poll_id=bindparam("new_poll"),
            )
        )
        self.given = select(table).where(
            table.c.poll_id.in_(bindparam("polls", expanding=True)), table.c.status == bindparam("status")
        )
        self.renew = (
            table.update()
            .where(
                mine,
                table.c.epoch == bindparam("of_epoch"),
                table.c.agent_id == bindparam("of_agent"),
                table.c.status == LEASED,
            )
            .values(lease_until_us=bindparam("new_until"))
        )
        self.busy = (
            select(table.c.project, func.count().label("held"))
            .where(table.c.status == LEASED)
            .group_by(table.c.project)
        )
        self.exhausted = (
            select(table.c.entity_id, table.c.assignment_id, table.c.epoch, table.c.project, table.c.traceparent)
            .where(table.c.status == LEASED, table.c.lease_until_us < bindparam("now_us"))
            .where(table.c.attempt >= MAX_ATTEMPTS)
            .limit(bindparam("limit"))
        )


def _in_turn(queues: list[list[Any]]) -> list[Any]:
    """The first of each queue, then the second of each, and so on."""
    return [row for round_of_rows in zip_longest(*queues) for row in round_of_rows if row is not None]


def run_of(assignment_id: str) -> str:
    """The run that an assignment belongs to: its id begins with the run's."""
    return assignment_id.rpartition(".")[0]


def _held(row: Any, agent_id: str, epoch: int, attempt: int, until_us: int) -> Held:
    return Held(
        row.entity_id, row.assignment_id, agent_id, epoch, attempt, until_us, row.deadline_us, row.created_at_us,
        row.priority, row.repository_id, row.traceparent, row.body,
    )  # fmt: skip


async def _either(first: asyncio.Event, second: asyncio.Event, seconds: float) -> None:
    """Wait until one of the events is set, or the time is over."""
    if first.is_set() or second.is_set():
        return
    tasks = [asyncio.ensure_future(event.wait()) for event in (first, second)]
    try:
        await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
