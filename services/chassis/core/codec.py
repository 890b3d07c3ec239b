"""Domain values to JSON text and back, and the digest that chains a journal together."""

import hashlib
import threading
from typing import Any

import msgspec

from pointsman.services.chassis.core.errors import Reason, Refusal

_encoder = msgspec.json.Encoder()
_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}
_building = threading.Lock()


def to_json(value: Any) -> str:
    """A domain value as JSON text."""
    return _encoder.encode(value).decode()


def from_json(text: str, expected: Any) -> Any:
    """JSON text as a domain value; text of another shape is of a version that is not known here."""
    try:
        return _decoder(expected).decode(text)
    except msgspec.MsgspecError as error:
        name = getattr(expected, "__name__", str(expected))
        raise Refusal(
            Reason.UNKNOWN_VERSION,
            f"stored {name} cannot be read: {error}",
            metadata={"kind": name, "version": "unknown"},
        ) from error


DIGEST_COLUMNS = (
    "entity_id", "seq", "kind", "project", "run_id", "machine_version", "at_us", "event", "source", "target",
    "payload", "actor", "traceparent",
)  # fmt: skip
"""What a journal row's digest covers, in this order: all but its position, which only the commit gives it."""


def chained_digest(previous: str, fields: tuple[str | int, ...]) -> str:
    """The digest of a row, over the digest of the row before and the DIGEST_COLUMNS fields of this one."""
    return hashlib.sha256(_encoder.encode((previous, fields))).hexdigest()


def _decoder(expected: Any) -> msgspec.json.Decoder[Any]:
    """The decoder of a type, built by one thread at a time: a half-built one in another thread ends the process."""
    known = _decoders.get(expected)
    if known is not None:
        return known
    with _building:
        return _decoders.setdefault(expected, msgspec.json.Decoder(expected))
