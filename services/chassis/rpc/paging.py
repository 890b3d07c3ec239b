"""Transitions, times and page tokens on the wire, the same in every context."""

import base64
import binascii
from typing import Any

import msgspec
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from pointsman.api.common.v1 import common_pb2
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.engine.journal import Transition

DEFAULT_PAGE_SIZE = 100


def timestamp(microseconds: int) -> Timestamp:
    """A stored time as a Timestamp."""
    seconds, rest = divmod(microseconds, 1_000_000)
    return Timestamp(seconds=seconds, nanos=rest * 1000)


def seconds_of(duration: Duration) -> float:
    """A Duration in seconds."""
    return float(duration.seconds) + duration.nanos / 1e9


def transition(row: Transition) -> common_pb2.Transition:
    """A journal row as a message."""
    return common_pb2.Transition(
        entity_id=row.entity_id,
        kind=row.kind,
        seq=row.seq,
        position=row.position,
        at=timestamp(row.at_us),
        event=row.event,
        from_state=row.source,
        to_state=row.target,
        payload_json=row.payload,
        actor=row.actor,
        run_id=row.run_id,
        traceparent=row.traceparent,
        digest=row.digest,
    )


def page_size(page: common_pb2.Page) -> int:
    """How many items to send."""
    return page.page_size or DEFAULT_PAGE_SIZE


def page_token(*key: str | int) -> str:
    """The sort key of a page's last item, as the token that asks for what comes after it."""
    return base64.urlsafe_b64encode(msgspec.json.encode(key)).decode()


def page_key(token: str, *shape: type[int] | type[str]) -> tuple[Any, ...] | None:
    """The sort key of a page token, with parts of these types; None for the first page."""
    if not token:
        return None
    try:
        key: tuple[str | int, ...] = msgspec.json.decode(
            base64.b64decode(token, altchars=b"-_", validate=True), type=tuple[str | int, ...]
        )
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        key = ()
    if tuple(map(type, key)) != shape:
        raise Refusal(
            Reason.INVALID_PAGE_TOKEN,
            "page_token: take it from an answer of this RPC",
            metadata={"field": "page.page_token"},
        )
    return key
