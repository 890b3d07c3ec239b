"""Where agents and assignments meet: one matching for all who wait, leases with a fencing epoch."""

import asyncio
from collections import namedtuple
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import structlog
from sqlalchemy import Connection, Table, bindparam, func, literal_column, or_, select

from pointsman.services.chassis import metrics
from pointsman.services.chassis.clock import to_us
from pointsman.services.chassis.codec import from_text
from pointsman.services.chassis.rows import update_rows
from pointsman.services.chassis.sql import Prepared, among, packed
from pointsman.services.chassis.store import FAR_SECONDS, Store
from pointsman.services.orchestrator.domain.run import MAX_ATTEMPTS, Run
from pointsman.services.orchestrator.domain.views import Given, Held
from pointsman.services.orchestrator.domain.words import Capability, Purpose
from pointsman.services.orchestrator.store.children import ASSIGNMENTS, LEASED, OPEN, RunChildren

SAFETY_SECONDS = 1.0
SCAN_FACTOR = 4
LOOK_BACK_US = 200_000
NOTHING_GIVEN = Given()
EXHAUSTED = ("entity_id", "assignment_id", "epoch", "project", "traceparent", "capability")

log = structlog.get_logger()


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
    future: "asyncio.Future[Given]"
    deadline: float
    given: list[Held] = field(default_factory=list)
    bundle: Given = NOTHING_GIVEN

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

    def __init__(self, store: Store, children: RunChildren, lease_seconds: float, limits: Limits) -> None:
        self._store = store
        self._lease_us = int(lease_seconds * 1_000_000)
        self._limits = limits
        self._looked_back_us = 0
        self._waiting: list[_Waiter] = []
        self._matching: asyncio.Task[None] | None = None
        self._wanted = False
        self._sql = _Statements(store, children)

    async def take(self, wanted: Wanted, wait_seconds: float) -> Given:
        """Leases for an agent: at once if there is work, else as soon as some comes, at most after the wait."""
        loop = asyncio.get_running_loop()
        waiter = _Waiter(wanted, loop.create_future(), loop.time() + wait_seconds)
        self._waiting.append(waiter)
        self._match_soon()
        return await waiter.future

    async def run(self) -> None:
        """The loop: match whenever there is news and every now and then, and send away whose wait is over."""
        with self._store.hub.subscribed(ASSIGNMENTS) as news:
            while True:
                await _news_or(news, self._patience())
                news.clear()
                self._match_soon()

    def _match_soon(self) -> None:
        """Match in the next turn of the event loop, so that it joins the commit of whatever was handed in just now."""
        self._wanted = True
        if self._matching is None or self._matching.done():
            self._matching = asyncio.get_running_loop().create_task(self._match_while_wanted())

    async def _match_while_wanted(self) -> None:
        while self._wanted:
            self._wanted = False
            self._waiting = [waiter for waiter in self._waiting if not waiter.future.done()]
            if not self._waiting:
                return
            try:
                await self._match()
            except Exception as error:  # noqa: BLE001 - whoever waits is kept, and the next pass tries again
                log.error("matching_failed", error=repr(error)[:300])
                return

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
                waiter.future.set_result(waiter.bundle)
        self._waiting = [*(waiter for waiter in waiting if not waiter.future.done()), *self._waiting]

    def _lease(self, connection: Connection, waiting: Sequence[_Waiter]) -> None:
        now_us = to_us(self._store.database.clock.now())
        for waiter in waiting:
            waiter.given.clear()
            waiter.bundle = NOTHING_GIVEN
        self._repeat(connection, waiting)
        hungry = [waiter for waiter in waiting if not waiter.given]
        if hungry:
            self._offer(connection, hungry, now_us)
        self._bundle(connection, [waiter for waiter in waiting if waiter.given])

    def _bundle(self, connection: Connection, served: Sequence[_Waiter]) -> None:
        """Put to each agent's leases the runs they belong to, and what was handed in for those."""
        run_ids = sorted({held.run_id for waiter in served for held in waiter.given})
        if not run_ids:
            return
        runs = {run_id: from_text(body, Run) for run_id, body in self._sql.bodies(connection, run_ids)}
        reading = sorted({held.run_id for w in served for held in w.given if _needs_documents(held)})
        documents: dict[str, dict[str, str]] = {run_id: {} for run_id in run_ids}
        for run_id, name, body in self._sql.documents(connection, reading) if reading else ():
            documents[run_id][name] = body
        for waiter in served:
            waiter.bundle = Given(tuple(waiter.given), runs, documents)

    def _repeat(self, connection: Connection, waiting: Sequence[_Waiter]) -> None:
        """A poll that was asked before gets the leases it was given, while they live."""
        by_poll = {waiter.wanted.poll_id: waiter for waiter in waiting}
        for row in self._sql.given(connection, list(by_poll)):
            by_poll[row.poll_id].given.append(_held(row, row.agent_id, row.epoch, row.attempt, row.lease_until_us))

    def _offer(self, connection: Connection, waiting: Sequence[_Waiter], now_us: int) -> None:
        leases: list[dict[str, Any]] = []
        for row in self._admitted(connection, self._available(connection, waiting, now_us)):
            waiter = next((waiter for waiter in waiting if waiter.fits(row)), None)
            if waiter is None:
                continue
            until_us = now_us + self._lease_us
            if row.status == LEASED:
                metrics.lease_expiries.labels(row.capability).inc()
            waiter.given.append(_held(row, waiter.wanted.agent_id, row.epoch + 1, row.attempt + 1, until_us))
            leases.append(
                {
                    "of_entity": row.entity_id, "of_assignment": row.assignment_id, "of_epoch": row.epoch,
                    "status": LEASED, "agent_id": waiter.wanted.agent_id, "epoch": row.epoch + 1,
                    "attempt": row.attempt + 1, "lease_until_us": until_us, "poll_id": waiter.wanted.poll_id,
                }
            )  # fmt: skip
        if leases:
            self._sql.lease.run(connection, leases)

    def _available(self, connection: Connection, waiting: Sequence[_Waiter], now_us: int) -> Sequence[Any]:
        """What is open, and now and then what ran out, for each kind of work that is waited for; urgent first."""
        wanted: dict[tuple[str, str], int] = {}
        for waiter in waiting:
            for capability in waiter.wanted.capabilities:
                key = (waiter.wanted.project, str(capability))
                wanted[key] = wanted.get(key, 0) + waiter.wanted.limit
        look_back = abs(now_us - self._looked_back_us) >= LOOK_BACK_US
        if look_back:
            self._looked_back_us = now_us
        rows: list[Any] = []
        for (project, name), limit in wanted.items():
            kind = {"project": project, "capability": name, "limit": SCAN_FACTOR * limit, "offset": 0}
            rows += self._sql.open(connection, kind)
            if look_back:
                rows += self._sql.ran_out(connection, {**kind, **self._over(now_us)})
        if len(wanted) > 1 or look_back:
            rows.sort(key=lambda row: (row.priority, row.created_at_us, row.assignment_id))
        return rows

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
        over = self._over(to_us(self._store.database.clock.now()))
        return connection.execute(self._sql.exhausted, {**over, "limit": limit}).all()

    def _over(self, now_us: int) -> dict[str, int]:
        """When leases are over: those of the past, and those of a clock that was ahead and has been set right since."""
        return {"now_us": now_us, "far_us": now_us + max(10 * self._lease_us, FAR_SECONDS * 1_000_000)}


