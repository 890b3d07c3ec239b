"""An old client must understand a new server, and the other way round: what was once on the wire stays readable."""

import base64
import json
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.unknown_fields import UnknownFieldSet

from tests.contract.wire_samples import RECORDED, enums, messages, recorded, sample, services, today

OLD: dict[str, Any] = json.loads(RECORDED.read_text())
CLASSES = {descriptor.full_name: GetMessageClass(descriptor) for descriptor in messages()}
HOW_TO = "an old client would break; before the first release record anew: python -m tests.contract.wire_samples"


def unknown(message: Message) -> bool:
    """Whether anything in the message, at any depth, could not be named."""
    if len(UnknownFieldSet(message)) > 0:
        return True
    return any(
        unknown(inner)
        for field, value in message.ListFields()
        if field.message_type is not None and not field.message_type.GetOptions().map_entry
        for inner in (value if field.is_repeated else [value])
    )


@pytest.mark.parametrize("name", sorted(OLD["messages"]))
def test_a_recorded_message_is_read_as_it_was_meant(name: str) -> None:
    assert name in CLASSES, f"{name} is gone: {HOW_TO}"
    old = OLD["messages"][name]
    read = CLASSES[name].FromString(base64.b64decode(old["binary"]))
    assert not unknown(read), f"{name}: {HOW_TO}"
    assert json_format.MessageToDict(read, preserving_proto_field_name=True) == old["json"], f"{name}: {HOW_TO}"
    assert json_format.ParseDict(old["json"], CLASSES[name]()) == read, f"{name}: {HOW_TO}"


def test_every_recorded_method_is_called_as_before() -> None:
    now = today()["methods"]
    assert {path: now.get(path) for path in OLD["methods"]} == OLD["methods"], HOW_TO


def test_every_recorded_enum_value_keeps_its_name_and_number() -> None:
    now = {enum.full_name: {value.name: value.number for value in enum.values} for enum in enums()}
    for name, values in OLD["enums"].items():
        assert values.items() <= now.get(name, {}).items(), f"{name}: {HOW_TO}"


def test_an_old_reader_skips_what_it_does_not_know_and_keeps_the_rest() -> None:
    descriptor = next(d for d in messages() if d.full_name == "pointsman.api.common.v1.Transition")
    newer = sample(descriptor).SerializeToString() + b"\xfa\x7f\x03new"
    read = CLASSES[descriptor.full_name].FromString(newer)
    assert recorded(read)["json"] == OLD["messages"][descriptor.full_name]["json"]


def test_everything_on_the_wire_is_recorded() -> None:
    assert {descriptor.full_name for descriptor in messages()} == set(OLD["messages"]), "record what was added"
    assert {f"{s.full_name}/{m.name}" for s in services() for m in s.methods} == set(OLD["methods"])
