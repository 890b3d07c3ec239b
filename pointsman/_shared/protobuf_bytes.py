"""Protobuf's own bytes, for messages that are put together from what is written already: its objects would write it twice."""

from functools import lru_cache

LENGTH_DELIMITED = 2
_64_BITS = 2**64 - 1


def tag(number: int) -> bytes:
    """The tag of a field that holds a message, text or bytes."""
    return varint(number << 3 | LENGTH_DELIMITED)


def held(before: bytes, content: bytes) -> bytes:
    """A message, text or bytes in another message, behind its tag."""
    return before + varint(len(content)) + content


@lru_cache(maxsize=4096)
def varint(number: int) -> bytes:
    """A whole number; one below zero as its complement of 64 bits."""
    number &= _64_BITS
    low = bytes([number & 0x7F | (0x80 if number > 0x7F else 0)])
    return low + varint(number >> 7) if number > 0x7F else low
