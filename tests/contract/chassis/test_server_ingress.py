"""What comes in over the wire: bytes that are no message, messages that break a rule, metadata that nobody may send."""

import hashlib
import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.message import DecodeError

from tests.helpers.counter import SERVICE, counter_pb2
from tests.helpers.counter_server import Served, an_add, failure_of, serving

METHODS = [method.name for method in SERVICE.methods]
REQUESTS = {method.name: getattr(counter_pb2, method.input_type.name) for method in SERVICE.methods}
MALFORMED = {
    "a length beyond the end": b"\x0a\xff\x01abc",
    "an endless varint": b"\x10" + b"\xff" * 11,
    "an unknown wire type": b"\x0f",
    "field number zero": b"\x00\x01",
    "text that is not UTF-8": b"\x0a\x02\xff\xfe\x12\x01\xff",
    "a half surrogate": b"\x0a\x03\xed\xa0\x80",
    "an unclosed group": b"\x0b\x0b\x0b",
    "noise": bytes(range(128, 256)),
}
NEVER = {grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL}


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    """A counter on a file, with the smallest message limit."""
    async with serving(f"sqlite:///{tmp_path / 'store.db'}", max_message_bytes=4096) as started:
        yield started


async def test_malformed_bytes_are_an_invalid_argument(served: Served) -> None:
    for method, name in itertools.product(METHODS, MALFORMED):
        failure = await failure_of(served.raw(method, MALFORMED[name]))
        assert (failure.code, failure.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "MALFORMED_MESSAGE"), (method, name)
        assert failure.metadata["method"].endswith(method) or method == "Collect"


async def test_a_truncated_message_is_an_invalid_argument(served: Served) -> None:
    whole = an_add(notes=["one", "two"], labels={"key": "value"}).SerializeToString()
    for method, length in itertools.product(METHODS, range(len(whole))):
        if not parses(REQUESTS[method], whole[:length]):
            failure = await failure_of(served.raw(method, whole[:length]))
            assert failure.code is grpc.StatusCode.INVALID_ARGUMENT, (method, length)


async def test_noise_is_never_a_server_error(served: Served) -> None:
    for method, number in itertools.product(METHODS, range(40)):
        data = hashlib.shake_128(f"{method}{number}".encode()).digest(1 + number)
        try:
            await served.raw(method, data)
        except grpc.aio.AioRpcError as error:
            assert error.code() not in NEVER, (method, data)  # noqa: PT017 - an answer would be as good


async def test_a_message_of_the_largest_size_is_taken_and_one_more_byte_is_not(served: Served) -> None:
    largest, beyond = padded(4096), padded(4097)
    for method in METHODS:
        failure = await failure_of(served.raw(method, beyond))
        assert failure.code is grpc.StatusCode.RESOURCE_EXHAUSTED, method
        try:
            await served.raw(method, largest)
        except grpc.aio.AioRpcError as error:
            assert error.code() is not grpc.StatusCode.RESOURCE_EXHAUSTED, method  # noqa: PT017


async def test_a_nul_is_refused_wherever_it_stands(served: Served) -> None:
    tainted: list[tuple[str, dict[str, Any]]] = [
        ("request_id", {"request_id": "a\0b"}),
        ("counter_id", {"counter_id": "\0"}),
        ("notes[1]", {"notes": ["fine", "not\0fine"]}),
        ("labels", {"labels": {"ke\0y": "value"}}),
        ("labels", {"labels": {"key": "\0"}}),
    ]
    for field, more in tainted:
        failure = await failure_of(served.stub.Add(an_add(**more)))
        assert (failure.code, failure.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD")
        assert failure.fields == [field]


async def test_a_broken_constraint_names_the_path_of_its_field(served: Served) -> None:
    broken: list[tuple[list[str], dict[str, Any]]] = [
        (["request_id"], {"request_id": ""}),
        (["request_id"], {"request_id": "r" * 129}),
        (["request_id"], {"request_id": "engine:c1:1:0"}),
        (["counter_id", "amount"], {"counter_id": "", "amount": 1001}),
        (["notes"], {"notes": ["a"] * 4}),
        (["notes[1]"], {"notes": ["fine", "n" * 101]}),
        (["labels[a label that is too long]"], {"labels": {"a label that is too long": ""}}),
    ]
    for fields, more in broken:
        failure = await failure_of(served.stub.Add(an_add(**more)))
        assert (failure.code, failure.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD")
        assert (failure.fields, failure.metadata["field"]) == (fields, fields[0])


async def test_a_project_that_is_no_name_is_refused(served: Served) -> None:
    for project in ("", "a b", "a/b", "p" * 65, "../.."):
        failure = await failure_of(served.stub.Add(an_add(), metadata=(("pointsman-project", project),)))
        assert (failure.code, failure.fields) == (grpc.StatusCode.INVALID_ARGUMENT, ["pointsman-project"])


async def test_metadata_beyond_its_limit_is_refused(served: Served) -> None:
    failure = await failure_of(served.stub.Add(an_add(), metadata=(("padding", "x" * 9000),)))
    assert failure.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert (await served.stub.Add(an_add(), metadata=(("padding", "x" * 7000),))).value == 1


async def test_a_stream_of_requests_is_checked_one_by_one(served: Served) -> None:
    answer = await served.stub.Collect(iter([an_add(amount=2), an_add(amount=3)]))
    assert answer.value == 5
    failure = await failure_of(served.stub.Collect(iter([an_add(amount=2), an_add(amount=1001)])))
    assert (failure.code, failure.fields) == (grpc.StatusCode.INVALID_ARGUMENT, ["amount"])


async def test_the_same_request_over_the_wire_is_answered_alike_and_another_is_refused(served: Served) -> None:
    first = await served.stub.Add(an_add("r1", amount=5, labels={"a": "1", "b": "2"}))
    again = await served.stub.Add(an_add("r1", amount=5, labels={"b": "2", "a": "1"}))
    assert first == again
    failure = await failure_of(served.stub.Add(an_add("r1", amount=6)))
    assert (failure.code, failure.reason) == (grpc.StatusCode.ALREADY_EXISTS, "REQUEST_ID_REUSED")


def parses(request: Any, data: bytes) -> bool:
    try:
        request.FromString(data)
    except DecodeError:
        return False
    return True


def padded(size: int) -> bytes:
    """A valid request of a size, grown by a label."""
    empty = an_add("big", labels={"pad": "x" * 2000}).ByteSize()
    data = an_add("big", labels={"pad": "x" * (2000 + size - empty)}).SerializeToString()
    assert len(data) == size
    return bytes(data)
