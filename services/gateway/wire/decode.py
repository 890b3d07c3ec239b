"""JSON values as messages; whatever does not fit is refused with the path of its field."""

import base64
import binascii
import math
import re
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from pointsman.services.chassis.core.errors import Refusal, invalid_field
from pointsman.services.gateway.wire.encode import FLOATS, TEXTUAL

Wanted = TypeVar("Wanted", bound=Message)
INTEGER = re.compile(r"-?[0-9]{1,20}")
NUMBER = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?")


def decode(value: Any, message_class: type[Wanted]) -> Wanted:
    """The message that the JSON value stands for."""
    message = message_class()
    _fill(message, value, "")
    return message


def _fill(message: Message, value: Any, path: str) -> None:
    if message.DESCRIPTOR.full_name in TEXTUAL:
        _fill_text(message, value, path)
        return
    if not isinstance(value, dict):
        raise invalid_field(path, "must be an object")
    known = _fields(message.DESCRIPTOR)
    oneofs: dict[str, str] = {}
    for name, item in value.items():
        field = known.get(name)
        place = f"{path}.{name}" if path else name
        if field is None:
            raise invalid_field(place[:256], f"is not a field of {message.DESCRIPTOR.name}")
        if item is None:
            continue
        _refuse_second(field, message, oneofs, place)
        _set(message, field, item, place)


def _refuse_second(field: FieldDescriptor, message: Message, oneofs: dict[str, str], place: str) -> None:
    """A field under both of its names, or two members of a oneof, would say two things."""
    group = field.containing_oneof.name if field.containing_oneof is not None else f"field {field.name}"
    if group in oneofs:
        raise invalid_field(place, f"cannot be given together with {oneofs[group]} in {message.DESCRIPTOR.name}")
    oneofs[group] = field.name


@cache
def _fields(descriptor: Descriptor) -> dict[str, FieldDescriptor]:
    names = {field.json_name: field for field in descriptor.fields}
    return names | {field.name: field for field in descriptor.fields}


def _set(message: Message, field: FieldDescriptor, value: Any, path: str) -> None:
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        _set_map(getattr(message, field.name), field, value, path)
    elif field.is_repeated:
        _set_list(getattr(message, field.name), field, value, path)
    elif entry is not None:
        inner = getattr(message, field.name)
        inner.SetInParent()
        _fill(inner, value, path)
    else:
        with_range(lambda: setattr(message, field.name, _scalar(field, value, path)), path)


def _set_list(items: Any, field: FieldDescriptor, value: Any, path: str) -> None:
    if not isinstance(value, list):
        raise invalid_field(path, "must be a list")
    for index, item in enumerate(value):
        place = f"{path}[{index}]"
        if field.message_type is not None:
            _fill(items.add(), item, place)
        else:
            with_range(lambda: items.append(_scalar(field, item, place)), place)  # noqa: B023


def _set_map(entries: Any, field: FieldDescriptor, value: Any, path: str) -> None:
    if not isinstance(value, dict):
        raise invalid_field(path, "must be an object")
    assert field.message_type is not None
    held = field.message_type.fields_by_name["value"]
    for key, item in value.items():
        place = f"{path}[{key}]"[:256]
        if held.message_type is not None:
            _fill(entries[key], item, place)
        else:
            entries[key] = _scalar(held, item, place)


def with_range(assign: Callable[[], None], path: str) -> None:
    """Assign a number; one that its field cannot hold is refused."""
    try:
        assign()
    except Refusal:
        raise
    except ValueError:
        raise invalid_field(path, "is out of range") from None


def _fill_text(message: Any, value: Any, path: str) -> None:
    example = "2026-01-31T12:00:00Z" if message.DESCRIPTOR.name == "Timestamp" else "1.5s"
    if not isinstance(value, str):
        raise invalid_field(path, f"must be a string such as {example}")
    try:
        message.FromJsonString(value)
    except (ValueError, OverflowError):
        raise invalid_field(path, f"must be like {example}") from None


def _scalar(field: FieldDescriptor, value: Any, path: str) -> Any:
    if field.enum_type is not None:
        return _enum(field, value, path)
    if field.cpp_type in FLOATS:
        return _float(value, path)
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return _bool(value, path)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return _bytes(value, path)
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return _text(value, path)
    return _integer(value, path)


def _bool(value: Any, path: str) -> bool:
    if not isinstance(value, bool):
        raise invalid_field(path, "must be true or false")
    return value


def _text(value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise invalid_field(path, "must be a string")
    return value


def _integer(value: Any, path: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and INTEGER.fullmatch(value):
        return int(value)
    raise invalid_field(path, "must be a whole number")


def _float(value: Any, path: str) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    is_text = isinstance(value, str) and NUMBER.fullmatch(value) is not None
    try:
        number = float(value) if is_number or is_text else math.nan
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise invalid_field(path, "must be a finite number")
    return number


def _bytes(value: Any, path: str) -> bytes:
    text = _text(value, path)
    try:
        return base64.b64decode(text.replace("-", "+").replace("_", "/") + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise invalid_field(path, "must be base64") from None


def _enum(field: FieldDescriptor, value: Any, path: str) -> int:
    enum = field.enum_type
    assert enum is not None
    if isinstance(value, str) and value in enum.values_by_name:
        return int(enum.values_by_name[value].number)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise invalid_field(path, f"must be one of {', '.join(one.name for one in enum.values)}"[:250])
