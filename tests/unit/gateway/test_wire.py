"""JSON and messages: the same mapping as protobuf's own, with better words for what does not fit."""

from typing import Any

import msgspec
import pytest
from google.protobuf.json_format import MessageToDict, ParseDict
from hypothesis import given, settings
from hypothesis import strategies as st

from pointsman.api.orchestrator.v1 import artifact_pb2, orchestrator_pb2, run_pb2
from pointsman.api.router.v1 import decision_pb2
from pointsman.api.workflow.v1 import plans_pb2, tasks_pb2
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.gateway.contract import METHODS
from pointsman.services.gateway.wire import decode, encode, from_query, read_json
from tests.unit.gateway.messages import drawn

MESSAGES = sorted({one for method in METHODS.values() for one in (method.request, method.response)}, key=str)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_every_message_is_written_and_read_as_protobuf_itself_does(data: st.DataObject) -> None:
    message = drawn(data.draw, data.draw(st.sampled_from(MESSAGES)))
    written = encode(message)
    own = MessageToDict(message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
    assert written == own
    assert decode(read_json(msgspec.json.encode(written), "m"), type(message)) == message
    assert ParseDict(written, type(message)()) == message


def test_names_in_lower_camel_case_and_numbers_as_strings_are_taken_too() -> None:
    request = decode({"runId": "r", "page": {"pageSize": "7"}}, orchestrator_pb2.ListTransitionsRequest)
    assert (request.run_id, request.page.page_size) == ("r", 7)


def test_null_means_not_given() -> None:
    assert decode({"run_id": None}, orchestrator_pb2.GetRunRequest) == orchestrator_pb2.GetRunRequest()


@pytest.mark.parametrize(
    ("message_class", "body", "field"),
    [
        (orchestrator_pb2.GetRunRequest, [], ""),
        (orchestrator_pb2.GetRunRequest, {"run_id": 5}, "run_id"),
        (orchestrator_pb2.GetRunRequest, {"nothing": 5}, "nothing"),
        (orchestrator_pb2.GetRunRequest, {"run_id": "a", "runId": "b"}, "runId"),
        (orchestrator_pb2.WatchRunRequest, {"after_seq": True}, "after_seq"),
        (orchestrator_pb2.WatchRunRequest, {"after_seq": "1e3"}, "after_seq"),
        (orchestrator_pb2.WatchRunRequest, {"after_seq": 2**63}, "after_seq"),
        (orchestrator_pb2.WatchRunRequest, {"after_seq": 1.5}, "after_seq"),
        (orchestrator_pb2.ListRunsRequest, {"states": "RUN_STATE_IDLE"}, "states"),
        (orchestrator_pb2.ListRunsRequest, {"states": ["RUN_STATE_IDLE", "NOWHERE"]}, "states[1]"),
        (orchestrator_pb2.ListRunsRequest, {"states": [2**31]}, "states[0]"),
        (orchestrator_pb2.ListRunsRequest, {"labels": {"a": 1}}, "labels[a]"),
        (orchestrator_pb2.ListRunsRequest, {"labels": []}, "labels"),
        (orchestrator_pb2.ListRunsRequest, {"created_after": "yesterday"}, "created_after"),
        (orchestrator_pb2.ListRunsRequest, {"created_after": 5}, "created_after"),
        (orchestrator_pb2.ListRunsRequest, {"page": {"page_size": "x"}}, "page.page_size"),
        (orchestrator_pb2.AnswerRequest, {"confidence": "inf"}, "confidence"),
        (orchestrator_pb2.AnswerRequest, {"confidence": 10**400}, "confidence"),
        (orchestrator_pb2.AnswerRequest, {"confidence": True}, "confidence"),
        (orchestrator_pb2.AnswerRequest, {"budget": {"wall_clock": "soon"}}, "budget.wall_clock"),
        (orchestrator_pb2.SubmitRequest, {"auto_resume": "true"}, "auto_resume"),
        (artifact_pb2.PutRequest, {"chunk": "***"}, "chunk"),
        (artifact_pb2.PutRequest, {"chunk": "aGk=", "start": {}}, "start"),
        (plans_pb2.UpsertPlanRequest, {"tasks": [{"task_id": "a"}, {"name": []}]}, "tasks[1].name"),
        (tasks_pb2.RecordUsageRequest, {"characters": 1, "context_tokens": 2}, "context_tokens"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_path_of_its_field(message_class: Any, body: Any, field: str) -> None:
    with pytest.raises(Refusal) as caught:
        decode(body, message_class)
    assert caught.value.reason is Reason.INVALID_FIELD
    assert [violation.field for violation in caught.value.violations] == [field]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b'{"a": 1, "a": 2}', Reason.INVALID_FIELD),
        (b'{"a": NaN}', Reason.INVALID_FIELD),
        (b'{"a": -Infinity}', Reason.INVALID_FIELD),
        (b'{"a": "\\u0000"}', Reason.INVALID_FIELD),
        (b'{"a": ["\\ud800"]}', Reason.INVALID_FIELD),
        (b'{"\\ud800": 1}', Reason.INVALID_FIELD),
        (b'{"a":' * 70 + b"1" + b"}" * 70, Reason.INVALID_FIELD),
        (b"[" * 200_000, Reason.MALFORMED_MESSAGE),
        (b'{"a": ' + b"9" * 5000 + b"}", Reason.MALFORMED_MESSAGE),
        (b"", Reason.MALFORMED_MESSAGE),
        (b"{", Reason.MALFORMED_MESSAGE),
        (b"\xff\xfe", Reason.MALFORMED_MESSAGE),
        (b'{"a": "\xed\xa0\x80"}', Reason.MALFORMED_MESSAGE),
    ],
)
def test_json_that_could_be_read_in_two_ways_is_refused(text: bytes, reason: Reason) -> None:
    with pytest.raises(Refusal) as caught:
        read_json(text, "m")
    assert caught.value.reason is reason
    caught.value.message.encode()


def test_a_query_stands_for_the_same_request_as_a_body() -> None:
    parameters = [
        ("states", "RUN_STATE_IDLE"), ("states", "RUN_STATE_BOOT"), ("labels.team.name", "a"), ("page.page_size", "9"),
        ("created_after", "2026-01-01T00:00:00Z"),
    ]  # fmt: skip
    body = from_query(parameters, orchestrator_pb2.ListRunsRequest.DESCRIPTOR)
    request = decode(body, orchestrator_pb2.ListRunsRequest)
    assert list(request.states) == [run_pb2.RUN_STATE_IDLE, run_pb2.RUN_STATE_BOOT]
    assert (dict(request.labels), request.page.page_size) == ({"team.name": "a"}, 9)


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ([("run_id", "a"), ("run_id", "b")], "run_id"),
        ([("nothing", "a")], "nothing"),
        ([("run_id.x", "a")], "run_id"),
        ([("run_id", "\0")], "run_id"),
        ([("page", "a"), ("page.page_size", "2")], "page"),
    ],
)
def test_a_query_that_says_two_things_is_refused(parameters: list[tuple[str, str]], field: str) -> None:
    with pytest.raises(Refusal) as caught:
        from_query(parameters, orchestrator_pb2.ListTransitionsRequest.DESCRIPTOR)
    assert caught.value.metadata["field"] == field


def test_an_unknown_enum_number_is_written_as_the_number() -> None:
    assert encode(decision_pb2.Message(mode_override=77))["mode_override"] == 77  # type: ignore[arg-type]


def test_booleans_in_a_query_are_words() -> None:
    body = from_query([("chinese", "true")], METHODS["/api/v1/workflow.WorkflowService/ExportTasks"].fields)
    assert body == {"chinese": True}
