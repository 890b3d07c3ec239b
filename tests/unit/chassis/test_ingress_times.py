"""Times that no calendar has are refused where they come in: protobuf reads them without a word."""

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.services.chassis.core.errors import Refusal
from pointsman.services.chassis.rpc.paging import seconds_of
from pointsman.services.chassis.rpc.validation import deserializer, validate

LONGEST = 315_576_000_000


@pytest.mark.parametrize(
    ("seconds", "nanos", "possible"),
    [
        (-62_135_596_800, 0, True), (-62_135_596_801, 0, False), (253_402_300_799, 999_999_999, True),
        (253_402_300_800, 0, False), (0, -1, False), (0, 10**9, False), (2**63 - 1, 0, False),
    ],
)  # fmt: skip
def test_a_timestamp_lies_between_the_years_1_and_9999(seconds: int, nanos: int, possible: bool) -> None:
    request = pb.ListRunsRequest(created_after=Timestamp(seconds=seconds, nanos=nanos))
    assert field_at_fault(request) == ("" if possible else "created_after")


@pytest.mark.parametrize(
    ("seconds", "nanos", "possible"),
    [(LONGEST, 0, True), (LONGEST + 1, 0, False), (1, -1, False), (-1, 1, False), (0, -1, True), (0, 10**9, False)],
)
def test_a_duration_has_one_sign_and_an_end(seconds: int, nanos: int, possible: bool) -> None:
    budget = runs.Budget(wall_clock=Duration(seconds=seconds, nanos=nanos))
    request = pb.SubmitRequest(request_id="r", message="m", budget=budget)
    assert field_at_fault(request) == ("" if possible else "budget.wall_clock")


def test_a_time_deep_in_what_is_handed_in_is_found_and_named() -> None:
    captured = [handoff.Evidence(captured_at=Timestamp(seconds=seconds)) for seconds in (1, 2**62)]
    stage = work.StageResult(coder_result=handoff.CoderResult(evidence=captured))
    completions = [agent.Completion(), agent.Completion(stage=stage)]
    request = agent.CompleteRequest(request_id="r", agent_id="a", completions=completions)
    assert field_at_fault(request) == "completions[1].stage.coder_result.evidence[1].captured_at"


@pytest.mark.parametrize(
    ("seconds", "nanos", "expected"), [(0, 0, 0.0), (2, 500_000_000, 2.5), (0, -250_000_000, -0.25)]
)
def test_a_duration_keeps_its_parts_of_a_second(seconds: int, nanos: int, expected: float) -> None:
    assert seconds_of(Duration(seconds=seconds, nanos=nanos)) == expected


def field_at_fault(request: Message) -> str:
    """The field that a request is refused for; empty when it is taken."""
    try:
        validate(deserializer(type(request))(request.SerializeToString()), "method")
    except Refusal as refusal:
        return refusal.metadata["field"]
    return ""
