"""What clients were told: every acknowledged command and every transition that was shown to them."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import grpc

from pointsman.api.common.v1.common_pb2 import Transition
from pointsman.api.orchestrator.v1 import orchestrator_pb2
from pointsman.api.orchestrator.v1.orchestrator_pb2_grpc import OrchestratorServiceStub
from pointsman.api.pipeline.v1 import requests_pb2
from pointsman.api.pipeline.v1.pipeline_pb2_grpc import PipelineServiceStub
from pointsman.api.workflow.v1 import reading_pb2
from pointsman.api.workflow.v1.workflow_pb2_grpc import WorkflowServiceStub
from tests.helpers.limits import scaled

RETRIED = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.ABORTED,
    }
)
PAUSE_SECONDS = 0.05
DEADLINE_SECONDS = 8.0
WATCHED: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "orchestrator": (OrchestratorServiceStub, orchestrator_pb2.WatchChangesRequest),
    "pipeline": (PipelineServiceStub, requests_pb2.WatchChangesRequest),
    "workflow": (WorkflowServiceStub, reading_pb2.WatchChangesRequest),
}


@dataclass(frozen=True, slots=True)
class Told:
    """One acknowledged command: who was asked what, and the answer."""

    context: str
    project: str
    method: str
    request: Any
    answer: Any


class Memory:
    """Everything that must still be true at the end."""

    def __init__(self) -> None:
        self.told: dict[tuple[str, str, str], Told] = {}
        """By context, project and request_id."""
        self.sent: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.unexpected: list[str] = []
        self.seen: dict[str, dict[str, list[str]]] = defaultdict(dict)
        """For each context and entity, the digests of the transitions that watchers were shown, in order."""
        self.violations: list[str] = []

    @property
    def transitions(self) -> int:
        """How many transitions were acknowledged: those that a watcher saw, and the decisions that were answered."""
        watched = sum(len(digests) for entities in self.seen.values() for digests in entities.values())
        decided = sum(1 for context, _, _ in self.told if context == "router")
        return watched + decided

    def keep(self, told: Told) -> None:
        """An answer came; a second one to the same request has to be the same."""
        key = (told.context, told.project, told.request.request_id)
        earlier = self.told.setdefault(key, told)
        if earlier.answer != told.answer and told.method in SAME_ANSWER:
            self.violations.append(f"{told.method} {told.request.request_id} was answered in two ways")

    def show(self, context: str, transition: Transition) -> None:
        """A watcher saw a transition: the next one of its entity, and no other."""
        digests = self.seen[context].setdefault(transition.entity_id, [])
        if transition.seq != len(digests) + 1:
            where = f"{context} {transition.entity_id}: shown {transition.seq} after {len(digests)}"
            self.violations.append(where)
            return
        digests.append(transition.digest)


SAME_ANSWER = frozenset({"CompleteTask", "NextTasks", "UpsertPlan", "StartPipeline", "CompleteStage", "Classify"})
"""Methods whose answer is the stored one; runs are answered as they are by now."""


class Caller:
    """Calls one service in one project, and again with the same request_id until there is an answer."""

    def __init__(self, context: str, project: str, channel: grpc.aio.Channel, memory: Memory) -> None:
        self.context = context
        self.project = project
        self.channel = channel
        self.memory = memory
        self.metadata = (("pointsman-project", project),)

    async def ask(self, method: Any, request: Any) -> Any:
        """The answer, or None when it was refused; either is remembered."""
        name = method._method.decode().rpartition("/")[2]
        self.memory.sent[f"{self.context}.{name}"] += 1
        while True:
            try:
                answer = await method(request, timeout=scaled(DEADLINE_SECONDS), metadata=self.metadata)
            except grpc.aio.AioRpcError as error:
                if error.code() in RETRIED:
                    await asyncio.sleep(PAUSE_SECONDS)
                    continue
                self._refused(name, request, error)
                return None
            if hasattr(request, "request_id"):
                self.memory.keep(Told(self.context, self.project, name, request, answer))
            return answer

    def _refused(self, name: str, request: Any, error: grpc.aio.AioRpcError) -> None:
        code = error.code()
        self.memory.refused[f"{self.context}.{name} {code.name}"] += 1
        if code in (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN, grpc.StatusCode.UNIMPLEMENTED):
            self.memory.unexpected.append(f"{self.context}.{name} {request}: {code.name} {error.details()}")


async def watch(caller: Caller, notice: Callable[[Transition], Awaitable[None]] | None = None) -> None:
    """Follow all changes of a project in one service, without end, over every interruption."""
    make_stub, make_request = WATCHED[caller.context]
    stub, position = make_stub(caller.channel), 0
    while True:
        try:
            async for item in stub.WatchChanges(make_request(after_position=position), metadata=caller.metadata):
                caller.memory.show(caller.context, item.transition)
                position = item.transition.position
                if notice is not None:
                    await notice(item.transition)
        except grpc.aio.AioRpcError as error:
            if error.code() not in RETRIED and error.code() is not grpc.StatusCode.CANCELLED:
                caller.memory.unexpected.append(f"watch {caller.context}: {error.code().name} {error.details()}")
        await asyncio.sleep(PAUSE_SECONDS)
