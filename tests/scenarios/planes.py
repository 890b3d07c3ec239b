"""The whole control plane for a scenario: four real services, real gRPC, real stores, in this process."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import grpc

from pointsman.api.common.v1 import common_pb2 as common
from pointsman.api.handoff.v1 import delivery_pb2 as delivery
from pointsman.api.orchestrator.v1 import agent_pb2 as agents
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1 import mock_pb2 as mock
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.api.orchestrator.v1.agent_pb2_grpc import AgentServiceStub
from pointsman.api.orchestrator.v1.artifact_pb2_grpc import ArtifactServiceStub
from pointsman.api.orchestrator.v1.mock_pb2_grpc import MockServiceStub
from pointsman.api.orchestrator.v1.orchestrator_pb2_grpc import OrchestratorServiceStub
from pointsman.api.pipeline.v1.pipeline_pb2_grpc import PipelineServiceStub
from pointsman.api.workflow.v1.workflow_pb2_grpc import WorkflowServiceStub
from pointsman.services.chassis.core.config import PeerSettings, ServerSettings, StoreSettings
from pointsman.services.chassis.rpc.client import open_channel
from pointsman.services.chassis.runtime.service import Service, start
from pointsman.services.chassis.storage.database import Database
from pointsman.services.mock_agents.agents import MOCK_AGENTS
from pointsman.services.orchestrator.__main__ import build_on as build_orchestrator
from pointsman.services.orchestrator.config import MockSettings, OrchestratorSettings
from pointsman.services.pipeline.__main__ import build as build_pipeline
from pointsman.services.pipeline.config import PipelineSettings
from pointsman.services.router.__main__ import build as build_router
from pointsman.services.router.config import RouterSettings
from pointsman.services.workflow.__main__ import build as build_workflow
from pointsman.services.workflow.config import WorkflowSettings
from tests.helpers.eventually import eventually
from tests.helpers.limits import Limit

WISH = "Fix the failing test in src/parser.py and add a regression test"
TERMINAL = (runs.RUN_STATE_COMPLETE, runs.RUN_STATE_CANCELLED, runs.RUN_STATE_FAILED)
MOCKED = MockSettings(full_mock_mode=True)
NOBODY = MockSettings(runtime_debug_mode=True)
NO_CODER = MockSettings(full_mock_mode=True, executor_loop=False)


@dataclass(slots=True)
class Plane:
    """Clients of a running control plane."""

    channel: grpc.aio.Channel
    runs: Any
    agents: Any
    artifacts: Any
    mocks: Any
    workflow: Any
    pipeline: Any
    numbers: "count[int]" = field(default_factory=lambda: count(1))

    def request_id(self) -> str:
        """A new idempotency key."""
        return f"request-{next(self.numbers)}"

    async def submit(self, message: str = WISH, **terms: Any) -> runs.Run:
        """Start a run."""
        request = pb.SubmitRequest(request_id=self.request_id(), message=message, **terms)
        answer = await self._patiently(request)
        assert answer.HasField("run"), answer
        run: runs.Run = answer.run
        return run

    async def _patiently(self, request: pb.SubmitRequest) -> pb.SubmitResponse:
        """Ask again with the same request_id where a slow machine misses the deadline."""
        limit = Limit(60)
        while not limit.is_over():
            try:
                answer: pb.SubmitResponse = await self.runs.Submit(request)
            except grpc.aio.AioRpcError as error:
                if error.code() is not grpc.StatusCode.DEADLINE_EXCEEDED:
                    raise
            else:
                return answer
        raise TimeoutError("Submit missed its deadline again and again")

    async def get(self, run_id: str) -> runs.Run:
        """The run as it is now."""
        run: runs.Run = (await self.runs.GetRun(pb.GetRunRequest(run_id=run_id))).run
        return run

    async def ended(self, run_id: str, seconds: float = 30.0) -> runs.Run:
        """The run, once it is in a terminal state."""

        async def check() -> runs.Run | None:
            run = await self.get(run_id)
            return run if run.state in TERMINAL else None

        found = await eventually(check, seconds)
        assert found is not None
        return found

    async def asked(self, run_id: str, seconds: float = 30.0) -> runs.Run:
        """The run, once it asks a person."""

        async def check() -> runs.Run | None:
            run = await self.get(run_id)
            assert run.state not in TERMINAL, run
            return run if run.HasField("question") else None

        found = await eventually(check, seconds)
        assert found is not None
        return found

    async def reached(self, run_id: str, state: runs.RunState.ValueType, seconds: float = 30.0) -> runs.Run:
        """The run, once it is in the state."""

        async def check() -> runs.Run | None:
            run = await self.get(run_id)
            return run if run.state == state else None

        found = await eventually(check, seconds)
        assert found is not None
        return found

    async def taken(self, run_id: str) -> runs.Run:
        """The run, once an agent holds the lease on its code: a mock has then chosen what it does."""
        run = await self.reached(run_id, runs.RUN_STATE_CODER_EXEC)
        held = [assignments.ASSIGNMENT_STATE_LEASED]

        async def check() -> bool:
            request = agents.ListAssignmentsRequest(run_id=run_id, states=held)
            return bool((await self.agents.ListAssignments(request)).assignments)

        await eventually(check)
        return run

    async def are_there(self, mocks: MockSettings = MOCKED) -> None:
        """Wait until the mock agents have polled once: a stage without an agent that is there is left out."""
        agent_ids = {MOCK_AGENTS[role].agent_id for role in mocks.policy().mocked}

        async def check() -> bool:
            listed = (await self.agents.ListAgents(agents.ListAgentsRequest())).agents
            return agent_ids <= {agent.id for agent in listed}

        await eventually(check)

    async def answer(self, run: runs.Run, kind: runs.AnswerKind.ValueType, **details: Any) -> runs.Run:
        """Answer the run's question."""
        request = pb.AnswerRequest(
            request_id=self.request_id(), run_id=run.id, question_id=run.question.id, answer=kind, **details
        )
        answered: runs.Run = (await self.runs.Answer(request)).run
        return answered

    async def moves(self, run_id: str) -> list[str]:
        """The events that changed the run's state, in order."""
        page = common.Page(page_size=1000)
        answer = await self.runs.ListTransitions(pb.ListTransitionsRequest(run_id=run_id, page=page))
        return [t.event for t in answer.transitions if t.from_state != t.to_state]

    async def delivery(self, run_id: str) -> delivery.Delivery:
        """What the run delivered."""
        delivered: delivery.Delivery = (await self.runs.GetDelivery(pb.GetDeliveryRequest(run_id=run_id))).delivery
        return delivered

    async def behave(self, role: mock.MockRole.ValueType, outcome: mock.MockOutcome.ValueType) -> None:
        """Set how a mock behaves from now on."""
        request = mock.SetMockPolicyRequest(request_id=self.request_id(), role=role, outcome=outcome)
        await self.mocks.SetMockPolicy(request)


