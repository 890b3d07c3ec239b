"""A span as it is noted where work is done: plain values, nothing of OpenTelemetry, made into a message later."""

import time
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

Value = str | int


class Kind(IntEnum):
    """On which side of what a span stands; OTLP's own numbers."""

    INTERNAL = 1
    SERVER = 2
    CLIENT = 3


class Noted(NamedTuple):
    """A span in its simplest form, quick to write down where work is done."""

    service: str
    name: str
    kind: Kind
    traceparent: str
    """The trace, and the span that is its parent; its flags say whether the caller records."""
    span_id: str
    begin_ns: int
    end_ns: int
    attributes: Mapping[str, Value]
    failed: bool = False
    links: Sequence[str] = ()
    """Trace contexts of others that it has to do with."""
    is_root: bool = False


def now_ns() -> int:
    """The time as spans have it."""
    return time.time_ns()
