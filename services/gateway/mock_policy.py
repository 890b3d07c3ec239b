"""The mock policy as JSON with short names: roles such as `executor`, outcomes such as `slow`."""

from typing import Any

from pointsman.api.orchestrator.v1 import mock_pb2
from pointsman.services.chassis.core.errors import Violation, invalid_field, invalid_fields
from pointsman.services.gateway.contract import METHODS, PREFIX, Method

MOCK_PATH = f"{PREFIX}/agents/debug/mock-policy"
ROLES = mock_pb2.MockRole.DESCRIPTOR
OUTCOMES = mock_pb2.MockOutcome.DESCRIPTOR
FIELDS = {"role": (ROLES, "MOCK_ROLE_"), "outcome": (OUTCOMES, "MOCK_OUTCOME_")}


def get_policy() -> tuple[Method, mock_pb2.GetMockPolicyRequest]:
    """The call that reads the policy."""
    return METHODS[f"{PREFIX}/orchestrator.MockService/GetMockPolicy"], mock_pb2.GetMockPolicyRequest()


def set_policy(request: mock_pb2.SetMockPolicyRequest) -> tuple[Method, mock_pb2.SetMockPolicyRequest]:
    """The call that changes it."""
    return METHODS[f"{PREFIX}/orchestrator.MockService/SetMockPolicy"], request


def as_request(body: Any, request_id: str) -> mock_pb2.SetMockPolicyRequest:
    """`{"role": …, "outcome": …}` as a request; every unknown name is refused by its field."""
    if not isinstance(body, dict):
        raise invalid_field("body", "must be an object with role and outcome")
    unknown = tuple(Violation(str(name)[:64], "is not a field") for name in body if name not in FIELDS)
    wrong = tuple(
        Violation(name, f"must be one of {', '.join(_words(name))}")
        for name in FIELDS
        if not isinstance(body.get(name), str) or body[name] not in _words(name)
    )
    if unknown or wrong:
        raise invalid_fields(unknown + wrong)
    numbers = {name: _words(name)[body[name]] for name in FIELDS}
    return mock_pb2.SetMockPolicyRequest(
        request_id=request_id,
        role=mock_pb2.MockRole.ValueType(numbers["role"]),
        outcome=mock_pb2.MockOutcome.ValueType(numbers["outcome"]),
    )


def as_words(answer: Any) -> dict[str, Any]:
    """The policy of each role, as JSON."""
    role_words, outcome_words = ({number: word for word, number in _words(name).items()} for name in FIELDS)
    return {
        "policies": [
            {"role": role_words[one.role], "outcome": outcome_words[one.outcome], "mocked": one.mocked}
            for one in answer.policies
        ]
    }


def _words(name: str) -> dict[str, int]:
    enum, prefix = FIELDS[name]
    return {value.name.removeprefix(prefix).lower(): value.number for value in enum.values if value.number}
