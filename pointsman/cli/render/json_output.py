"""Messages as JSON, with every 64-bit number as a number."""

from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

LONG = (FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT64)
"""What the protobuf library writes as strings, because JavaScript would round large ones."""


def as_dict(message: Message, *, whole: bool = False) -> dict[str, Any]:
    """A message as JSON objects; `whole` adds the fields that are not set."""
    content: dict[str, Any] = MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=whole
    )
    descriptor: Any = message.DESCRIPTOR
    return _with_numbers(descriptor, content)


def _with_numbers(descriptor: Descriptor, content: dict[str, Any]) -> dict[str, Any]:
    return {name: _value(descriptor.fields_by_name[name], value) for name, value in content.items()}


def _value(field: FieldDescriptor, value: Any) -> Any:
    if isinstance(value, list):
        return [_value(field, one) for one in value]
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        return {key: _value(inner.fields_by_name["value"], one) for key, one in value.items()}
    if inner is not None:
        return _with_numbers(inner, value) if isinstance(value, dict) and not _is_well_known(inner) else value
    return int(value) if field.cpp_type in LONG else value


def _is_well_known(descriptor: Descriptor) -> bool:
    """Times and durations have a form of their own in JSON."""
    return str(descriptor.full_name).startswith("google.protobuf.")
