"""What a service and the process that exports its spans tell each other: messages in frames, over a socket of their own."""

from collections.abc import Sequence
from struct import Struct

import msgspec

from pointsman.services.chassis.spans.transitions import KindStates, Row
from pointsman.services.chassis.telemetry.recording import CallRecord

HEADER = Struct("<IQ")
"""Before each message: how long it is, and the number of the question that it is or answers."""


class Page(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """Rows of a store's journal, to be told and sent as spans."""

    service: str
    kinds: dict[str, KindStates]
    is_sampled: bool
    """Whether the sampler may drop transitions too."""
    rows: Sequence[Row]
    pasts: Sequence[Row] = ()
    """What came before some of them, each with its position first."""


class Records(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """What was noted of calls and commits."""

    notes: Sequence[CallRecord]


class ExportAnswer(msgspec.Struct, frozen=True, array_like=True):
    """What has become of it."""

    spans: int = 0
    """How many there were to send."""
    lost: int = 0
    """How many of them the collector did not take; of a page all or none."""
    cpu_seconds: float = 0.0
    """How long a core had to do with it."""
    unknown: Sequence[int] = ()
    """Positions of rows that cannot be told without what came before them: nothing of the page was sent."""


ExportRequest = Page | Records
encode = msgspec.msgpack.Encoder().encode
decode_request = msgspec.msgpack.Decoder(ExportRequest).decode
decode_answer = msgspec.msgpack.Decoder(ExportAnswer).decode


def frame(number: int, message: bytes) -> bytes:
    """A message as it is written to the socket."""
    return HEADER.pack(len(message), number) + message
