"""A span as it is noted where work is done: plain values, nothing of OpenTelemetry, made into a message later."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

Value = str | int
Attributes = Sequence[tuple[str, Value]]


class Kind(IntEnum):
    """On which side of what a span stands; OTLP's own numbers."""

    INTERNAL = 1
    SERVER = 2
    CLIENT = 3


@dataclass(frozen=True, slots=True, eq=False)
class Sort:
    """What spans of one sort have in common; whoever keeps it for the next span spares writing it anew."""

    service: str
    name: str
    kind: Kind
    attributes: Attributes
    failed: bool = False


class Noted(NamedTuple):
    """A span in its simplest form, quick to write down where work is done."""

    sort: Sort
    traceparent: str
    """The trace, and the span that is its parent; its flags say whether the caller records."""
    span_id: str
    begin_ns: int
    end_ns: int
    attributes: Attributes = ()
    """Its own, besides those of its sort."""
    links: Sequence[str] = ()
    """Trace contexts of others that it has to do with."""
    is_root: bool = False


def now_ns() -> int:
    """The time as spans have it."""
    return time.time_ns()
