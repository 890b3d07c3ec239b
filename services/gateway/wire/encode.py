"""Messages to JSON values, by the proto JSON mapping with all fields without presence; why not json_format: ADR 0014."""

import base64
import math
from collections.abc import Callable
from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message

Convert = Callable[[Any], Any]

WIDE = frozenset(
    {FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT64},
)
FLOATS = frozenset({FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT})
TEXTUAL = frozenset({"google.protobuf.Timestamp", "google.protobuf.Duration"})


def encode(message: Message) -> Any:
    """The message as a JSON value."""
    if message.DESCRIPTOR.full_name in TEXTUAL:
        return message.ToJsonString()  # type: ignore[attr-defined]
    result: dict[str, Any] = {}
    for name, has_presence, convert in _plan(message.DESCRIPTOR):
        if has_presence and not message.HasField(name):
            continue
        value = getattr(message, name)
        result[name] = value if convert is None else convert(value)
    return result


@cache
def _plan(descriptor: Descriptor) -> tuple[tuple[str, bool, Convert | None], ...]:
    return tuple((field.name, field.has_presence, _field(field)) for field in descriptor.fields)


def _field(field: FieldDescriptor) -> Convert | None:
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        return _map(_single(entry.fields_by_name["value"]))
    single = _single(field)
    if not field.is_repeated:
        return single
    return list if single is None else lambda values: [single(value) for value in values]


def _map(convert: Convert | None) -> Convert:
    def entries(values: Any) -> dict[str, Any]:
        return {
            _key(key): value if convert is None else convert(value)
            for key, value in ((key, values[key]) for key in values)
        }

    return entries


def _key(key: Any) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _single(field: FieldDescriptor) -> Convert | None:
    if field.message_type is not None:
        return encode
    if field.enum_type is not None:
        return _enum(field.enum_type)
    if field.cpp_type in WIDE:
        return str
    if field.cpp_type in FLOATS:
        return _number
    return _base64 if field.type == FieldDescriptor.TYPE_BYTES else None


def _enum(descriptor: EnumDescriptor) -> Convert:
    names = {value.number: value.name for value in descriptor.values}
    return lambda number: names.get(number, number)


def _number(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()
