"""The mock policy."""

from pointsman.api.orchestrator.v1 import mock_pb2 as mock
from pointsman.services.orchestrator.domain.mocking import MockPolicy, MockRole
from pointsman.services.orchestrator.wire import enums


def policies(policy: MockPolicy) -> list[mock.MockPolicy]:
    """How each role behaves."""
    return [
        mock.MockPolicy(
            role=enums.MOCK_ROLE.to_wire(role),
            outcome=enums.MOCK_OUTCOME.to_wire(policy.outcomes[role]),
            mocked=role in policy.mocked,
        )
        for role in MockRole
    ]
