"""The four services as processes: built once, killed at any step, started again on what they had committed."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context, copy_context
from copy import copy
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

from google.protobuf.descriptor import ServiceDescriptor

from pointsman.api.orchestrator.v1 import agent_pb2, orchestrator_pb2
from pointsman.api.pipeline.v1 import pipeline_pb2
from pointsman.api.router.v1 import router_pb2
from pointsman.api.workflow.v1 import workflow_pb2
from pointsman.services.chassis.engine import audit, effects, timers
from pointsman.services.chassis.engine.effects import DeliveryPolicy
from pointsman.services.chassis.engine.timers import TimerRunner
from pointsman.services.chassis.storage.migrate import migrate
from pointsman.services.chassis.storage.store import Store
from pointsman.services.orchestrator import __main__ as orchestrator_main
from pointsman.services.orchestrator.config import OrchestratorSettings
from pointsman.services.orchestrator.loops import Engine
from pointsman.services.orchestrator.peers import Channels, Peers
from pointsman.services.orchestrator.servicer import AgentServicer, OrchestratorServicer
from pointsman.services.orchestrator.store import OrchestratorStore, listing, matcher
from pointsman.services.pipeline import __main__ as pipeline_main
from pointsman.services.pipeline.config import PipelineSettings
from pointsman.services.pipeline.loops import PipelineTimers
from pointsman.services.pipeline.servicer import PipelineServicer
from pointsman.services.pipeline.store import PipelineStore
from pointsman.services.router import __main__ as router_main
from pointsman.services.router.config import RouterSettings
from pointsman.services.router.servicer import RouterServicer
from pointsman.services.router.store import RouterStore
from pointsman.services.workflow import __main__ as workflow_main
from pointsman.services.workflow.config import WorkflowSettings
from pointsman.services.workflow.servicer import WorkflowServicer
from pointsman.services.workflow.store import WorkflowStore
from tests.robustness.simulation.network import Door, Wire
from tests.robustness.simulation.storage import MemoryDatabase, SimWriter, arm, fresh_hub
from tests.robustness.simulation.world import HERE, Chance, SimClock

LEASE_SECONDS = 20.0
POLL_SECONDS = 10.0
SETTINGS = OrchestratorSettings(lease_seconds=LEASE_SECONDS, sweep_seconds=POLL_SECONDS)
PLAIN = (list, dict, set, tuple, int, float, str, type(None))
OURS = "pointsman.services."
CONTEXTS = ("router", "workflow", "pipeline", "orchestrator")
OTHERS = RouterSettings(), WorkflowSettings(), PipelineSettings()
STATEMENTS = (
    (effects, "_EffectStatements"), (timers, "_TimerStatements"), (audit, "Journal"), (audit, "_Statements"),
    (listing, "RunQueries"),
)  # fmt: skip
"""What only builds statements for a store: the same for every process that is started on it."""


class Stores:
    """The rows of all four services; built once, emptied for each seed."""

    def __init__(self) -> None:
        self.clock = SimClock()
        databases = {name: MemoryDatabase(name, self.clock) for name in CONTEXTS}
        mains = (router_main, workflow_main, pipeline_main, orchestrator_main)
        for main, database in zip(mains, databases.values(), strict=True):
            migrate(database, main.MIGRATIONS)
        self.router = RouterStore(databases["router"])
        self.workflow = WorkflowStore(databases["workflow"])
        self.pipeline = PipelineStore(databases["pipeline"])
        self.orchestrator = OrchestratorStore(databases["orchestrator"], LEASE_SECONDS)
        matcher.SAFETY_SECONDS = POLL_SECONDS
        for module, name in STATEMENTS:
            vars(module)[name] = cache(vars(module)[name])
        for store in self.all.values():
            store.writer.close()
        self.memories = {name: Memory(getattr(self, name)) for name in CONTEXTS}

    @property
    def all(self) -> dict[str, Store]:
        """Each context's store."""
        return {name: getattr(self, name).store for name in CONTEXTS}

    @property
    def written(self) -> dict[str, Store]:
        """The stores in which anything has happened."""
        return {name: store for name, store in self.all.items() if cast("MemoryDatabase", store.database).is_written}

    def reset(self, chance: Chance) -> None:
        """No rows, and the time of the beginning."""
        self.clock.__init__()  # type: ignore[misc]
        for store in self.all.values():
            assert isinstance(store.database, MemoryDatabase)
            store.database.chance = chance
            store.database.empty(store.metadata.tables, store.tables.head.name)


class Memory:
    """What the parts of a service know beside their rows; a process that starts knows none of it."""

    def __init__(self, root: object) -> None:
        self._fresh: list[tuple[dict[str, Any], dict[str, Any]]] = []
        seen, waiting = {id(root)}, [root]
        while waiting:
            part = vars(waiting.pop())
            self._fresh.append((part, {name: copy(value) for name, value in part.items() if isinstance(value, PLAIN)}))
            inner = [
                value for value in part.values() if type(value).__module__.startswith(OURS) and id(value) not in seen
            ]
            waiting += [value for value in inner if hasattr(value, "__dict__")]
            seen.update(map(id, inner))

    def forget(self) -> None:
        """Be as when everything was built."""
        for part, fresh in self._fresh:
            part.update({name: copy(value) for name, value in fresh.items()})


@dataclass(frozen=True, slots=True)
class Parts:
    """What a process is made of when it starts."""

    servicers: Sequence[tuple[ServiceDescriptor, object]]
    loops: Sequence[Callable[[], Awaitable[None]]] = ()


