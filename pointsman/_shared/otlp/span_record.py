"""A span as it is noted where work is done: plain values, nothing of OpenTelemetry, made into a message later."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

Value = str | int
Attributes = Sequence[tuple[str, Value]]
Link = tuple[bytes, bytes]
"""Another span: the id of its trace, and its own."""


class Kind(IntEnum):
    """On which side of what a span stands; OTLP's own numbers."""

    INTERNAL = 1
    SERVER = 2
    CLIENT = 3


@dataclass(frozen=True, slots=True, eq=False)
class SpanTemplate:
    """What spans of one sort have in common; whoever keeps it for the next span spares writing it anew."""

    service: str
    name: str
    kind: Kind
    attributes: Attributes
    failed: bool = False


class SpanRecord(NamedTuple):
    """A span in its simplest form, quick to write down where work is done."""

    sort: SpanTemplate
    traceparent: str
    """A context of its trace; its flags say whether the caller records."""
    parent_id: bytes
    """The span that it stands below; a root has none."""
    span_id: bytes
    begin_ns: int
    end_ns: int
    attributes: Attributes = ()
    """Its own, besides those of its sort."""
    links: Sequence[Link] = ()
    """Others that it has to do with."""


now_ns = time.time_ns
"""The time as spans have it."""


def trace_id_in(traceparent: str) -> bytes:
    """The trace that a context names."""
    return bytes.fromhex(traceparent[3:35])


def span_id_in(traceparent: str) -> bytes:
    """The span that a context names."""
    return bytes.fromhex(traceparent[36:52])
