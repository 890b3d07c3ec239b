"""Deserializes and validates requests and metadata."""

import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import protovalidate
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import DecodeError, Message
from google.protobuf.timestamp_pb2 import Timestamp

from pointsman.services.chassis.core.caller import LOCAL
from pointsman.services.chassis.core.errors import Reason, Refusal, Violation, invalid_field, invalid_fields
from pointsman.services.chassis.telemetry.context import valid_traceparent

PROJECT = re.compile(r"[A-Za-z0-9_.-]{1,64}")
FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799
LONGEST_SECONDS = 315_576_000_000
NANOS = 1_000_000_000


class Malformed:
    """A request that cannot be parsed: refused by `validate`, like any other invalid request."""


MALFORMED = Malformed()


class ContainsNul(Malformed):
    """A request with a NUL character in a string, which the two databases would store differently."""

    def __init__(self, field: str) -> None:
        self.field = field


class InvalidTime(Malformed):
    """A request with a Timestamp or Duration out of range, which the protobuf parser does not check."""

    def __init__(self, field: str) -> None:
        self.field = field


def deserializer(message_class: Any) -> Callable[[bytes], Message | Malformed]:
    """A deserializer for gRPC that never raises: gRPC would answer with a status of its own."""

    def read(data: bytes) -> Message | Malformed:
        try:
            message: Message = message_class.FromString(data)
        except (DecodeError, RecursionError):
            return MALFORMED
        if b"\0" in data and (field := nul_field(message)):
            return ContainsNul(field)
        if _timed_fields(message.DESCRIPTOR) and (field := invalid_time_field(message)):
            return InvalidTime(field)
        return message

    return read


def validate(request: Message | Malformed, method: str) -> Any:
    """The request, if it meets every constraint of its proto; else a refusal."""
    if isinstance(request, ContainsNul):
        raise invalid_field(request.field, "must not contain NUL characters")
    if isinstance(request, InvalidTime):
        raise invalid_field(request.field, "must lie between the years 1 and 9999, with nanos below a second")
    if isinstance(request, Malformed):
        raise Refusal(Reason.MALFORMED_MESSAGE, "the bytes are not a valid request", metadata={"method": method})
    violations = protovalidate.collect_violations(request)
    if violations:
        raise invalid_fields(tuple(Violation(_path(v.proto.field), v.proto.message) for v in violations))
    return request


def read_metadata(metadata: Iterable[tuple[str, str | bytes]]) -> tuple[str, str]:
    """Project and traceparent from the metadata of a call."""
    project, traceparent = LOCAL, ""
    for key, value in metadata:
        if key == "pointsman-project":
            project = str(value)
        elif key == "traceparent":
            traceparent = valid_traceparent(str(value))
    if project != LOCAL and not PROJECT.fullmatch(project):
        raise invalid_field("pointsman-project", "must be 1 to 64 letters, digits, '_', '.' or '-'")
    return project, traceparent


def nul_field(message: Message) -> str:
    """The path of the first string that contains NUL; empty if none does."""
    for field, value in message.ListFields():
        for path, item in _items(field, value):
            if isinstance(item, str) and "\0" in item:
                return path
            if isinstance(item, Message) and (inner := nul_field(item)):
                return f"{path}.{inner}"
    return ""


def invalid_time_field(message: Message) -> str:
    """The path of the first Timestamp or Duration out of range; empty if none is."""
    for field in _timed_fields(message.DESCRIPTOR):
        if field.is_repeated:
            items = _items(field, getattr(message, field.name))
        elif message.HasField(field.name):
            items = ((field.name, getattr(message, field.name)),)
        else:
            continue
        for path, item in items:
            if isinstance(item, Timestamp | Duration):
                if not _is_valid_time(item):
                    return path
            elif isinstance(item, Message) and (inner := invalid_time_field(item)):
                return f"{path}.{inner}"
    return ""


def _is_valid_time(time: Timestamp | Duration) -> bool:
    if isinstance(time, Timestamp):
        return FIRST_SECOND <= time.seconds <= LAST_SECOND and 0 <= time.nanos < NANOS
    same_sign = time.seconds == 0 or time.nanos == 0 or (time.seconds > 0) == (time.nanos > 0)
    return abs(time.seconds) <= LONGEST_SECONDS and abs(time.nanos) < NANOS and same_sign


def _holds_times(descriptor: Descriptor, above: tuple[Descriptor, ...] = ()) -> bool:
    """Whether a message of this type can contain a Timestamp or Duration."""
    inner = [field.message_type for field in descriptor.fields if field.message_type is not None]
    return any(
        one in (Timestamp.DESCRIPTOR, Duration.DESCRIPTOR)
        or (one not in above and _holds_times(one, (*above, descriptor)))
        for one in inner
    )


@cache
def _timed_fields(descriptor: Descriptor) -> tuple[FieldDescriptor, ...]:
    """The fields of a message type that can contain a Timestamp or Duration; only these are checked."""
    times = (Timestamp.DESCRIPTOR, Duration.DESCRIPTOR)
    return tuple(
        field
        for field in descriptor.fields
        if field.message_type is not None and (field.message_type in times or _holds_times(field.message_type))
    )


def _items(field: FieldDescriptor, value: Any) -> Iterable[tuple[str, Any]]:
    """The values of a field, each with its path."""
    entry = field.message_type if field.message_type is not None else None
    if entry is not None and entry.GetOptions().map_entry:
        return [(field.name, item) for item in (*value.keys(), *value.values())]
    if isinstance(value, str | bytes | int | float | Message):
        return ((field.name, value),)
    return [(f"{field.name}[{place}]", item) for place, item in enumerate(value)]


def _path(field: Any) -> str:
    """The path of a violation, such as `plan.tasks[3].name`."""
    text = ""
    for element in field.elements if field is not None else ():
        text += f".{element.field_name}" if text else element.field_name
        subscript = getattr(element, "subscript", None)
        if subscript is not None:
            text += f"[{getattr(subscript, 'value', subscript)}]"
    return text
