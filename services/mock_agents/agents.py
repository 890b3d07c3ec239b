"""Mock agents: ordinary agents behind the same interface, whose behaviour is set by a policy."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf.duration_pb2 import Duration

from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1.agent_pb2_grpc import AgentServiceStub
from pointsman.services.chassis.core.ids import new_nonce
from pointsman.services.mock_agents.results import result_for
from pointsman.services.orchestrator.domain.mocking import MockOutcome, MockPolicy, MockRole

POLL_WAIT = Duration(seconds=20)
CALL_SECONDS = 40.0
RETRY_SECONDS = 0.2
MAX_LEASES = 32


@dataclass(frozen=True, slots=True)
class MockAgent:
    """The mock agent of a role, and its capabilities."""

    agent_id: str
    capabilities: tuple[assignments.Capability.ValueType, ...]


MOCK_AGENTS = {
    MockRole.EXECUTOR: MockAgent("finger-executor", (assignments.CAPABILITY_CODE,)),
    MockRole.REVIEWER: MockAgent(
        "finger-reviewer",
        (assignments.CAPABILITY_REVIEW, assignments.CAPABILITY_DEBATE, assignments.CAPABILITY_VERIFY),
    ),
    MockRole.SEARCHER: MockAgent("finger-researcher", (assignments.CAPABILITY_RESEARCH,)),
}


class MockAgents:
    """One mock agent for each role that the policy mocks, over real gRPC with real leases, each on a channel of its own."""

    def __init__(
        self,
        open_as: Callable[[str], grpc.aio.Channel],
        policy: MockPolicy,
        *,
        slow_seconds: float = 1.0,
        project: str = "local",
        repository_ids: Sequence[str] = (),
    ) -> None:
        self._channels = {role: open_as(MOCK_AGENTS[role].agent_id) for role in sorted(policy.mocked)}
        self._stubs: dict[MockRole, Any] = {role: AgentServiceStub(one) for role, one in self._channels.items()}
        self._policy = policy
        self._slow_seconds = slow_seconds
        self._metadata = (("pointsman-project", project),)
        self._repository_ids = tuple(repository_ids)

    @property
    def loops(self) -> Sequence[tuple[str, Callable[[], Awaitable[None]]]]:
        """One loop per mocked role."""
        return [(f"mock_{role}", self._loop(role)) for role in self._channels]

    async def close(self) -> None:
        """Close the channels."""
        for channel in self._channels.values():
            await channel.close()

    def _loop(self, role: MockRole) -> Callable[[], Awaitable[None]]:
        async def play() -> None:
            leases: Sequence[agent.Lease] = ()
            while True:
                try:
                    leases = await self._step(role, leases)
                except grpc.aio.AioRpcError:
                    leases = ()
                    await asyncio.sleep(RETRY_SECONDS)

        return play

    def _wanted(self, mock: MockAgent) -> agent.Wanted:
        return agent.Wanted(capabilities=mock.capabilities, max_leases=MAX_LEASES, repository_ids=self._repository_ids)

    async def _step(self, role: MockRole, leases: Sequence[agent.Lease]) -> Sequence[agent.Lease]:
        """Completes the leased assignments and leases the next, in one call where there is a completion."""
        mock = MOCK_AGENTS[role]
        outcome = self._policy.outcomes[role]
        if not leases or outcome is MockOutcome.SILENT:
            request = agent.PollRequest(
                request_id=new_nonce(), agent_id=mock.agent_id, wanted=self._wanted(mock), wait=POLL_WAIT
            )
            polled = await self._stubs[role].Poll(request, timeout=CALL_SECONDS, metadata=self._metadata)
            return list(polled.leases)
        if outcome is MockOutcome.SLOW:
            await asyncio.sleep(self._slow_seconds)
        return await self._hand_in(role, outcome, leases)

    async def _hand_in(
        self, role: MockRole, outcome: MockOutcome, leases: Sequence[agent.Lease]
    ) -> Sequence[agent.Lease]:
        mock, stub = MOCK_AGENTS[role], self._stubs[role]
        answers = [result_for(lease, outcome) for lease in leases]
        failures = [item for item in answers if isinstance(item, agent.Failure)]
        completions = [item for item in answers if isinstance(item, agent.Completion)]
        if failures:
            failing = agent.FailRequest(request_id=new_nonce(), agent_id=mock.agent_id, failures=failures)
            await stub.Fail(failing, timeout=CALL_SECONDS, metadata=self._metadata)
        if not completions:
            return ()
        request = agent.CompleteRequest(
            request_id=new_nonce(),
            agent_id=mock.agent_id,
            completions=completions,
            next=self._wanted(mock),
            wait=POLL_WAIT,
        )
        done = await stub.Complete(request, timeout=CALL_SECONDS, metadata=self._metadata)
        return list(done.leases)
