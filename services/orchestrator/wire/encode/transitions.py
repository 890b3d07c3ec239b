"""Rows of a run's journal; what their payload says is typed, and read from the stored JSON by its names."""

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

import msgspec
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message_factory import GetMessageClass

from pointsman.api.common.v1 import common_pb2 as common
from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.journal.v1 import run_events_pb2 as journal
from pointsman.services.chassis.engine.journal import Transition
from pointsman.services.chassis.rpc import paging
from pointsman.services.orchestrator.domain.enums import InternalEvent, Trigger
from pointsman.services.orchestrator.wire.encode.documents import revive

REMEMBERED_LENGTH = 8 * 1024
KIND = "run"
_FIELDS: Mapping[str, str] = {
    **{str(trigger): "transitioned" for trigger in Trigger},
    **{str(event): str(event) for event in InternalEvent},
}
"""The field of RunEvent for each stored name."""


def transition(row: Transition, view: common.TransitionView.ValueType) -> common.Transition:
    """A row with its details; with the documents in them instead of its payload, where the view says so."""
    whole = view == common.TRANSITION_VIEW_DETAILS
    message = paging.transition(row)
    if row.kind != KIND:  # an entry of a merge queue has no typed details: its payload is all there is
        return message
    if row.event in _FIELDS:
        read = _remembered if len(row.payload) <= REMEMBERED_LENGTH else run_event
        message.run.CopyFrom(read(row.event, row.payload, whole=whole))
    if whole:
        message.ClearField("payload_json")
    return message


def run_event(event: str, payload: str, *, whole: bool) -> journal.RunEvent:
    """What a payload says; `whole` with the documents that agents handed in."""
    name, data = _FIELDS[event], msgspec.json.decode(payload)
    if event == InternalEvent.WAVE_VERIFIED:
        data["tasks"] = revive(data["document"], work.VerificationReport()).tasks
    message: Any = journal.RunEvent.DESCRIPTOR.fields_by_name[name].message_type
    details: Any = _picked(message, data, whole=whole)
    return journal.RunEvent(**{name: details})


@lru_cache(maxsize=1024)
def _remembered(event: str, payload: str, *, whole: bool) -> journal.RunEvent:
    """The same for rows that several watchers are sent; callers must not change it."""
    return run_event(event, payload, whole=whole)


def _picked(descriptor: Descriptor, data: Mapping[str, Any], *, whole: bool) -> dict[str, Any]:
    """The fields that a message has; the payload may have more, and an older one fewer."""
    picked = {}
    for field in descriptor.fields:
        value = data.get(field.name)
        if value is not None:
            picked[field.name] = _value(field, value, whole=whole)
    return picked


def _value(field: FieldDescriptor, value: Any, *, whole: bool) -> Any:
    if field.enum_type is not None:
        names = _enum_names(field)
        return [names[item] for item in value] if field.is_repeated else names[value]
    if field.message_type is None or field.message_type.GetOptions().map_entry:
        return value
    if isinstance(value, str):
        return revive(value, GetMessageClass(field.message_type)()) if whole and value else None
    if not field.is_repeated:
        return _picked(field.message_type, value, whole=whole)
    return [_picked(field.message_type, item, whole=whole) if isinstance(item, dict) else item for item in value]


@cache
def _enum_names(field: Any) -> Mapping[str, str]:
    """The stored names of an enum, with those of its protobuf enum."""
    names = [value.name for value in field.enum_type.values]
    prefix = names[0].removesuffix("UNSPECIFIED")
    return {name.removeprefix(prefix): name for name in names}
