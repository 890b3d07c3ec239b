"""Protobuf's wire format, for messages that are assembled from encoded parts: message objects would encode them twice."""

from functools import lru_cache

LENGTH_DELIMITED = 2
_64_BITS = 2**64 - 1


def tag(number: int) -> bytes:
    """The tag of a field that holds a message, text or bytes."""
    return varint(number << 3 | LENGTH_DELIMITED)


def length_delimited(field_tag: bytes, content: bytes) -> bytes:
    """A length-delimited field: its tag, the length of its content, the content."""
    return field_tag + varint(len(content)) + content


@lru_cache(maxsize=4096)
def varint(number: int) -> bytes:
    """An integer as a varint; a negative one as its two's complement of 64 bits."""
    number &= _64_BITS
    low = bytes([number & 0x7F | (0x80 if number > 0x7F else 0)])
    return low + varint(number >> 7) if number > 0x7F else low
