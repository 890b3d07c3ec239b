"""Texts in fewer bytes: the types of columns that SQLite stores as bytes, where that is shorter, and reads as text.

SQLite keeps a type with every value, so a column may hold both: a text is as it was written, bytes are packed. Stores
of earlier versions are read as they are. PostgreSQL packs large values itself, and replicas of two versions share its
rows: there the types are plain text. Columns with these types are not compared in statements.
"""

import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import Dialect, String, Text, TypeDecorator
from sqlalchemy.types import TypeEngine

from pointsman.services.chassis.core.errors import Reason, Refusal

DICTIONARY = 1
"""The first byte of what is packed with it: a dictionary never changes, another one gets the next number."""
SHORTEST = 64
"""Shorter texts stay: they are many, and packing them saves little."""
_WINDOW_BITS = -15
"""As far back as a reader looks."""
_LEVEL, _WRITER_WINDOW_BITS, _MEMORY_LEVEL = 6, -14, 5
"""A larger window would be copied by system calls for every text: four times the time, for 2 % of the bytes."""


def pack(text: str) -> str | bytes:
    """The text as bytes, if that is shorter."""
    if len(text) < SHORTEST:
        return text
    plain, stream = text.encode(), _stream().copy()
    packed = bytes((DICTIONARY,)) + stream.compress(plain) + stream.flush()
    return packed if len(packed) < len(plain) else text


def unpack(value: str | bytes) -> str:
    """The text of what was packed, or of a text; damaged bytes as digits, which no digest fits and no JSON is."""
    if isinstance(value, str):
        return value
    if value[0] != DICTIONARY:
        raise Refusal(
            Reason.UNKNOWN_VERSION,
            "a stored text was packed by a newer version; upgrade this server",
            metadata={"kind": "text", "version": str(value[0])},
        )
    stream = zlib.decompressobj(_WINDOW_BITS, zdict=_dictionary())
    try:
        return (stream.decompress(value[1:]) + stream.flush()).decode()
    except (zlib.error, UnicodeDecodeError):
        return value.hex()


def pack_digest(text: str) -> str | bytes:
    """Hexadecimal digits as the bytes that they stand for; any other text as it is."""
    try:
        packed = bytes.fromhex(text)
    except ValueError:
        return text
    return packed if packed and packed.hex() == text else text


def unpack_digest(value: str | bytes) -> str:
    """The digits of a digest."""
    return value if isinstance(value, str) else value.hex()


def pack_traceparent(text: str) -> str | bytes:
    """The bytes of a trace context; any other text as it is."""
    packed = pack_digest(text.replace("-", ""))
    return packed if isinstance(packed, bytes) and unpack_traceparent(packed) == text else text


def unpack_traceparent(value: str | bytes) -> str:
    """The text of a trace context."""
    if isinstance(value, str):
        return value
    digits = value.hex()
    return f"{digits[:2]}-{digits[2:34]}-{digits[34:50]}-{digits[50:]}"


class _Compact(TypeDecorator[str]):
    """Text that is stored in fewer bytes."""

    impl = Text
    cache_ok = True

    def __init__(self, packing: Callable[[str], str | bytes], unpacking: Callable[[str | bytes], str]) -> None:
        super().__init__()
        self.packing = packing
        self.unpacking = unpacking

    def process_bind_param(self, value: str | None, dialect: Dialect) -> Any:  # noqa: ARG002 - SQLite's only
        """What is stored."""
        return None if value is None else self.packing(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> str | None:  # noqa: ARG002 - SQLite's only
        """What was written."""
        return None if value is None else self.unpacking(value)


PACKED: TypeEngine[str] = Text().with_variant(_Compact(pack, unpack), "sqlite")
"""JSON and other long texts."""
DIGEST: TypeEngine[str] = String(512).with_variant(_Compact(pack_digest, unpack_digest), "sqlite")
TRACEPARENT: TypeEngine[str] = String(64).with_variant(_Compact(pack_traceparent, unpack_traceparent), "sqlite")


@cache
def _dictionary() -> bytes:
    return (Path(__file__).parent / "dictionaries" / f"{DICTIONARY}.txt").read_bytes()


@cache
def _stream() -> Any:
    """A compressor that has read the dictionary; each text is written by a copy."""
    return zlib.compressobj(
        _LEVEL, zlib.DEFLATED, _WRITER_WINDOW_BITS, _MEMORY_LEVEL, zlib.Z_DEFAULT_STRATEGY, _dictionary()
    )
