"""Messages as the JSON files that agents read and write: short enum names, strict reading."""

from typing import Any, TypeVar

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from google.protobuf.message import Message

from pointsman._shared.strict_json import JsonError, decode

Kind = TypeVar("Kind", bound=Message)


class InvalidFile(Exception):
    """A file that cannot be used, and why."""


def to_json_object(message: Message) -> dict[str, Any]:
    """A message as a JSON object: the proto's field names, enum values without their prefix."""
    plain = MessageToDict(message, preserving_proto_field_name=True)
    result: dict[str, Any] = _renamed(plain, message.DESCRIPTOR, _short)
    return result


def from_json_object(value: Any, message: Kind, where: str) -> Kind:
    """Parses a JSON object into a message; unknown names and wrong types are refused."""
    if not isinstance(value, dict):
        raise InvalidFile(f"{where}: an object is expected")
    try:
        return ParseDict(_renamed(value, message.DESCRIPTOR, _long), message)
    except (ParseError, ValueError, TypeError, AttributeError) as error:
        raise InvalidFile(f"{where}: {str(error)[:300]}") from None


def strict_json(data: bytes, where: str) -> Any:
    """Parses JSON strictly: no duplicate names, no NaN, no values that parsers read differently."""
    try:
        return decode(data)
    except JsonError as error:
        raise InvalidFile(f"{where}: {str(error)[:300]}") from None


def _renamed(value: Any, descriptor: Any, rename: Any) -> Any:
    if not isinstance(value, dict) or descriptor.full_name.startswith("google.protobuf."):
        return value
    fields = {**descriptor.fields_by_name, **descriptor.fields_by_camelcase_name}
    return {name: _renamed_field(item, fields.get(name), rename) for name, item in value.items()}


def _renamed_field(item: Any, field: FieldDescriptor | None, rename: Any) -> Any:
    if field is None:
        return item
    if isinstance(item, list):
        return [_renamed_field(one, field, rename) for one in item]
    if field.enum_type is not None:
        return rename(item, field.enum_type)
    return item if field.message_type is None else _renamed(item, field.message_type, rename)


def _prefix(enum: EnumDescriptor) -> str:
    return enum.values_by_number[0].name.removesuffix("UNSPECIFIED")


def _short(name: str, enum: EnumDescriptor) -> str:
    return name.removeprefix(_prefix(enum))


def _long(name: Any, enum: EnumDescriptor) -> Any:
    if not isinstance(name, str):
        raise InvalidFile(f"{enum.name} is given by its name, as a text")
    prefix = _prefix(enum)
    return prefix + name.upper().removeprefix(prefix)
