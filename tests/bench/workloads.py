"""Work that users ask of the public RPCs: each workload is one kind of call or sequence, repeated by callers side by side."""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import grpc

from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as orchestrator
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.api.orchestrator.v1.agent_pb2_grpc import AgentServiceStub
from pointsman.api.orchestrator.v1.orchestrator_pb2_grpc import OrchestratorServiceStub
from pointsman.api.pipeline.v1 import pipeline_pb2 as pipeline
from pointsman.api.pipeline.v1 import route_pb2 as route
from pointsman.api.pipeline.v1 import state_pb2 as stages
from pointsman.api.pipeline.v1.pipeline_pb2_grpc import PipelineServiceStub
from pointsman.api.router.v1 import decision_pb2 as decision
from pointsman.api.router.v1.router_pb2_grpc import RouterServiceStub
from pointsman.api.workflow.v1 import model_pb2 as model
from pointsman.api.workflow.v1 import plans_pb2 as plans
from pointsman.api.workflow.v1 import tasks_pb2 as tasks
from pointsman.api.workflow.v1.workflow_pb2_grpc import WorkflowServiceStub
from pointsman.client.calls import BATCH_SIZE
from tests.bench.deployments import Deployment

CHAIN_STAGES = 25
WORKFLOWS = 64
RESEARCH_SLOTS = 64
"""As many as a run may wait for at once."""
MESSAGE = "Fix the failing test in src/parser.py and add a regression test"
MOCKED = {"POINTSMAN_FULL_MOCK_MODE": "1"}


@dataclass(frozen=True, slots=True)
class Load:
    """What callers did: how long each unit took, and the time from first to last."""

    latencies: list[float]
    elapsed: float
    units: int
    """All that was done, the warm-up included: what the servers counted is divided by it."""

    @property
    def rate(self) -> float:
        """Units per second."""
        return len(self.latencies) / self.elapsed

    def percentile_ms(self, share: float) -> float:
        """The latency that this share of the units stays within."""
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000


Unit = Callable[[int], Awaitable[bool]]
"""One unit of work by the caller of this number; whether there is more to do."""


async def warm_and_measure(callers: int, seconds: float, unit: Unit) -> Load:
    """Repeat the unit for a quarter of the time, then measure."""
    warm = await repeat(callers, seconds / 4, unit)
    load = await repeat(callers, seconds, unit)
    return replace(load, units=warm.units + load.units)


async def repeat(callers: int, seconds: float, unit: Unit) -> Load:
    """Let each caller do unit after unit until the time is over or a unit says that there is no more work."""
    latencies: list[float] = []
    begun = time.perf_counter()

    async def call(caller: int) -> None:
        more = True
        while more and (started := time.perf_counter()) - begun < seconds:
            more = await unit(caller)
            latencies.append(time.perf_counter() - started)

    await asyncio.gather(*(call(caller) for caller in range(callers)))
    return Load(latencies, time.perf_counter() - begun, len(latencies))


Begin = Callable[[], None]
"""Called when everything is prepared and the work begins."""


class Workload(Protocol):
    """One kind of work against a deployment."""

    name: str
    callers: tuple[int, ...]
    commands: int
    """Durable commands in a unit: so many calls of the floor are compared with it."""
    environment: Mapping[str, str]

    async def run(self, deployment: Deployment, callers: int, seconds: float, begin: Begin) -> Load:
        """Do it for a while."""


numbers = itertools.count()
START = f"{time.time_ns():x}"


def request_id() -> str:
    """An id that no other request of this benchmark has."""
    return f"{START}-{next(numbers)}"


@dataclass
class RecordUsage:
    """The cheapest command of a real context: usage of a workflow's context window."""

    name: str = "record_usage"
    callers: tuple[int, ...] = (1, 16, 64)
    commands: int = 1
    environment: Mapping[str, str] = field(default_factory=dict)

    async def run(self, deployment: Deployment, callers: int, seconds: float, begin: Begin) -> Load:
        """Each caller records for the next of a few workflows."""
        async with grpc.aio.insecure_channel(deployment.address("workflow")) as channel:
            stub = WorkflowServiceStub(channel)
            names = [request_id() for _ in range(WORKFLOWS)]
            for name in names:
                task = model.TaskSpec(task_id="T1", name="a task", phase="build", actions=["edit"])
                await stub.UpsertPlan(plans.UpsertPlanRequest(request_id=name, workflow_id=name, tasks=[task]))
            turns = itertools.cycle(names)

            async def record(_caller: int) -> bool:
                usage = tasks.RecordUsageRequest(request_id=request_id(), workflow_id=next(turns), characters=4)
                await stub.RecordUsage(usage)
                return True

            begin()
            return await warm_and_measure(callers, seconds, record)


