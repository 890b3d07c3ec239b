"""A control plane's agent side that hands out what a test gives it, and remembers what comes back."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
from google.protobuf.timestamp_pb2 import Timestamp

from pointsman.api.orchestrator.v1 import agent_pb2 as pb
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1.agent_pb2_grpc import AgentServiceServicer, add_AgentServiceServicer_to_server
from pointsman.client import Client, connect


class Exchange(AgentServiceServicer):
    """One queue of leases for everybody."""

    def __init__(self) -> None:
        self.leases: asyncio.Queue[pb.Lease] = asyncio.Queue()
        self.completed: asyncio.Queue[pb.CompleteRequest] = asyncio.Queue()
        self.failed: asyncio.Queue[pb.FailRequest] = asyncio.Queue()
        self.lost: set[str] = set()
        self.polls: list[pb.PollRequest] = []
        self.beats = 0
        self.outputs: list[pb.OutputTail] = []

    async def Poll(self, request: pb.PollRequest, context: Any) -> pb.PollResponse:
        self.polls.append(request)
        return pb.PollResponse(leases=[await self.leases.get()])

    async def Heartbeat(self, request: pb.HeartbeatRequest, context: Any) -> pb.HeartbeatResponse:
        self.beats += 1
        self.outputs += request.outputs
        held = {key.assignment_id for key in request.leases}
        return pb.HeartbeatResponse(lost_assignment_ids=held & self.lost)

    async def Complete(self, request: pb.CompleteRequest, context: Any) -> pb.CompleteResponse:
        await self.completed.put(request)
        return pb.CompleteResponse(outcomes=[pb.CompletionOutcome(accepted=True)])

    async def Fail(self, request: pb.FailRequest, context: Any) -> pb.FailResponse:
        await self.failed.put(request)
        return pb.FailResponse(outcomes=[pb.CompletionOutcome(accepted=True)])


def lease(purpose: assignments.Purpose.ValueType, assignment_id: str = "a1", **work: Any) -> pb.Lease:
    """A lease that has to be renewed within two seconds."""
    expires_at = Timestamp()
    expires_at.GetCurrentTime()
    expires_at.FromSeconds(expires_at.seconds + 1)
    assignment = assignments.Assignment(id=assignment_id, run_id="r1", purpose=purpose, attempt=1)
    return pb.Lease(assignment=assignment, epoch=7, secret="lease_1", expires_at=expires_at, **work)


@asynccontextmanager
async def exchange() -> AsyncIterator[tuple[Exchange, Client]]:
    """The exchange behind a real server, and a client of it."""
    servicer = Exchange()  # type: ignore[abstract]
    server = grpc.aio.server()
    add_AgentServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with connect(f"127.0.0.1:{port}") as client:
            yield servicer, client
    finally:
        await server.stop(None)
