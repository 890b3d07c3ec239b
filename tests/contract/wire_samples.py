"""The wire as it is today: every RPC, every enum, and one sample of every message, made from the descriptors.

`python -m tests.contract.wire_samples` records it in tests/data/wire.json. Until the first release a deliberate change
may be recorded anew; after it, only additions may.
"""

import base64
import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor, FileDescriptor, ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

ROOT = Path(__file__).resolve().parents[2]
RECORDED = ROOT / "tests" / "data" / "wire.json"
API = ROOT / "pointsman" / "api"

SCALARS: dict[int, Any] = {
    FieldDescriptor.TYPE_STRING: "text",
    FieldDescriptor.TYPE_BYTES: b"bytes",
    FieldDescriptor.TYPE_BOOL: True,
    FieldDescriptor.TYPE_DOUBLE: 0.5,
    FieldDescriptor.TYPE_FLOAT: 0.5,
}


def files() -> Iterator[FileDescriptor]:
    """Every file of the contract."""
    for path in sorted(API.rglob("*_pb2.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        yield importlib.import_module(module).DESCRIPTOR


def messages() -> Iterator[Descriptor]:
    """Every message, nested ones too, but not the entries of maps."""
    for file in files():
        for message in file.message_types_by_name.values():
            yield from _with_nested(message)


def _with_nested(message: Descriptor) -> Iterator[Descriptor]:
    if message.GetOptions().map_entry:
        return
    yield message
    for nested in message.nested_types:
        yield from _with_nested(nested)


def enums() -> Iterator[EnumDescriptor]:
    """Every enum."""
    for file in files():
        yield from file.enum_types_by_name.values()
    for message in messages():
        yield from message.enum_types


def services() -> Iterator[ServiceDescriptor]:
    """Every service."""
    for file in files():
        yield from file.services_by_name.values()


def sample(descriptor: Descriptor, depth: int = 1) -> Message:
    """A message with every field set; of a oneof, the field that is declared last."""
    message = GetMessageClass(descriptor)()
    if descriptor.full_name.startswith("google.protobuf."):
        _well_known(message)
        return message
    for field in descriptor.fields:
        _set(message, field, depth)
    return message


def _well_known(message: Any) -> None:
    if message.DESCRIPTOR.name in ("Timestamp", "Duration"):
        message.seconds, message.nanos = 1_700_000_000, 5_000_000


def _set(message: Any, field: FieldDescriptor, depth: int) -> None:
    entry = field.message_type if field.type == FieldDescriptor.TYPE_MESSAGE else None
    if entry is not None and entry.GetOptions().map_entry:
        value = entry.fields_by_name["value"]
        if value.message_type is not None:
            getattr(message, field.name)["key"].CopyFrom(sample(value.message_type, 0))
        else:
            getattr(message, field.name)["key"] = _scalar(value)
    elif entry is not None:
        inner = sample(entry, depth - 1) if depth > 0 else GetMessageClass(entry)()
        target = getattr(message, field.name)
        if field.is_repeated:
            target.append(inner)
        else:
            target.SetInParent()
            target.CopyFrom(inner)
    elif field.is_repeated:
        getattr(message, field.name).append(_scalar(field))
    else:
        setattr(message, field.name, _scalar(field))


def _scalar(field: FieldDescriptor) -> Any:
    if field.type == FieldDescriptor.TYPE_ENUM:
        assert field.enum_type is not None
        return field.enum_type.values[-1].number
    return SCALARS.get(field.type, 7)


def today() -> dict[str, Any]:
    """All of it, in a form that can be written down."""
    return {
        "methods": {
            f"{service.full_name}/{method.name}": [
                method.input_type.full_name,
                method.output_type.full_name,
                method.client_streaming,
                method.server_streaming,
            ]
            for service in services()
            for method in service.methods
        },
        "enums": {enum.full_name: {value.name: value.number for value in enum.values} for enum in enums()},
        "messages": {descriptor.full_name: recorded(sample(descriptor)) for descriptor in messages()},
    }


def recorded(message: Message) -> dict[str, Any]:
    """One message in both of its forms."""
    binary = base64.b64encode(message.SerializeToString(deterministic=True)).decode()
    return {"binary": binary, "json": json_format.MessageToDict(message, preserving_proto_field_name=True)}


def write_down() -> None:
    """Record the wire as it is today, one entry to a line."""
    sections = []
    for section, entries in today().items():
        lines = [f"  {json.dumps(key)}: {json.dumps(value, sort_keys=True)}" for key, value in sorted(entries.items())]
        sections.append(f"{json.dumps(section)}: {{\n" + ",\n".join(lines) + "\n}")
    RECORDED.write_text("{\n" + ",\n".join(sections) + "\n}\n")


if __name__ == "__main__":
    write_down()