async def start_pipeline(stub: Any, name: str, **how: Any) -> list[str]:
    """Start a pipeline; the delegations that it begins with."""
    request = pipeline.StartPipelineRequest(
        request_id=name, pipeline_id=name, auto_delegate=pipeline.AutoDelegate(agent_id="agent"), **how
    )
    return [item.delegation_id for item in (await stub.StartPipeline(request)).next]


async def complete_stage(stub: Any, name: str, delegation_id: str) -> list[str]:
    """Complete a stage with PASS; the delegations that follow."""
    request = pipeline.CompleteStageRequest(
        request_id=f"{name}/{delegation_id}",
        pipeline_id=name,
        delegation_id=delegation_id,
        agent_id="agent",
        route=route.Route(verdict=route.VERDICT_PASS),
        auto_delegate=pipeline.AutoDelegate(agent_id="agent"),
    )
    return [item.delegation_id for item in (await stub.CompleteStage(request)).next]


@dataclass
class StageChain:
    """CompleteStage along a chain of 25 stages."""

    name: str = "complete_stage_chain"
    callers: tuple[int, ...] = (1, 16)
    commands: int = 1
    environment: Mapping[str, str] = field(default_factory=dict)

    async def run(self, deployment: Deployment, callers: int, seconds: float, begin: Begin) -> Load:
        """Each caller walks along its own chain and begins another one at the end."""
        nodes = [
            stages.Node(stage=f"DEV:{number}", deps=[f"DEV:{number - 1}"] if number else [])
            for number in range(CHAIN_STAGES)
        ]
        async with grpc.aio.insecure_channel(deployment.address("pipeline")) as channel:
            stub = PipelineServiceStub(channel)
            places: dict[int, tuple[str, list[str]]] = {}

            async def step(caller: int) -> bool:
                name, waiting = places.get(caller, ("", []))
                if not waiting:
                    name = request_id()
                    waiting = await start_pipeline(stub, name, dag=stages.Dag(nodes=nodes))
                else:
                    waiting = await complete_stage(stub, name, waiting[0])
                places[caller] = (name, waiting)
                return True

            begin()
            return await warm_and_measure(callers, seconds, step)


@dataclass
class StandardPipeline:
    """Whole pipelines of the standard template, with the barrier of REVIEW and TEST."""

    name: str = "standard_pipeline"
    callers: tuple[int, ...] = (16,)
    commands: int = 7
    environment: Mapping[str, str] = field(default_factory=dict)

    async def run(self, deployment: Deployment, callers: int, seconds: float, begin: Begin) -> Load:
        """Start one, complete its stages, those side by side at the same time."""
        async with grpc.aio.insecure_channel(deployment.address("pipeline")) as channel:
            stub = PipelineServiceStub(channel)

            async def whole(_caller: int) -> bool:
                name = request_id()
                waiting = await start_pipeline(stub, name, template="standard")
                while waiting:
                    answers = await asyncio.gather(*(complete_stage(stub, name, item) for item in waiting))
                    waiting = [item for answer in answers for item in answer]
                return True

            begin()
            return await warm_and_measure(callers, seconds, whole)


@dataclass
class Classify:
    """A routing decision, stored."""

    name: str = "classify"
    callers: tuple[int, ...] = (1, 16)
    commands: int = 1
    environment: Mapping[str, str] = field(default_factory=dict)

    async def run(self, deployment: Deployment, callers: int, seconds: float, begin: Begin) -> Load:
        """Each message differs, so that none is answered from memory."""
        async with grpc.aio.insecure_channel(deployment.address("router")) as channel:
            stub = RouterServiceStub(channel)

            async def classify(_caller: int) -> bool:
                key = request_id()
                message = decision.Message(text=f"{MESSAGE}, see ticket {key}")
                await stub.Classify(decision.ClassifyRequest(request_id=key, message=message))
                return True

            begin()
            return await warm_and_measure(callers, seconds, classify)


