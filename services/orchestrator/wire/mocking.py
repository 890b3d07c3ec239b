"""The mock policy on the wire."""

from pointsman.api.orchestrator.v1 import mock_pb2 as mock
from pointsman.services.orchestrator.domain.mocking import MockOutcome, MockPolicy, MockRole


def policies(policy: MockPolicy) -> list[mock.MockPolicy]:
    """How each role behaves."""
    return [
        mock.MockPolicy(
            role=mock.MockRole.Value(f"MOCK_ROLE_{role.name}"),
            outcome=mock.MockOutcome.Value(f"MOCK_OUTCOME_{policy.outcomes[role].name}"),
            mocked=role in policy.mocked,
        )
        for role in MockRole
    ]


def roles(value: mock.MockRole.ValueType) -> tuple[MockRole, ...]:
    """The roles that a request means."""
    if value == mock.MOCK_ROLE_ALL:
        return tuple(MockRole)
    return (MockRole[mock.MockRole.Name(value).removeprefix("MOCK_ROLE_")],)


def outcome(value: mock.MockOutcome.ValueType) -> MockOutcome:
    """The outcome that a request means."""
    return MockOutcome[mock.MockOutcome.Name(value).removeprefix("MOCK_OUTCOME_")]