class _Statements:
    """The queue's statements, built once."""

    def __init__(self, store: Store, children: RunChildren) -> None:
        table = children.assignments
        database, columns = store.database, table.c
        self._database = database
        self._row = _row_maker(table)
        of_kind = (
            select(table)
            .where(columns.project == bindparam("project"), columns.capability == bindparam("capability"))
            .order_by(columns.priority, columns.created_at_us)
            .limit(bindparam("limit"))
            .offset(bindparam("offset"))
        )
        is_open: Any = of_kind.where(columns.status == literal_column(f"'{OPEN}'"))
        until_us = columns.lease_until_us
        is_over = or_(until_us < bindparam("now_us"), until_us > bindparam("far_us"))
        has_run_out: Any = of_kind.where(
            columns.status == literal_column(f"'{LEASED}'"),
            is_over,
            columns.attempt < literal_column(str(MAX_ATTEMPTS)),
        )
        if database.is_postgresql:
            is_open, has_run_out = (query.with_for_update(skip_locked=True) for query in (is_open, has_run_out))
        self._open = Prepared(database, is_open)
        self._ran_out = Prepared(database, has_run_out)
        self._given = Prepared(
            database,
            select(table).where(
                among(database, columns.poll_id, "polls"), columns.status == literal_column(f"'{LEASED}'")
            ),
        )
        key = {"entity_id": "of_entity", "assignment_id": "of_assignment", "epoch": "of_epoch"}
        changed = ("status", "agent_id", "epoch", "attempt", "lease_until_us", "poll_id")
        self.lease = update_rows(database, table, key, changed)
        mine = (columns.entity_id == bindparam("of_entity")) & (columns.assignment_id == bindparam("of_assignment"))
        self.renew = (
            table.update()
            .where(
                mine,
                columns.epoch == bindparam("of_epoch"),
                columns.agent_id == bindparam("of_agent"),
                columns.status == LEASED,
            )
            .values(lease_until_us=bindparam("new_until"))
        )
        self.busy = (
            select(columns.project, func.count().label("held"))
            .where(columns.status == LEASED)
            .group_by(columns.project)
        )
        self.exhausted = (
            select(*(columns[name] for name in EXHAUSTED))
            .where(columns.status == LEASED, is_over)
            .where(columns.attempt >= MAX_ATTEMPTS)
            .limit(bindparam("limit"))
        )
        self._bodies = _bodies_of(store)
        self._documents = _documents_of(store, children)

    def bodies(self, connection: Connection, run_ids: list[str]) -> list[tuple[Any, ...]]:
        """The runs' bodies."""
        return self._bodies.fetch(connection, {"values": packed(self._database, run_ids)})

    def documents(self, connection: Connection, run_ids: list[str]) -> list[tuple[Any, ...]]:
        """The runs' documents."""
        return self._documents.fetch(connection, {"values": packed(self._database, run_ids)})

    def open(self, connection: Connection, kind: dict[str, Any]) -> list[Any]:
        """Open work of one kind, the most urgent first."""
        return list(map(self._row, self._open.fetch(connection, kind)))

    def ran_out(self, connection: Connection, kind: dict[str, Any]) -> list[Any]:
        """Work of one kind whose lease ran out and that may be tried again."""
        return list(map(self._row, self._ran_out.fetch(connection, kind)))

    def given(self, connection: Connection, polls: list[str]) -> list[Any]:
        """Live leases that these polls were given."""
        return list(map(self._row, self._given.fetch(connection, {"polls": packed(self._database, polls)})))