@dataclass
class AgentRoundTrips:
    """Complete with the next lease in its answer, by agents that hand in research reports."""

    name: str = "complete_and_poll"
    callers: tuple[int, ...] = (1, 8, 64)
    commands: int = 1
    environment: Mapping[str, str] = field(default_factory=dict)
    per_second: int = 700
    """More reports than any machine of ours hands in."""

    async def run(self, deployment: Deployment, callers: int, seconds: float, begin: Begin) -> Load:
        """Each run's last report is not handed in: no run goes on, and only round trips are measured."""
        async with grpc.aio.insecure_channel(deployment.address("orchestrator")) as channel:
            stub = AgentServiceStub(channel)
            await self._fill(OrchestratorServiceStub(channel), stub, int(self.per_second * seconds))
            held: dict[int, list[agent.Lease]] = {}

            async def hand_in(caller: int) -> bool:
                reports = [_report(lease) for lease in held.get(caller, ())]
                wanted = agent.Wanted(capabilities=[assignments.CAPABILITY_RESEARCH], max_leases=1)
                asked: dict[str, Any] = {"request_id": request_id(), "agent_id": f"agent-{caller}"}
                if reports:
                    request = agent.CompleteRequest(**asked, completions=reports, next=wanted)
                    leases = list((await stub.Complete(request)).leases)
                else:
                    leases = list((await stub.Poll(agent.PollRequest(**asked, wanted=wanted))).leases)
                held[caller] = [lease for lease in leases if lease.research.slot.id != f"survey-{RESEARCH_SLOTS}"]
                return bool(leases)

            begin()
            return await repeat(callers, seconds, hand_in)

    async def _fill(self, submitting: Any, stub: Any, wanted: int) -> None:
        """Runs that wait for research, until there is enough of it."""
        research = agent.Wanted(capabilities=[assignments.CAPABILITY_RESEARCH], max_leases=1)
        await stub.Poll(agent.PollRequest(request_id=request_id(), agent_id="agent-0", wanted=research))
        for _ in range(wanted // RESEARCH_SLOTS + 1):
            await submit(submitting, runs.RUN_STATE_RESEARCH_FANOUT, research_expected=RESEARCH_SLOTS)


def _report(lease: agent.Lease) -> agent.Completion:
    report = handoff.ResearchReport(
        agent_id="bench",
        slot=lease.research.slot.id,
        summary_md=handoff.Document(text="# Found\n"),
        memory_jsonl=handoff.Document(text="{}\n"),
        confidence=0.9,
    )
    key = agent.LeaseKey(assignment_id=lease.assignment.id, epoch=lease.epoch, secret=lease.secret)
    return agent.Completion(lease=key, research=report)


async def submit(stub: Any, until: runs.RunState.ValueType, **terms: Any) -> None:
    """Submit a message and follow its run until it comes into a state."""
    request = orchestrator.SubmitRequest(request_id=request_id(), message=f"{MESSAGE} {next(numbers)}", **terms)
    run = (await stub.Submit(request)).run
    wanted = runs.RunState.Name(until).removeprefix("RUN_STATE_")
    last = ""
    async for item in stub.WatchRun(orchestrator.WatchRunRequest(run_id=run.id, batch_size=BATCH_SIZE)):
        for transition in (item.transition, *item.more):
            last = transition.to_state
            if last == wanted:
                return
    raise AssertionError(f"run {run.id} ended in {last}, not in {wanted}")


@dataclass
class WholeRun:
    """A run of one task from Submit to COMPLETE, with mock agents, through all four services."""

    name: str = "whole_run"
    callers: tuple[int, ...] = (1, 16)
    commands: int = 12
    environment: Mapping[str, str] = field(default_factory=lambda: MOCKED)

    async def run(self, deployment: Deployment, callers: int, seconds: float, begin: Begin) -> Load:
        """Each caller submits one run after the other."""
        async with grpc.aio.insecure_channel(deployment.address("orchestrator")) as channel:
            stub = OrchestratorServiceStub(channel)

            async def whole(_caller: int) -> bool:
                await submit(stub, runs.RUN_STATE_COMPLETE)
                return True

            begin()
            return await warm_and_measure(callers, seconds, whole)


WORKLOADS: tuple[Workload, ...] = (
    RecordUsage(),
    Classify(),
    StageChain(),
    StandardPipeline(),
    AgentRoundTrips(),
    WholeRun(),
)
