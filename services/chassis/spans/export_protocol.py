"""Messages between a service and its exporting process, framed, over a socket pair."""

from collections.abc import Sequence
from struct import Struct

import msgspec

from pointsman.services.chassis.spans.transitions import KindStates, Row
from pointsman.services.chassis.telemetry.recording import CallRecord

HEADER = Struct("<IQ")
"""The header of a frame: length of the message, number of the request."""


class Page(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """Journal rows of one store, to be exported as spans."""

    service: str
    kinds: dict[str, KindStates]
    is_sampled: bool
    """Whether the sampler may drop transitions too."""
    rows: Sequence[Row]
    predecessors: Sequence[Row] = ()
    """Values from the predecessors of some rows, each with the row's position first."""


class Records(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Records of calls and commits, to be exported as spans."""

    records: Sequence[CallRecord]


class ExportAnswer(msgspec.Struct, frozen=True, array_like=True):
    """The result of one request."""

    spans: int = 0
    """The number of spans to send."""
    lost: int = 0
    """The number of spans that the collector did not accept; of a page all or none."""
    cpu_seconds: float = 0.0
    """CPU time that the request took."""
    unknown: Sequence[int] = ()
    """Positions of rows whose predecessors are needed first; nothing of the page was sent."""


ExportRequest = Page | Records
encode = msgspec.msgpack.Encoder().encode
decode_request = msgspec.msgpack.Decoder(ExportRequest).decode
decode_answer = msgspec.msgpack.Decoder(ExportAnswer).decode


def frame(number: int, message: bytes) -> bytes:
    """A message with its header."""
    return HEADER.pack(len(message), number) + message