class Process:
    """One service while it lives; `die` ends it in the middle of whatever it does."""

    def __init__(self, name: str, store: Store, build: Callable[[], Parts], world: "World") -> None:
        self.name = name
        self._store = store
        self._build = build
        self._world = world
        self.context: Context = copy_context()
        self.context.run(HERE.set, name)
        self.tasks: dict[asyncio.Task[Any], None] = {}
        self.door = Door(self.context, world.bugs)
        self.deaths = 0

    async def start(self) -> None:
        """Take over what the process before has left, and serve."""
        store = self._store
        self._world.stores.memories[self.name].forget()
        self.writer = SimWriter(store, self._world.chance)
        store.writer = self.writer
        store.hub = fresh_hub(self.writer)
        self._starting = asyncio.get_running_loop().create_task(self._boot(), context=self.context)
        await asyncio.wait((self._starting,))

    async def _boot(self) -> None:
        self._store.start()
        if self._store is self._world.stores.written.get(self.name):
            await self._store.release_stale_leases()
        parts = self._build()
        self.door = Door(self.context, self._world.bugs)
        for descriptor, servicer in parts.servicers:
            self.door.offer(descriptor, servicer)
        for work in parts.loops:
            asyncio.get_running_loop().create_task(self._supervised(work))
        self.door.open = True

    async def _supervised(self, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await work()
            except Exception as error:  # noqa: BLE001 - as the chassis' loops do
                if not self._world.chance.outages:
                    self._world.bugs.append(f"{self.name}: a loop ended: {error!r}")
            await asyncio.sleep(1.0)

    def die(self) -> None:
        """End at once; a new process comes up after a while."""
        if self.writer.dead:
            return
        self.deaths += 1
        self.writer.dead = True
        self.door.open = False
        self._world.loop.call_soon(self._world.bury, self)


class World:
    """One seed's processes, network and time."""

    def __init__(self, stores: Stores, seed: int) -> None:
        self.chance = Chance(seed)
        self.stores = stores
        stores.reset(self.chance)
        arm(self.chance, self.die)
        self.chance.take_over_secrets()
        self.loop = stores.clock.loop
        self.loop.set_task_factory(self._task)
        self.bugs: list[str] = []
        self.rising: dict[asyncio.Task[None], None] = {}
        """Who starts a process again."""
        builders = {"router": self._router, "workflow": self._workflow, "pipeline": self._pipeline}
        builders["orchestrator"] = self._orchestrator
        self.processes = {name: Process(name, store, builders[name], self) for name, store in stores.all.items()}

    def wire(self, name: str) -> Wire:
        """A channel to a service, whichever process it is now."""
        return Wire(lambda: self.processes[name].door, self.chance)

    async def start(self) -> None:
        """Start everything."""
        for process in self.processes.values():
            await process.start()

    def die(self) -> None:
        """Kill the process whose code is running."""
        self.processes[HERE.get()].die()

    def bury(self, process: Process) -> None:
        """End all that the process was doing, and start it anew."""
        process.writer.end()
        for task in list(process.tasks):
            task.cancel()
        rising = self.loop.create_task(self._again(process, list(process.tasks)), context=Context())
        self.rising[rising] = None
        rising.add_done_callback(self.rising.pop)

    async def _again(self, process: Process, tasks: Sequence["asyncio.Task[Any]"]) -> None:
        if tasks:
            await asyncio.wait(tasks)
        await asyncio.sleep(self.chance.random.random() * 3)
        await process.start()

    def _task(self, loop: asyncio.AbstractEventLoop, coroutine: Any, **terms: Any) -> "asyncio.Task[Any]":
        task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=loop, **terms)
        context = terms.get("context")
        name = context.get(HERE, "") if context is not None else HERE.get()
        if name:
            tasks = self.processes[name].tasks
            tasks[task] = None
            task.add_done_callback(lambda done: _done(tasks, done))
        return task

    def _router(self) -> Parts:
        servicer = RouterServicer(self.stores.router, OTHERS[0])
        return Parts([(router_pb2.DESCRIPTOR.services_by_name["RouterService"], servicer)])

    def _workflow(self) -> Parts:
        servicer = WorkflowServicer(self.stores.workflow, OTHERS[1])
        return Parts([(workflow_pb2.DESCRIPTOR.services_by_name["WorkflowService"], servicer)])

    def _pipeline(self) -> Parts:
        store = self.stores.pipeline
        timers = TimerRunner(store.store, PipelineTimers(store).fire, POLL_SECONDS)
        servicer = PipelineServicer(store, OTHERS[2])
        return Parts([(pipeline_pb2.DESCRIPTOR.services_by_name["PipelineService"], servicer)], [timers.run])

    def _orchestrator(self) -> Parts:
        store = self.stores.orchestrator
        wires: Any = [self.wire(name) for name in ("router", "workflow", "pipeline")]
        peers = Peers(Channels(*wires))
        engine = Engine(store, peers, SETTINGS)
        engine.effects._policy = DeliveryPolicy(poll_seconds=POLL_SECONDS)
        engine.timers._poll_seconds = POLL_SECONDS
        services = orchestrator_pb2.DESCRIPTOR.services_by_name, agent_pb2.DESCRIPTOR.services_by_name
        servicers: list[tuple[ServiceDescriptor, object]] = [
            (services[0]["OrchestratorService"], OrchestratorServicer(store, peers, SETTINGS)),
            (services[1]["AgentService"], AgentServicer(store)),
        ]
        loops = (engine.effects.run, engine.timers.run, store.matcher.run, engine.sweep)
        return Parts(servicers, loops)


def _done(tasks: "dict[asyncio.Task[Any], None]", task: "asyncio.Task[Any]") -> None:
    tasks.pop(task, None)
    if not task.cancelled():
        task.exception()
