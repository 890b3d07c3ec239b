"""Query parameters as the JSON value they stand for: `page.page_size=10`, `labels.team=a`, a list by repetition."""

from collections.abc import Iterable
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from pointsman._shared.strict_json import UNSTORABLE, printable
from pointsman.services.chassis.core.errors import invalid_field

BOOLEANS = {"true": True, "false": False}


def from_query(parameters: Iterable[tuple[str, str]], descriptor: Descriptor) -> dict[str, Any]:
    """What the same request would be as a JSON body."""
    body: dict[str, Any] = {}
    for name, value in parameters:
        if UNSTORABLE.search(name) or UNSTORABLE.search(value):
            raise invalid_field(printable(name), "must not contain NUL characters")
        _put(body, name.split("."), value, descriptor)
    return body


def _put(body: dict[str, Any], path: list[str], value: str, descriptor: Descriptor) -> None:
    name, *rest = path
    field = descriptor.fields_by_name.get(name)
    if field is None:
        raise invalid_field(name[:256], f"is not a field of {descriptor.name}")
    if _is_map(field):
        body.setdefault(name, {})[".".join(rest)] = value
    elif rest:
        _put_inside(body, field, rest, value)
    elif field.is_repeated:
        body.setdefault(name, []).append(_typed(field, value))
    elif name in body:
        raise invalid_field(name, "is given twice")
    else:
        body[name] = _typed(field, value)


def _put_inside(body: dict[str, Any], field: FieldDescriptor, rest: list[str], value: str) -> None:
    inner = body.setdefault(field.name, {})
    if field.message_type is None or field.is_repeated or not isinstance(inner, dict):
        raise invalid_field(field.name, "has no fields of its own here; send it in a body with POST")
    _put(inner, rest, value, field.message_type)


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def _typed(field: FieldDescriptor, value: str) -> Any:
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return BOOLEANS.get(value, value)
    return value
