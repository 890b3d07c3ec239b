"""Background work: effects to peers and other runs, timers, leases that ran out, retention."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pointsman.services.chassis.core.caller import engine_caller
from pointsman.services.chassis.core.clock import from_us, to_us
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.core.ids import new_id
from pointsman.services.chassis.engine.deliveries import FiredTimer, PendingEffect
from pointsman.services.chassis.engine.effects import DeliveryPolicy, EffectHandlers, EffectRunner
from pointsman.services.chassis.engine.timers import TimerRunner
from pointsman.services.orchestrator import metrics
from pointsman.services.orchestrator.config import OrchestratorSettings
from pointsman.services.orchestrator.domain import commands, events
from pointsman.services.orchestrator.domain.calls import CALLS
from pointsman.services.orchestrator.domain.calls.epics import Epic
from pointsman.services.orchestrator.domain.calls.other_runs import OtherRun, StartNext, TellEntry, TellSchedule
from pointsman.services.orchestrator.domain.ending import PARKED
from pointsman.services.orchestrator.domain.enums import Call, Capability, Resume, State
from pointsman.services.orchestrator.domain.landing import commands as landing
from pointsman.services.orchestrator.domain.landing.machine import START_LINK, StartLink
from pointsman.services.orchestrator.domain.landing.stacking import TELL_ABOVE
from pointsman.services.orchestrator.domain.limit_events import AccountPaused, WorkTakenUp
from pointsman.services.orchestrator.domain.model import Order
from pointsman.services.orchestrator.domain.run import run_id_for
from pointsman.services.orchestrator.domain.schedules.machine import NEXT, START_RUN, StartRun
from pointsman.services.orchestrator.peers import REMOTE, Peers
from pointsman.services.orchestrator.peers.workflow import load_epic, next_epic
from pointsman.services.orchestrator.scheduling import Scheduling
from pointsman.services.orchestrator.store import OrchestratorStore
from pointsman.services.orchestrator.submit import SubmitMessage
from pointsman.services.orchestrator.wire import decode

RETENTION_BATCH = 100
RETENTION_PAUSE_SECONDS = 600.0
INDEX_PAUSE_SECONDS = 300.0
JUDGED_BY = frozenset({Capability.CODE, Capability.REVIEW, Capability.VERIFY})
"""Whom a linked run waits for if its source did: a repair is one task, and is judged as the work was."""
_GONE = frozenset({Reason.STATE_FORBIDS, Reason.NOT_FOUND})


class PeerFaultError(Exception):
    """A peer has a bug: no refusal for good, it may go better the next time."""


class Engine:
    """What drives runs when nobody calls."""

    def __init__(self, store: OrchestratorStore, peers: Peers, settings: OrchestratorSettings) -> None:
        self._store = store
        self._peers = peers
        self._settings = settings
        self.scheduling = Scheduling(store, SubmitMessage(store, peers, settings))
        handlers = EffectHandlers(self.deliver, self.give_up)
        self.effects = EffectRunner(store.store, handlers, DeliveryPolicy())
        self.timers = TimerRunner(store.store, self.fire)

    @property
    def loops(self) -> Sequence[tuple[str, Callable[[], Awaitable[None]]]]:
        """The loops of the service."""
        return (
            ("effects", self.effects.run),
            ("timers", self.timers.run),
            ("exchange", self._store.matcher.run),
            ("sweep", self.sweep),
            ("retention", self.retention),
            ("run index", self.index_runs),
        )

    async def deliver(self, effect: PendingEffect) -> None:
        """Make the call; its answer and the acknowledgement are one commit."""
        if effect.kind == START_LINK:
            await self._start_linked_run(effect, effect.data(StartLink))
            return
        if effect.kind == TELL_ABOVE:
            await self._tell_entry(effect, effect.data(landing.PutLayer))
            return
        if effect.kind == START_RUN:
            await self.scheduling.start_run(effect, effect.data(StartRun))
            return
        kind = Call(effect.kind)
        data = effect.data(CALLS[kind].request)
        try:
            if kind in LOCAL:
                answer = await LOCAL[kind](self, effect, data)
            else:
                answer = await REMOTE[kind](self._peers, effect, data)
        except Refusal as refusal:
            if refusal.reason is Reason.INTERNAL:
                raise PeerFaultError(refusal.message) from refusal
            raise
        # what was only sent has no call_id, and what has no answer ends its call: the run hears of neither again
        answer = events.CallEnded(data.call_id) if answer is None else answer
        await self._acknowledge(effect, commands.CallAnswered(effect.entity_id, answer))

    async def give_up(self, effect: PendingEffect, refusal: Refusal) -> None:
        """Tell the run, or the entry, that it was refused for good."""
        if effect.kind == START_LINK:
            await self._tell_entry(effect, landing.LinkRefused(effect.entity_id, refusal.message))
            return
        if effect.kind == START_RUN:
            await self.scheduling.refuse(effect, effect.data(StartRun), refusal.message)
            return
        call_id = effect.data(CALLS[Call(effect.kind)].request).call_id
        reason = f"{effect.kind}: {refusal.message}"
        await self._acknowledge(effect, commands.CallRefused(effect.entity_id, call_id, reason))

    async def _acknowledge(self, effect: PendingEffect, command: Any) -> None:
        caller = engine_caller(effect.project, effect.traceparent, effect.effect_id)
        await self._store.ledger.submit(caller, command, effect)

    async def fire(self, timer: FiredTimer) -> None:
        """A timer of a run or of a schedule came due."""
        if timer.name == NEXT:
            await self.scheduling.come_due(timer)
            return
        caller = engine_caller(timer.project, timer.traceparent, timer.timer_id)
        await self._store.ledger.submit(caller, commands.TimerFired(timer.entity_id, timer.name), timer)

    async def _tell_run(self, effect: PendingEffect, command: Any) -> None:
        """Say something to another run; one that has ended meanwhile does not matter."""
        caller = engine_caller(effect.project, effect.traceparent, f"{effect.effect_id}:other")
        try:
            await self._store.ledger.submit(caller, command)
        except Refusal as refusal:
            if refusal.reason not in _GONE:
                raise

    async def park_run(self, effect: PendingEffect, data: OtherRun) -> None:
        """End another run so that its epic can be resumed."""
        await self._tell_run(effect, commands.Cancel(data.run_id, PARKED, resumable=True))

    async def merge_into_run(self, effect: PendingEffect, data: OtherRun) -> None:
        """Add the message to what another run is to do."""
        await self._tell_run(effect, commands.ChangeRequirement(data.run_id, data.text))

    async def start_next(self, effect: PendingEffect, data: StartNext) -> None:
        """Start the run of the next epic, on the terms of the one that ended."""
        epic = await next_epic(self._peers, effect, data.epic_id)
        if epic is not None:
            ended = (await self._store.view(effect.project, effect.entity_id)).run
            order = _next_order(ended.order, epic.epic_id, planned=epic.planned)
            if epic.epic_id != ended.queued_epic_id:
                order = replace(order, criteria=tuple(item for item in order.criteria if item.command))
            command = commands.Submit(new_id("run", self._store.now), epic.title, order, ended.budget)
            await self._tell_run(effect, command)

    async def _start_linked_run(self, effect: PendingEffect, data: StartLink) -> None:
        """Start the run of an entry on the terms of the run whose work it lands; a second try finds it there."""
        source = (await self._store.view(effect.project, data.run_id)).run
        run_id = run_id_for(effect.project, f"{effect.entity_id}/{data.number}")
        order = replace(
            source.order, base_commit=data.base_commit, parent_entry=effect.entity_id, session_id="", rival_run_id="",
            epic_id="", resume=Resume.NO, auto_resume=False, reserved=False, resolver=data.resolver, scheduled=None,
            crew=_crew_of_link(source.order.crew, resolver=data.resolver),
            best_of=0 if data.resolver else source.order.best_of,
        )  # fmt: skip
        budget = replace(source.budget, tokens=data.max_tokens, cost_micros=data.max_cost_micros)
        caller = engine_caller(effect.project, effect.traceparent, f"{effect.effect_id}:other")
        await self._store.ledger.submit(caller, commands.Submit(run_id, data.intent, order, budget))
        await self._tell_entry(effect, landing.LinkStarted(effect.entity_id, run_id))

    async def _tell_entry(self, effect: PendingEffect, command: Any) -> None:
        caller = engine_caller(effect.project, effect.traceparent, effect.effect_id)
        await self._store.entries.ledger.submit(caller, command, effect)

    async def tell_entry(self, effect: PendingEffect, data: TellEntry) -> None:
        """Tell an entry how its linked run has ended, with its work where it is COMPLETE."""
        run = (await self._store.view(effect.project, effect.entity_id)).run
        made = decode.landing.work_of(run) if run.status is State.COMPLETE and run.accepted_commit else None
        spent = (run.spent.tokens, run.spent.cost_micros)
        command = landing.LinkEnded(data.entry_id, run.run_id, str(run.status), made, *spent)
        caller = engine_caller(effect.project, effect.traceparent, f"{effect.effect_id}:other")
        try:
            await self._store.entries.ledger.submit(caller, command)
        except Refusal as refusal:
            if refusal.reason not in _GONE:
                raise

    async def tell_schedule(self, effect: PendingEffect, _data: TellSchedule) -> None:
        """Tell the schedule that started a run how it has ended."""
        run = (await self._store.view(effect.project, effect.entity_id)).run
        await self.scheduling.run_ended(effect, run)

    async def read_epic(self, effect: PendingEffect, data: Epic) -> Any:
        """The epic's plan as the run that planned it left it, and what of it is done."""
        loaded = await load_epic(self._peers, effect, data.epic_id)
        documents = await self._store.store.database.read(
            lambda connection: self._store.documents(connection, loaded.workflow.run_id)
        )
        return decode.peers.epic_loaded(data, loaded, documents.get("plan", ""))

    async def sweep(self) -> None:
        """End assignments whose last lease ran out, and tell the runs which other leases did."""
        reported: set[tuple[str, int]] = set()
        while True:
            for row in await self._store.store.database.read(self._store.matcher.exhausted):
                request_id = f"expire:{row.assignment_id}:{row.epoch}"
                caller = engine_caller(row.project, row.traceparent, request_id)
                await self._store.ledger.submit(
                    caller, commands.ExpireAssignment(row.entity_id, row.assignment_id, row.epoch)
                )
                metrics.lease_expiries.labels(row.capability).inc()
            lost = await self._store.store.database.read(self._store.matcher.lost)
            for row in lost:
                if (row.assignment_id, row.epoch) not in reported:
                    await self._tell_of_lost_lease(row)
            reported = {(row.assignment_id, row.epoch) for row in lost}
            await self.tell_of_limits()
            await asyncio.sleep(self._settings.sweep_seconds)

    async def _tell_of_lost_lease(self, row: Any) -> None:
        command = commands.LoseLease(row.entity_id, row.assignment_id, row.agent_id, row.attempt)
        await self._tell_of_lease(row, f"lose:{row.assignment_id}:{row.epoch}", command)

    async def _tell_of_lease(self, row: Any, request_id: str, command: Any) -> None:
        """Once for each lease, which the idempotency key names; a run that is gone by now does not matter."""
        try:
            await self._store.ledger.submit(engine_caller(row.project, row.traceparent, request_id), command)
        except Refusal as refusal:
            if refusal.reason not in _GONE:
                raise

    async def tell_of_limits(self) -> None:
        """Tell runs which work rests because of a provider's limit, and who took it up; a crash in between tells the same again."""
        limited = self._store.accounts.limited
        for row in await self._store.store.database.read(limited.untold):
            key, named = f"{row.assignment_id}:{row.epoch}", (row.entity_id, row.assignment_id)
            if not row.reported:
                until = from_us(row.until_us)
                paused = AccountPaused(row.assignment_id, row.agent_id, row.account, until, row.kind, row.reason)
                await self._tell_of_lease(row, f"rest:{key}", commands.NoteLimit(*named, paused))
            if row.taken_epoch:
                taken = WorkTakenUp(row.assignment_id, row.taken_agent, row.taken_account, row.account)
                await self._tell_of_lease(row, f"take:{key}", commands.NoteLimit(*named, taken))
            await self._store.store.write(lambda connection: limited.reported(connection, row))  # noqa: B023

    async def retention(self) -> None:
        """Forget runs that ended long ago, in all four stores, this one last."""
        while True:
            before_us = to_us(self._store.now) - int(self._settings.retention_days * 86_400_000_000)
            old = await self._store.store.database.read(
                lambda connection: self._store.ended_before(connection, before_us, RETENTION_BATCH)  # noqa: B023
            )
            for row in old:
                await self._peers.forget_run(row.project, row.entity_id)
                await self._store.store.write(
                    lambda connection: self._store.forget(connection, row.entity_id, before_us)  # noqa: B023
                )
            await self._store.store.write(
                lambda connection: self._store.schedules.forget_deleted(connection, before_us)  # noqa: B023
            )
            await self._store.store.write(
                lambda connection: self._store.artifacts.forget_orphans(connection, before_us)  # noqa: B023
            )
            await asyncio.sleep(RETENTION_PAUSE_SECONDS if len(old) < RETENTION_BATCH else 0)

    async def index_runs(self) -> None:
        """Fill in what a replica of the version before does not write into the index of runs."""
        while True:
            more = await self._store.run_index.fill()
            await asyncio.sleep(0 if more else INDEX_PAUSE_SECONDS)


def _crew_of_link(crew: Sequence[Capability], *, resolver: bool) -> tuple[Capability, ...]:
    """Whom a linked run waits for: coder and judges of its source, or a resolver instead of the coder."""
    writer = Capability.RESOLVE if resolver else Capability.CODE
    return tuple(writer if one is Capability.CODE else one for one in crew if one in JUDGED_BY)


def _next_order(order: Order, epic_id: str, *, planned: bool) -> Order:
    resume = Resume.YES if planned else Resume.NO
    return replace(order, epic_id=epic_id, resume=resume, rival_run_id="", session_id="", scheduled=None)


LOCAL: Mapping[Call, Callable[[Engine, PendingEffect, Any], Awaitable[Any]]] = {
    Call.PARK_RUN: Engine.park_run,
    Call.MERGE_INTO_RUN: Engine.merge_into_run,
    Call.START_NEXT: Engine.start_next,
    Call.LOAD_EPIC: Engine.read_epic,
    Call.TELL_ENTRY: Engine.tell_entry,
    Call.TELL_SCHEDULE: Engine.tell_schedule,
}
"""Calls that need this service's own store; all others go to a peer alone."""
