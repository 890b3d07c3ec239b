"""Span records: plain values without OpenTelemetry types, recorded where work is done and encoded later."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

Value = str | int
Attributes = Sequence[tuple[str, Value]]
Link = tuple[bytes, bytes]
"""A linked span: trace id and span id."""


class Kind(IntEnum):
    """SpanKind, with OTLP's numbers."""

    INTERNAL = 1
    SERVER = 2
    CLIENT = 3


@dataclass(frozen=True, slots=True, eq=False)
class SpanTemplate:
    """What many spans have in common; its encoding is cached, so callers reuse the object."""

    service: str
    name: str
    kind: Kind
    attributes: Attributes
    is_error: bool = False


class SpanRecord(NamedTuple):
    """One span, cheap to create."""

    template: SpanTemplate
    traceparent: str
    """A context of its trace; the flags hold the caller's sampling decision."""
    parent_id: bytes
    """Empty for a root span."""
    span_id: bytes
    begin_ns: int
    end_ns: int
    attributes: Attributes = ()
    """In addition to those of the template."""
    links: Sequence[Link] = ()


now_ns = time.time_ns
"""The clock of spans."""


def trace_id_in(traceparent: str) -> bytes:
    """The trace id of a context."""
    return bytes.fromhex(traceparent[3:35])


def span_id_in(traceparent: str) -> bytes:
    """The span id of a context."""
    return bytes.fromhex(traceparent[36:52])
