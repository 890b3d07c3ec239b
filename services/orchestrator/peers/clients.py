"""The clients of the other services, and what is called on them outside of a run's effects."""

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import grpc

from pointsman.api.pipeline.v1 import requests_pb2 as pipeline_requests
from pointsman.api.pipeline.v1.pipeline_pb2_grpc import PipelineServiceStub
from pointsman.api.router.v1 import decision_pb2 as decision
from pointsman.api.router.v1 import log_pb2 as log
from pointsman.api.router.v1.router_pb2_grpc import RouterServiceStub
from pointsman.api.workflow.v1 import reading_pb2 as reading
from pointsman.api.workflow.v1.workflow_pb2_grpc import WorkflowServiceStub
from pointsman.services.chassis.engine.deliveries import PendingEffect
from pointsman.services.chassis.rpc.client import Peer
from pointsman.services.orchestrator.domain.enums import Call

STAND_IN = "orchestrator"
"""The agent in whose name the pipeline's stages are delegated; the real one is the assignment's."""


@dataclass(frozen=True, slots=True)
class Channels:
    """The channels to the other services."""

    router: grpc.aio.Channel
    workflow: grpc.aio.Channel
    pipeline: grpc.aio.Channel


class Peers:
    """The other services, seen from a run; every call is idempotent by its effect's id."""

    def __init__(self, channels: Channels) -> None:
        self.router: Peer[Any] = Peer(channels.router, RouterServiceStub, STAND_IN)
        self.workflow: Peer[Any] = Peer(channels.workflow, WorkflowServiceStub, STAND_IN)
        self.pipeline: Peer[Any] = Peer(channels.pipeline, PipelineServiceStub, STAND_IN)

    async def classify(self, request: decision.ClassifyRequest, project: str, traceparent: str) -> Any:
        """The router's decision about a message."""
        answer = await self.router.call(self.router.stub.Classify, request, project, traceparent)
        return answer.decision

    async def call_workflow(self, effect: PendingEffect, method: Any, request: Any) -> Any:
        """Call a method of the workflow service for an effect of a run."""
        return await self.workflow.call(method, request, effect.project, effect.traceparent)

    async def call_pipeline(self, effect: PendingEffect, method: Any, request: Any) -> Any:
        """Call a method of the pipeline service for an effect of a run."""
        return await self.pipeline.call(method, request, effect.project, effect.traceparent)

    async def call_router(self, effect: PendingEffect, method: Any, request: Any) -> Any:
        """Call a method of the router for an effect of a run."""
        return await self.router.call(method, request, effect.project, effect.traceparent)

    async def forget_run(self, project: str, run_id: str) -> None:
        """Remove what the other services keep of an ended run."""
        request_id = opaque(f"forget:{run_id}")
        router, workflow, pipeline_peer = self.router, self.workflow, self.pipeline
        await router.call(
            router.stub.ForgetRun, log.ForgetRunRequest(request_id=request_id, run_id=run_id), project, ""
        )
        await workflow.call(
            workflow.stub.ForgetRun, reading.ForgetRunRequest(request_id=request_id, run_id=run_id), project, ""
        )
        await pipeline_peer.call(
            pipeline_peer.stub.ForgetRun,
            pipeline_requests.ForgetRunRequest(request_id=request_id, run_id=run_id),
            project,
            "",
        )


Performer = Callable[[Peers, PendingEffect, Any], Awaitable[Any]]
REMOTE: dict[Call, Performer] = {}
"""The function that makes each call to a peer."""


def performs(*kinds: Call) -> Callable[[Performer], Performer]:
    """Mark the function that makes these calls; it returns the answer, or None when nothing of it is stored."""

    def register(perform: Performer) -> Performer:
        REMOTE.update(dict.fromkeys(kinds, perform))
        return perform

    return register


def opaque(key: str) -> str:
    """An idempotency key that does not name the run: the peer keeps it a few days longer than anything of the run."""
    return hashlib.sha256(key.encode()).hexdigest()[:32]