def builder(data: Path, mocks: MockSettings, settings: OrchestratorSettings, database_url: str = "") -> Any:
    """A function that builds the four services at an address."""
    stores = StoreSettings(data=data, database_url="" if database_url.startswith("sqlite") else database_url)

    def build(address: str) -> Sequence[Service]:
        database = Database(stores.url_for("orchestrator"), "orchestrator")
        return [
            build_router(stores, RouterSettings()),
            build_workflow(stores, WorkflowSettings()),
            build_pipeline(stores, PipelineSettings()),
            build_orchestrator(database, settings, PeerSettings().all_at(address), mocks),
        ]

    return build


@asynccontextmanager
async def plane(
    data: Path, mocks: MockSettings = MOCKED, database_url: str = "", **settings: Any
) -> AsyncIterator[Plane]:
    """A control plane on a data directory (or on PostgreSQL), gone at the end."""
    build = builder(data, mocks, OrchestratorSettings(**settings), database_url)
    running = await start(build, ServerSettings(port=0, drain_seconds=0.2), data)
    channel = open_channel(running.address)
    try:
        here = clients(channel)
        await here.are_there(mocks)
        yield here
    finally:
        await channel.close()
        await running.stop()


def clients(channel: grpc.aio.Channel) -> Plane:
    """Clients on one channel."""
    return Plane(
        channel,
        OrchestratorServiceStub(channel),
        AgentServiceStub(channel),
        ArtifactServiceStub(channel),
        MockServiceStub(channel),
        WorkflowServiceStub(channel),
        PipelineServiceStub(channel),
    )
