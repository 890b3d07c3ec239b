"""Matches open assignments with waiting agents, in one pass for all of them; leases carry a fencing epoch."""

import asyncio
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any, NamedTuple

import structlog
from sqlalchemy import Connection

from pointsman.services.chassis.core.clock import to_us
from pointsman.services.chassis.core.ids import new_secret, secret_digest
from pointsman.services.chassis.engine.waiting import wait_for_notification
from pointsman.services.chassis.storage.dialect import bind_list
from pointsman.services.chassis.storage.store import FAR_SECONDS, Store
from pointsman.services.orchestrator import metrics
from pointsman.services.orchestrator.domain.enums import Capability, Purpose
from pointsman.services.orchestrator.domain.views import LeaseView, PollResult, ProviderLimit
from pointsman.services.orchestrator.store.accounts import Accounts
from pointsman.services.orchestrator.store.agents import Holder
from pointsman.services.orchestrator.store.children import ASSIGNMENTS, LEASED, RunChildren
from pointsman.services.orchestrator.store.lease_quota import LeaseQuota, Room, has_room, take_room
from pointsman.services.orchestrator.store.offer import Offer
from pointsman.services.orchestrator.store.others import NO_RESEARCHERS, NOBODY, Others, Researchers, sought
from pointsman.services.orchestrator.store.polling import (
    NOTHING_GIVEN,
    LeaseKey,
    Limits,
    PollRequest,
    Waiter,
    held_by,
    kinds_wanted,
    run_of,
)
from pointsman.services.orchestrator.store.queue import Kind, Queue

LEAST_SECONDS, ASKED_SECONDS = 0.005, 0.1
SAFETY_SECONDS = 1.0
SCANS = (1, 8, 64, 512)
"""How many times as much as is wanted is looked at: just that, and more only where some of it fits nobody."""
LOOK_BACK_US = 200_000
LEASE_SECRET = "lease"
RESEARCHING = frozenset({Capability.RESEARCH, Capability.SURVEY})

log = structlog.get_logger()


