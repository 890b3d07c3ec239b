"""The reasons of refusals are the same in the proto, in the code and on the wire."""

import re
from pathlib import Path

import grpc
import pytest
from google.rpc import error_details_pb2

from pointsman.api.common.v1 import common_pb2
from pointsman.services.chassis.core.errors import CODE_OF, Code, Reason, Refusal, Violation
from pointsman.services.chassis.rpc.status import GRPC_CODES, MAX_STATUS_BYTES, internal_error, refusal_from, status_of

PROTO = Path(__file__).resolve().parents[3] / "protos" / "pointsman" / "api" / "common" / "v1" / "common.proto"
VALUE = re.compile(r"((?:^ *//[^\n]*\n)+) *ERROR_REASON_(\w+) = (\d+);", re.MULTILINE)


def test_the_proto_and_the_code_name_the_same_reasons() -> None:
    declared = {name.removeprefix("ERROR_REASON_") for name in common_pb2.ErrorReason.DESCRIPTOR.values_by_name} - {
        "UNSPECIFIED"
    }
    assert declared == {reason.value for reason in Reason}
    assert [reason.name for reason in Reason] == [reason.value for reason in Reason]


def test_each_reason_is_documented_with_the_code_that_it_has() -> None:
    documented = {
        name: comment.replace("//", " ").split()[0].rstrip(".") for comment, name, _ in VALUE.findall(PROTO.read_text())
    }
    del documented["UNSPECIFIED"]
    assert documented == {reason.value: CODE_OF[reason].value for reason in Reason}


def test_each_reason_says_which_metadata_it_has() -> None:
    silent = [
        name for comment, name, _ in VALUE.findall(PROTO.read_text()) if "Metadata:" not in comment.replace("//", "")
    ]
    assert silent == ["UNSPECIFIED"]


def test_each_code_is_one_of_grpc() -> None:
    assert {code.value for code in Code} == {code.name for code in GRPC_CODES.values()}


@pytest.mark.parametrize("reason", list(Reason))
def test_a_refusal_comes_back_from_the_wire_as_it_was(reason: Reason) -> None:
    refusal = Refusal(
        reason, "why", metadata={"id": "7"}, violations=(Violation("a.b[1]", "too long"),), retry_after_seconds=1.5
    )
    assert _over_the_wire(refusal).__dict__ == refusal.__dict__


def test_no_status_is_larger_than_a_client_takes() -> None:
    violations = tuple(Violation(f"{number}{'長' * 900}", "長" * 900) for number in range(200))
    metadata = {"field": "長" * 900, "id": "x" * 900}
    refusal = Refusal(Reason.INVALID_FIELD, "長" * 5000, metadata=metadata, violations=violations)
    status = status_of(refusal)
    assert status.ByteSize() <= MAX_STATUS_BYTES + 200
    assert len(status.message.encode()) <= 1000
    assert _over_the_wire(refusal).violations


@pytest.mark.parametrize(("seconds", "milliseconds"), [(0.0, 0), (0.5, 500), (1.0, 1000), (61.25, 61250)])
def test_the_time_to_wait_is_exact(seconds: float, milliseconds: int) -> None:
    status = status_of(Refusal(Reason.OVERLOADED, "later", retry_after_seconds=seconds))
    retry = error_details_pb2.RetryInfo()
    assert any(detail.Unpack(retry) for detail in status.details)
    assert retry.retry_delay.ToMilliseconds() == milliseconds


def test_a_bug_says_its_id_and_nothing_else() -> None:
    refusal = internal_error(RuntimeError("secret-dsn"), "id7")
    assert (refusal.reason, refusal.metadata) == (Reason.INTERNAL, {"error_id": "id7"})
    assert "secret" not in refusal.message


@pytest.mark.parametrize("code", list(grpc.StatusCode))
def test_an_answer_without_details_still_has_a_reason(code: grpc.StatusCode) -> None:
    empty = grpc.aio.Metadata()
    refusal = refusal_from(grpc.aio.AioRpcError(code, empty, empty, "somebody's text"))
    known = {GRPC_CODES[CODE_OF[reason]] for reason in Reason}
    assert GRPC_CODES[refusal.code] is (code if code in known else grpc.StatusCode.UNAVAILABLE)


def test_a_call_that_grpc_dropped_from_its_queue_is_told_when_to_come_back() -> None:
    empty = grpc.aio.Metadata()
    dropped = refusal_from(grpc.aio.AioRpcError(grpc.StatusCode.CANCELLED, empty, empty, "CANCELLED"))
    assert (dropped.reason, dropped.retry_after_seconds) == (Reason.UNAVAILABLE, 1.0)
    lost = refusal_from(grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, empty, empty, "connection refused"))
    assert lost.retry_after_seconds is None


def _over_the_wire(refusal: Refusal) -> Refusal:
    status = status_of(refusal)
    trailers = grpc.aio.Metadata(("grpc-status-details-bin", status.SerializeToString()))
    return refusal_from(grpc.aio.AioRpcError(GRPC_CODES[refusal.code], grpc.aio.Metadata(), trailers, status.message))