def _row_maker(table: Table) -> Callable[[Any], Any]:
    """What makes a driver's tuple a row with names."""
    shape: Any = namedtuple("AssignmentRow", table.c.keys())  # type: ignore[misc]
    maker: Callable[[Any], Any] = shape._make
    return maker


def _in_turn(queues: list[list[Any]]) -> list[Any]:
    """The first of each queue, then the second of each, and so on."""
    return [row for round_of_rows in zip_longest(*queues) for row in round_of_rows if row is not None]


def _needs_documents(held: Held) -> bool:
    """Whether the work is put together from what was handed in before; a research slot speaks for itself."""
    return f'"purpose":"{Purpose.RESEARCH}"' not in held.body


def run_of(assignment_id: str) -> str:
    """The run that an assignment belongs to: its id begins with the run's."""
    return assignment_id.rpartition(".")[0]


def _held(row: Any, agent_id: str, epoch: int, attempt: int, until_us: int) -> Held:
    return Held(
        row.entity_id, row.assignment_id, agent_id, epoch, attempt, until_us, row.deadline_us, row.created_at_us,
        row.priority, row.repository_id, row.traceparent, row.body,
    )  # fmt: skip


async def _news_or(news: asyncio.Event, seconds: float) -> None:
    """Wait for news, or until the time is over."""
    try:
        async with asyncio.timeout(seconds):
            await news.wait()
    except TimeoutError:
        return


def _bodies_of(store: Store) -> Prepared:
    entities = store.tables.entities.c
    wanted = select(entities.entity_id, entities.body).where(among(store.database, entities.entity_id))
    return Prepared(store.database, wanted)


def _documents_of(store: Store, children: RunChildren) -> Prepared:
    documents = children.documents.c
    columns = (documents.entity_id, documents.name, documents.body)
    return Prepared(store.database, select(*columns).where(among(store.database, documents.entity_id)))
