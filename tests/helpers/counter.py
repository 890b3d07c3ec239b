"""A whole context in one file: a counter that adds, announces each change, and can be set to ring later."""

import asyncio
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
from sqlalchemy import MetaData

from pointsman.services.chassis.core.caller import Caller, engine_caller
from pointsman.services.chassis.core.config import StoreSettings
from pointsman.services.chassis.core.errors import Refusal, state_forbids
from pointsman.services.chassis.core.machine import Decision, Effect, Event, Machine, SetTimer
from pointsman.services.chassis.engine.deliveries import FiredTimer, PendingEffect
from pointsman.services.chassis.engine.effects import DeliveryPolicy, EffectHandlers, EffectRunner
from pointsman.services.chassis.engine.journal import Journal
from pointsman.services.chassis.engine.ledger import Ledger
from pointsman.services.chassis.engine.timers import TimerRunner
from pointsman.services.chassis.runtime.service import Service
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.store import Store

ROOT = Path(__file__).resolve().parents[2]
for folder in (ROOT / "protos", ROOT / "tests" / "helpers"):
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
counter_pb2: Any
counter_pb2, counter_pb2_grpc = grpc.protos_and_services("counter.proto")
SERVICE = counter_pb2.DESCRIPTOR.services_by_name["CounterService"]
CEILING = 1_000_000


@dataclass(frozen=True, slots=True)
class Counter:
    """How far it has counted, and how often it was told, rung or failed."""

    counter_id: str
    value: int = 0
    told: int = 0
    rung: int = 0
    faults: int = 0


@dataclass(frozen=True, slots=True)
class Add:
    """Count on; a name to tell, a time to ring after."""

    entity_id: str
    amount: int
    tell: tuple[str, ...] = ()
    ring_after_seconds: float | None = None
    stop: bool = False


@dataclass(frozen=True, slots=True)
class Told:
    """An effect was delivered, or has failed for good."""

    entity_id: str
    who: str
    fault: bool = False


@dataclass(frozen=True, slots=True)
class Ring:
    """A timer has fired."""

    entity_id: str


@dataclass(frozen=True, slots=True)
class Added:
    """Payload of `added`."""

    amount: int


@dataclass(frozen=True, slots=True)
class Answer:
    """The counter after the command."""

    value: int
    seq: int


@dataclass(frozen=True, slots=True)
class Tell:
    """Payload of the effect."""

    who: str


def decide(state: Counter | None, command: Any, now: datetime) -> Decision:
    """Add anything that stays below the ceiling."""
    before = state or Counter(command.entity_id)
    seq = before.value + 1
    if isinstance(command, Told):
        name = "fault" if command.fault else "told"
        return Decision([Event(name, "counting", "counting", Tell(command.who))], Answer(before.value, seq))
    if isinstance(command, Ring):
        return Decision([Event("rung", "counting", "counting", Tell(""))], Answer(before.value, seq))
    if before.value + command.amount > CEILING:
        raise state_forbids("counter", command.entity_id, "full", ("watch",), "the counter is full")
    events = [Event("added", "counting" if state else "", "counting", Added(command.amount))]
    ring = command.ring_after_seconds
    timers = [SetTimer("ring", now + timedelta(seconds=ring), Tell("bell"))] if ring is not None else []
    effects = [Effect("tell", Tell(who)) for who in command.tell]
    return Decision(events, Answer(before.value + command.amount, seq), effects, timers, drop_effects=command.stop)


def apply(state: Counter | None, event: Event, _at: datetime) -> Counter:
    """Fold one event."""
    before = state or Counter("")
    if event.name == "added":
        return replace(before, value=before.value + event.data.amount)
    return replace(
        before,
        told=before.told + (event.name == "told"),
        rung=before.rung + (event.name == "rung"),
        faults=before.faults + (event.name == "fault"),
    )


METADATA = MetaData()
MACHINE = Machine(
    kind="counter",
    version=1,
    state_type=Counter,
    decide=decide,
    apply=apply,
    status=lambda _state: "counting",
    run_id=lambda _state: "",
    events={"added": Added, "told": Tell, "rung": Tell, "fault": Tell},
    answers={Add: Answer, Told: Answer, Ring: Answer},
)


class CounterStore:
    """Counters, their journal, and those who were told."""

    def __init__(self, database: Database) -> None:
        self.store = Store(database, METADATA)
        self.ledger = Ledger(self.store, MACHINE)
        self.journal = Journal(self.store)
        self.heard: list[str] = []
        self.refuse: list[Refusal | Exception] = []
        self.handlers = EffectHandlers(self.deliver, self.give_up)
        self.effects = EffectRunner(self.store, self.handlers, DeliveryPolicy(0.2, 0.02, 0.2, max_faults=3))
        self.timers = TimerRunner(self.store, self.fire, 0.2)

    async def deliver(self, effect: PendingEffect) -> None:
        """Tell somebody, unless the test wants it to fail."""
        if self.refuse:
            raise self.refuse.pop(0)
        who = effect.data(Tell).who
        self.heard.append(who)
        caller = engine_caller(effect.project, effect.traceparent, effect.effect_id)
        await self.ledger.submit(caller, Told(effect.entity_id, who), effect)

    async def give_up(self, effect: PendingEffect, _refusal: Refusal) -> None:
        """Tell the machine that it will not happen."""
        caller = engine_caller(effect.project, effect.traceparent, effect.effect_id)
        await self.ledger.submit(caller, Told(effect.entity_id, "", fault=True), effect)

    async def fire(self, timer: FiredTimer) -> None:
        """Ring."""
        caller = engine_caller(timer.project, timer.traceparent, timer.timer_id)
        await self.ledger.submit(caller, Ring(timer.entity_id), timer)


class CounterServicer:
    """The counter over gRPC."""

    def __init__(self, counters: CounterStore) -> None:
        self._counters = counters

    @property
    def ledger(self) -> Ledger[Counter]:
        """Where its commands go."""
        return self._counters.ledger

    async def Add(self, request: Any, caller: Caller) -> Any:
        """Count on."""
        answer = await self._counters.ledger.submit(caller, Add(request.counter_id, request.amount))
        return counter_pb2.AddResponse(value=answer.value, seq=answer.seq)

    async def Fail(self, request: Any, caller: Caller) -> Any:
        """Be a bug."""
        raise RuntimeError(f"secret-dsn {request.counter_id} {caller.project}")

    async def Wait(self, request: Any, caller: Caller) -> Any:
        """Take as many milliseconds as the amount says."""
        await asyncio.sleep(request.amount / 1000)
        return counter_pb2.AddResponse(value=request.amount)

    async def Collect(self, requests: AsyncIterator[Any], caller: Caller) -> Any:
        """Add up what is sent, and keep nothing."""
        return counter_pb2.AddResponse(value=sum([request.amount async for request in requests]))

    async def Watch(self, request: Any, caller: Caller) -> AsyncIterator[Any]:
        """Every change, from a seq on."""
        entity = ("counter", request.counter_id)
        async for [row] in self._counters.journal.tail(caller.project, entity, request.after_seq):
            yield counter_pb2.WatchResponse(seq=row.seq, event=row.event, payload_json=row.payload)


def build(database: Database) -> Service:
    """The counter as a service."""
    counters = CounterStore(database)
    return Service(
        "counter",
        counters.store,
        None,
        [(SERVICE, CounterServicer(counters))],
        [("effects", counters.effects.run), ("timers", counters.timers.run)],
        counters.effects.close,
    )


def build_from_environment() -> Service:
    """The counter on the database that the environment names."""
    return build(Database(StoreSettings().url_for("counter"), "counter"))
