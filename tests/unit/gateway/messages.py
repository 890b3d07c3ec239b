"""Messages of any type, filled by hypothesis."""

from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import strategies as st

INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
SCALARS: dict[int, st.SearchStrategy[Any]] = {
    FieldDescriptor.CPPTYPE_INT32: INT32,
    FieldDescriptor.CPPTYPE_INT64: INT64,
    FieldDescriptor.CPPTYPE_UINT32: st.integers(0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: st.integers(0, 2**64 - 1),
    FieldDescriptor.CPPTYPE_DOUBLE: st.floats(allow_nan=False, allow_infinity=False),
    FieldDescriptor.CPPTYPE_FLOAT: st.floats(allow_nan=False, allow_infinity=False, width=32),
    FieldDescriptor.CPPTYPE_BOOL: st.booleans(),
}
DEEPEST = 3


def drawn(draw: Any, message_class: type[Message], depth: int = 0) -> Any:
    """A message with some of its fields set."""
    message = message_class()
    _fill(draw, message, depth)
    return message


def _fill(draw: Any, message: Any, depth: int) -> None:
    descriptor: Descriptor = message.DESCRIPTOR
    if descriptor.full_name == "google.protobuf.Timestamp":
        message.seconds, message.nanos = draw(st.integers(0, 4_000_000_000)), draw(st.integers(0, 999_999_999))
        return
    if descriptor.full_name == "google.protobuf.Duration":
        message.seconds, message.nanos = draw(st.integers(0, 1_000_000)), draw(st.integers(0, 999_999_999))
        return
    for field in descriptor.fields:
        if depth < DEEPEST and draw(st.booleans()):
            _set(draw, message, field, depth)


def _set(draw: Any, message: Any, field: FieldDescriptor, depth: int) -> None:
    inner = field.message_type
    if inner is not None and inner.GetOptions().map_entry:
        entries = getattr(message, field.name)
        for key in draw(st.lists(TEXT, max_size=2)):
            value = inner.fields_by_name["value"]
            if value.message_type is None:
                entries[key] = draw(_scalar(value))
            else:
                entries[key].CopyFrom(drawn(draw, GetMessageClass(value.message_type), depth + 1))
    elif field.is_repeated:
        items = getattr(message, field.name)
        for _ in range(draw(st.integers(0, 2))):
            if inner is not None:
                _fill(draw, items.add(), depth + 1)
            else:
                items.append(draw(_scalar(field)))
    elif inner is not None:
        getattr(message, field.name).SetInParent()
        _fill(draw, getattr(message, field.name), depth + 1)
    else:
        setattr(message, field.name, draw(_scalar(field)))


def _scalar(field: FieldDescriptor) -> st.SearchStrategy[Any]:
    if field.enum_type is not None:
        return st.sampled_from([value.number for value in field.enum_type.values])
    if field.type == FieldDescriptor.TYPE_BYTES:
        return st.binary(max_size=8)
    return TEXT if field.cpp_type == FieldDescriptor.CPPTYPE_STRING else SCALARS[field.cpp_type]
