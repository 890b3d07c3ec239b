"""Agents: lease work, keep the lease alive, hand in."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from google.protobuf.duration_pb2 import Duration

from pointsman.api.orchestrator.v1 import agent_pb2 as pb
from pointsman.api.orchestrator.v1.agent_pb2_grpc import AgentServiceStub
from pointsman.api.orchestrator.v1.assignment_pb2 import Assignment, AssignmentState
from pointsman.client.calls import Calls, new_request_id

WAIT_SECONDS = 20.0
MARGIN_SECONDS = 10.0


class Agents:
    """AgentService."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._stub: Any = AgentServiceStub(calls.channel)

    async def poll(self, agent_id: str, wanted: pb.Wanted, wait_seconds: float = WAIT_SECONDS) -> Sequence[pb.Lease]:
        """Lease work, waiting for it; empty when there is none."""
        wait = Duration()
        wait.FromMilliseconds(int(wait_seconds * 1000))
        request = pb.PollRequest(request_id=new_request_id(), agent_id=agent_id, wanted=wanted, wait=wait)
        answer: pb.PollResponse = await self._calls.call(self._stub.Poll, request, wait_seconds + MARGIN_SECONDS)
        return answer.leases

    async def heartbeat(
        self, agent_id: str, leases: Sequence[pb.LeaseKey], outputs: Sequence[pb.OutputTail] = ()
    ) -> pb.HeartbeatResponse:
        """Extend leases, and tell what was printed under them; the answer names those that are lost."""
        request = pb.HeartbeatRequest(request_id=new_request_id(), agent_id=agent_id, leases=leases, outputs=outputs)
        answer: pb.HeartbeatResponse = await self._calls.call(self._stub.Heartbeat, request)
        return answer

    async def complete(self, agent_id: str, completion: pb.Completion, request_id: str = "") -> pb.CompletionOutcome:
        """Hand in one result."""
        request = pb.CompleteRequest(
            request_id=request_id or new_request_id(), agent_id=agent_id, completions=[completion]
        )
        answer: pb.CompleteResponse = await self._calls.call(self._stub.Complete, request)
        return answer.outcomes[0]

    async def fail(self, agent_id: str, failure: pb.Failure, request_id: str = "") -> pb.CompletionOutcome:
        """Give one assignment up."""
        request = pb.FailRequest(request_id=request_id or new_request_id(), agent_id=agent_id, failures=[failure])
        answer: pb.FailResponse = await self._calls.call(self._stub.Fail, request)
        return answer.outcomes[0]

    async def request_permission(
        self, agent_id: str, lease: pb.LeaseKey, permission: pb.Permission, wait_seconds: float = WAIT_SECONDS
    ) -> pb.PermissionState.ValueType:
        """Ask whether the agent may do something, waiting for the answer; PENDING when nobody has answered yet."""
        wait = Duration()
        wait.FromMilliseconds(int(wait_seconds * 1000))
        request = pb.RequestPermissionRequest(
            request_id=new_request_id(), agent_id=agent_id, lease=lease, permission=permission, wait=wait
        )
        answer: pb.RequestPermissionResponse = await self._calls.call(
            self._stub.RequestPermission, request, wait_seconds + MARGIN_SECONDS
        )
        return answer.state

    async def all(self) -> AsyncIterator[pb.Agent]:
        """The agents that ever polled."""
        async for page in self._calls.pages(self._stub.ListAgents, pb.ListAgentsRequest()):
            for agent in page.agents:
                yield agent

    async def repositories(self) -> list[pb.OfferedRepository]:
        """The repositories that verifiers who are there have checked out, by name, each once."""
        present = [one async for one in self.all() if one.state != pb.AGENT_STATE_LOST]
        found = {(one.name, one.id, one.head): one for agent in present for one in agent.repositories}
        return [found[key] for key in sorted(found)]

    async def offered(self, name: str) -> pb.OfferedRepository:
        """The repository of this name, or with an id that begins so; LookupError says which there are."""
        offers = await self.repositories()
        fitting = [one for one in offers if one.name == name] or [one for one in offers if one.id.startswith(name)]
        if len(fitting) == 1:
            return fitting[0]
        known = ", ".join(_described(one) for one in fitting or offers) or "none: start a worker with `pointsman up`"
        many = "several workers offer" if fitting else "no worker that is there offers"
        way = "; take the id" if len({one.id for one in fitting}) > 1 else ""
        raise LookupError(f"{many} a repository '{name}'{way}. Offered: {known}")

    async def assignments(
        self, run_id: str, states: Sequence[AssignmentState.ValueType] = ()
    ) -> AsyncIterator[Assignment]:
        """A run's assignments, oldest first; of the named states only, where some are named."""
        request = pb.ListAssignmentsRequest(run_id=run_id, states=states)
        async for page in self._calls.pages(self._stub.ListAssignments, request):
            for assignment in page.assignments:
                yield assignment

    async def output(self, run_id: str, task_id: str = "", *, follow: bool = False) -> AsyncIterator[pb.OutputChunk]:
        """What a run's agents print, no piece twice, over lost connections; with follow, until the run has ended."""
        request = pb.WatchOutputRequest(run_id=run_id, task_id=task_id, follow=follow)
        seen: dict[tuple[str, int], int] = {}

        def open_again(_after: int) -> Any:
            return self._stub.WatchOutput(request, metadata=self._calls.terms.metadata)

        async for answer in self._calls.stream(open_again, lambda _answer: 0, 0):
            chunk, key = answer.chunk, (answer.chunk.assignment_id, answer.chunk.epoch)
            known = max(0, seen.get(key, 0) - chunk.offset)
            if known < len(chunk.text):
                seen[key] = chunk.offset + len(chunk.text)
                chunk.text, chunk.offset = chunk.text[known:], chunk.offset + known
                yield chunk


def _described(offer: pb.OfferedRepository) -> str:
    return f"{offer.name} ({offer.branch or 'no branch'} at {offer.head[:12]}, id {offer.id[:12]})"