class AssignmentMatcher:
    """Leases each open assignment to exactly one of the agents that poll for its kind."""

    def __init__(self, store: Store, children: RunChildren, accounts: Accounts, terms: "Terms") -> None:
        self._store = store
        self._accounts = accounts
        lease_seconds, limits = terms
        self._lease_us = int(lease_seconds * 1_000_000)
        self._limits = limits
        self._looked_back_us = 0
        self._waiting: list[Waiter] = []
        self._changing = threading.Lock()
        self._matching: _Match | None = None
        """The pass that was asked for and has not begun."""
        self._passes: set[asyncio.Task[None]] = set()
        self._lost: deque[Any] = deque()
        """Leases that ran out and were given to another agent."""
        self._bodies, self._present = children.bodies, children.present
        self._sql = Queue(store, children)
        self._quota = LeaseQuota(store, children, limits.per_principal)

    async def take(self, wanted: PollRequest, wait_seconds: float) -> PollResult:
        """Leases for an agent: at once if there is work, else as soon as some comes, at most after the wait."""
        return await self.enter(wanted, wait_seconds).future

    def enter(self, wanted: PollRequest, wait_seconds: float) -> Waiter:
        """Adds a waiting agent; a caller that leaves early cancels the future."""
        loop = asyncio.get_running_loop()
        waiter = Waiter(wanted, loop.create_future(), loop.time() + wait_seconds)
        with self._changing:
            self._waiting.append(waiter)
        self._match_soon()
        return waiter

    def hurry(self, waiter: Waiter) -> None:
        """Ends a wait early: the next pass answers it with what there is."""
        if not waiter.future.done():
            waiter.deadline = asyncio.get_running_loop().time()
            self._match_soon()

    async def run(self) -> None:
        """Runs the loop: matches after each notification and periodically, and answers agents whose wait is over."""
        with self._store.hub.subscribed(ASSIGNMENTS) as news:
            while True:
                await wait_for_notification(news, self._patience())
                news.clear()
                if self._waiting:
                    self._match_soon()

    def _match_soon(self) -> None:
        """Match in the next turn of the event loop, so that it joins the commit of whatever was handed in just now.

        Those who come before the pass begins take part in it: the writing thread looks who waits only then.
        """
        if self._matching is None:
            self._matching = _Match(self)
            task = asyncio.get_running_loop().create_task(self._match(self._matching))
            self._passes.add(task)
            task.add_done_callback(self._passes.discard)

    def _patience(self) -> float:
        """Seconds until the next wait is over or the next periodic pass; no limit while a pass is requested."""
        now = asyncio.get_running_loop().time()
        least = LEAST_SECONDS if self._matching is None else ASKED_SECONDS
        with self._changing:
            soonest = min((waiter.deadline - now for waiter in self._waiting), default=SAFETY_SECONDS)
        return max(least, min(soonest, SAFETY_SECONDS))

    async def _match(self, match: "_Match") -> None:
        """Runs one pass for all waiting agents; each takes part in at least one."""
        try:
            await self._store.write(match)
        except Exception as error:  # noqa: BLE001 - waiting polls stay queued, and the next pass tries again
            self._matching = None if self._matching is match else self._matching
            log.error("matching_failed", error=repr(error))
        else:
            self._looked_back_us = match.looked_back_us or self._looked_back_us
            for row in match.lost:
                metrics.lease_expiries.labels(row.capability).inc()
                self._lost.append(row)
            now = asyncio.get_running_loop().time()
            for waiter in match.waiting:
                waiter.answer(now)
        with self._changing:
            self._waiting[:0] = [waiter for waiter in match.waiting if not waiter.future.done()]

    def gather(self, match: "_Match") -> list[Waiter]:
        """Returns the agents that wait now; a later one requests another pass. Runs in the writing thread."""
        with self._changing:
            self._matching = None if self._matching is match else self._matching
            waiting, self._waiting = self._waiting, []
        return [waiter for waiter in waiting if not waiter.future.done()]

    def lease(self, connection: Connection, match: "_Match") -> None:
        """Leases available assignments to waiting agents. Runs in the writing thread, perhaps again after a rollback."""
        now_us, waiting = to_us(self._store.database.clock.now()), match.waiting
        match.looked_back_us = 0
        match.lost.clear()
        for waiter in waiting:
            waiter.given.clear()
            waiter.bundle, waiter.refusal = NOTHING_GIVEN, None
        self._repeat(connection, waiting)
        hungry = [waiter for waiter in waiting if not waiter.given]
        usable = self._accounts.usable(connection, [waiter.wanted for waiter in hungry])
        hungry = [waiter for waiter, may in zip(hungry, usable, strict=True) if may]
        if hungry:
            self._offer(connection, hungry, now_us, match)
        self._bundle(connection, [waiter for waiter in waiting if waiter.given])

    def _bundle(self, connection: Connection, served: Sequence[Waiter]) -> None:
        """Adds to each agent's leases their runs, and the documents of those runs."""
        run_ids = sorted({held.run_id for waiter in served for held in waiter.given})
        if not run_ids:
            return
        runs = {run_id: self._bodies.run(body) for run_id, body in self._sql.bodies(connection, run_ids)}
        reading = sorted({held.run_id for w in served for held in w.given if _needs_documents(held)})
        documents: dict[str, dict[str, str]] = {run_id: {} for run_id in reading}
        for run_id, name, body in self._sql.documents(connection, reading) if reading else ():
            documents[run_id][name] = body
        for waiter in served:
            waiter.bundle = PollResult(tuple(waiter.given), runs, documents)

    def _repeat(self, connection: Connection, waiting: Sequence[Waiter]) -> None:
        """A poll that was asked before gets the leases it was given, while they live, each with a further secret.

        The secret of the first answer is nowhere to be read, and that answer may still arrive: both stay good.
        """
        by_poll = {waiter.wanted.poll_id: waiter for waiter in waiting}
        for row in self._sql.given(connection, list(by_poll)):
            secret = new_secret(LEASE_SECRET)
            further = {"of_entity": row.entity_id, "of_assignment": row.assignment_id, "of_epoch": row.epoch}
            further |= {"of_poll": row.poll_id, "new_digest": secret_digest(secret)}
            if connection.execute(self._sql.add_secret, further).rowcount == 1:
                given = _held(row, row.agent_id, row.epoch, row.attempt, row.lease_until_us)
                by_poll[row.poll_id].given.append(replace(given, secret=secret))

    def _offer(self, connection: Connection, waiting: Sequence[Waiter], now_us: int, match: "_Match") -> None:
        """Offers as many assignments as are wanted; more, where there are more and an agent got fewer than it wanted."""
        over = self._over(now_us) if abs(now_us - self._looked_back_us) >= LOOK_BACK_US else None
        if over is not None:
            match.looked_back_us = now_us
        room = self._quota.room(connection, waiting, now_us)
        able = self._refuse_full(waiting, room)
        leases: list[dict[str, Any]] = []
        for scan in SCANS if able else ():
            rows, is_all = self._available(connection, able, scan, over)
            others = self._others(connection, rows, able)
            offer = Offer(others, dict(room), match.lost)
            leases = self._hand_out(self._admitted(connection, rows), able, now_us, offer)
            if is_all or all(waiter.is_served for waiter in able):
                break
        if leases:
            self._sql.lease.run(connection, leases)
            self._quota.given(leases)
            accounts = {waiter.wanted.poll_id: waiter.wanted.holder.account for waiter in able}
            self._accounts.limited.taken(connection, leases, accounts)

    def _refuse_full(self, waiting: Sequence[Waiter], room: Room) -> list[Waiter]:
        """Those who may be given something; the others learn why not."""
        for waiter in waiting:
            if not (has_room(room, waiter.wanted.holder) or waiter.wanted.waits_for_room):
                waiter.refusal = self._quota.refusal(waiter.wanted.holder)
        return [waiter for waiter in waiting if has_room(room, waiter.wanted.holder)]

    def _others(self, connection: Connection, rows: Sequence[Any], waiting: Sequence[Waiter]) -> Others:
        """Who made what is to be judged, where the version before did not write it down; who researches, if one waits."""
        judged = sorted({row.entity_id for row in rows if row.excluded_agent and not row.excluded_principals})
        researches = any(not RESEARCHING.isdisjoint(waiter.wanted.capabilities) for waiter in waiting)
        return Others(
            self._sql.authors(connection, judged) if judged else NOBODY,
            Researchers(self._present(connection)) if researches else NO_RESEARCHERS,
        )

    def _hand_out(
        self, rows: Sequence[Any], waiting: Sequence[Waiter], now_us: int, offer: Offer
    ) -> list[dict[str, Any]]:
        """Leases each assignment to the first agent that it fits; returns the changed rows."""
        for waiter in waiting:
            waiter.given.clear()
        offer.lost.clear()
        leases: list[dict[str, Any]] = []
        hungry, until_us = list(waiting), now_us + self._lease_us
        for row, taker in offer.takers(rows, hungry):
            if row.status == LEASED:
                offer.lost.append(row)
            holder, secret = taker.wanted.holder, new_secret(LEASE_SECRET)
            given = _held(row, holder.agent_id, row.epoch + 1, row.attempt + 1, until_us)
            taker.given.append(replace(given, secret=secret))
            take_room(offer.room, holder)
            leases.append(
                {
                    **row._asdict(), "status": LEASED, "agent_id": holder.agent_id, "epoch": row.epoch + 1,
                    "attempt": row.attempt + 1, "lease_until_us": until_us, "poll_id": taker.wanted.poll_id,
                    "principal": holder.principal, "principal_epoch": row.epoch + 1,
                    "apart_epoch": row.epoch + 1,
                    "secret_digests": secret_digest(secret), "secret_epoch": row.epoch + 1,
                    "body": "",  # the row is there and keeps its own: packing it again costs more than the lease
                }
            )  # fmt: skip
            if taker.is_served:
                hungry.remove(taker)
                if not hungry:
                    break
        return leases

    def _available(
        self, connection: Connection, waiting: Sequence[Waiter], scan: int, over: dict[str, int] | None
    ) -> tuple[Sequence[Any], bool]:
        """Reads open and expired assignments of each wanted kind, most urgent first, and whether these are all."""
        kinds = kinds_wanted(waiting)
        rows: list[Any] = []
        is_all = True
        for (project, capability, runs), (limit, repositories) in kinds.items():
            kind = Kind(project, capability, scan * limit, repositories, runs)
            pages = [self._sql.open(connection, kind)]
            if over is not None:
                pages.append(self._sql.ran_out(connection, kind, over))
            is_all = is_all and all(len(page) < kind.limit for page in pages)
            for page in pages:
                rows += page
        if any(waiter.wanted.first_run_ids for waiter in waiting):
            rows = list({row.assignment_id: row for row in rows}.values())
        if len(kinds) > 1 or over is not None:
            rows.sort(key=lambda row: (row.priority, row.created_at_us, row.assignment_id))
        return rows, is_all

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

    def renew(
        self, connection: Connection, holder: Holder, keys: Sequence[LeaseKey], granted: frozenset[Capability]
    ) -> tuple[int, list[str]]:
        """Extends leases of work that is still granted to the holder; returns the new expiry and the lost assignments."""
        until_us = to_us(self._store.database.clock.now()) + self._lease_us
        may_do, lost = bind_list(self._store.database, sorted(sought(granted))), []
        for key in keys:
            parameters = {**held_by(holder, key), "of_capabilities": may_do, "new_until": until_us}
            if self._sql.renew.start(connection, parameters).rowcount != 1:
                lost.append(key.assignment_id)
        return until_us, lost

    def repository_of(self, connection: Connection, key: LeaseKey) -> str:
        """The repository of an assignment; empty where it has none."""
        named = {"of_entity": run_of(key.assignment_id), "of_assignment": key.assignment_id}
        return str(connection.execute(self._sql.repository, named).scalar() or "")

    def give_back(
        self, connection: Connection, holder: Holder, key: LeaseKey, limit: ProviderLimit | None = None
    ) -> bool:
        """Returns a leased assignment to the queue without counting the attempt; tells whether the agent held it.

        With a limit, the account of the agent is paused in the same commit; only a holder of a lease can do that.
        """
        held = connection.execute(self._sql.give_back, held_by(holder, key)).rowcount == 1
        rests = self._accounts.pause(connection, holder, limit) if held and limit is not None else None
        if rests is not None:
            self._accounts.limited.returned(connection, {**rests, **self._sql.named(connection, key)})
        if held:
            self._store.notify({ASSIGNMENTS})
        return held

    def exhausted(self, connection: Connection, limit: int = 100) -> Sequence[Any]:
        """Assignments whose last lease ran out."""
        over = self._over(to_us(self._store.database.clock.now()))
        return connection.execute(self._sql.exhausted, {**over, "limit": limit}).all()

    def lost(self, connection: Connection) -> Sequence[Any]:
        """Leases that ran out though another attempt is left: taken by another agent since the last look, or by nobody."""
        taken = [self._lost.popleft() for _ in range(len(self._lost))]
        return [*taken, *connection.execute(self._sql.lost, self._over(to_us(self._store.database.clock.now())))]

    def _over(self, now_us: int) -> dict[str, int]:
        """When leases are over: those of the past, and those of a clock that was ahead and has been set right since."""
        return {"now_us": now_us, "far_us": now_us + max(10 * self._lease_us, FAR_SECONDS * 1_000_000)}


