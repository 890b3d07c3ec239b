"""MockService: how the mock agents behave."""

from pointsman.api.orchestrator.v1 import mock_pb2 as mock
from pointsman.services.chassis.core.caller import Caller
from pointsman.services.orchestrator.domain.mocking import MockPolicy
from pointsman.services.orchestrator.wire import decode, encode


class MockServicer:
    """MockService, where mocks or debugging are on."""

    def __init__(self, policy: MockPolicy) -> None:
        self._policy = policy

    async def GetMockPolicy(
        self,
        request: mock.GetMockPolicyRequest,  # noqa: ARG002
        caller: Caller,  # noqa: ARG002
    ) -> mock.GetMockPolicyResponse:
        """How each mock behaves."""
        return mock.GetMockPolicyResponse(policies=encode.mocking.policies(self._policy))

    async def SetMockPolicy(
        self,
        request: mock.SetMockPolicyRequest,
        caller: Caller,  # noqa: ARG002
    ) -> mock.SetMockPolicyResponse:
        """Change how a mock behaves."""
        self._policy.set(decode.mocking.roles(request.role), decode.mocking.outcome(request.outcome))
        return mock.SetMockPolicyResponse(policies=encode.mocking.policies(self._policy))
