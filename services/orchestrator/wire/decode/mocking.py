"""Changes of the mock policy."""

from pointsman.api.orchestrator.v1 import mock_pb2 as mock
from pointsman.services.orchestrator.domain.mocking import MockOutcome, MockRole
from pointsman.services.orchestrator.wire import enums


def roles(value: mock.MockRole.ValueType) -> tuple[MockRole, ...]:
    """The roles that a request means."""
    if value == mock.MOCK_ROLE_ALL:
        return tuple(MockRole)
    return (enums.MOCK_ROLE.required(value),)


def outcome(value: mock.MockOutcome.ValueType) -> MockOutcome:
    """The outcome that a request means."""
    return enums.MOCK_OUTCOME.required(value)