class Terms(NamedTuple):
    """How long a lease lasts, and how many there may be."""

    lease_seconds: float
    limits: Limits


class _Match:
    """One matching pass, as a job of the writing thread that joins other writes in a commit; repeatable for the same agents."""

    def __init__(self, matcher: AssignmentMatcher) -> None:
        self._matcher = matcher
        self._has_begun = False
        self.waiting: list[Waiter] = []
        self.lost: list[Any] = []
        """Leases that ran out and were given to another agent."""
        self.looked_back_us = 0
        """When leases that ran out were looked for; 0 means not in this pass."""

    def __call__(self, connection: Connection) -> None:
        """Runs the pass."""
        if not self._has_begun:
            self._has_begun = True
            self.waiting = self._matcher.gather(self)
        if self.waiting:
            self._matcher.lease(connection, self)


def _in_turn(queues: list[list[Any]]) -> list[Any]:
    """The first of each queue, then the second of each, and so on."""
    return [row for round_of_rows in zip_longest(*queues) for row in round_of_rows if row is not None]


def _needs_documents(held: LeaseView) -> bool:
    """Whether the work is put together from what was handed in before; a research slot speaks for itself."""
    return f'"purpose":"{Purpose.RESEARCH}"' not in held.body


def _held(row: Any, agent_id: str, epoch: int, attempt: int, until_us: int) -> LeaseView:
    return LeaseView(
        row.entity_id, row.assignment_id, agent_id, epoch, attempt, until_us, row.deadline_us, row.created_at_us,
        row.priority, row.repository_id, row.traceparent, row.body,
    )  # fmt: skip
