"""JSON as a careful reader takes it: no key twice, no constants, no endless numbers, no NUL, no half characters."""

import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

MAX_NUMBER_CHARACTERS = 32
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class RejectedError(ValueError):
    """The JSON is well-formed, but not what a careful reader takes."""


def raw_decode(text: str, start: int) -> tuple[Any, int] | None:
    """The value that begins at a position and where it ends; None for anything doubtful."""
    try:
        return _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None


def decode(text: str) -> Any:
    """The value that the whole text is; anything doubtful raises RejectedError with the reason."""
    try:
        return _DECODER.decode(text)
    except RejectedError:
        raise
    except (ValueError, RecursionError) as error:
        raise RejectedError("it is not JSON, or nested too deeply") from error


def depth(value: Any) -> int:
    """How deeply a value is nested."""
    if not isinstance(value, dict | list):
        return 0
    inner = value.values() if isinstance(value, dict) else value
    return 1 + max((depth(item) for item in inner), default=0)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise RejectedError("a key stands twice")
    if any(_UNSTORABLE.search(text) for pair in pairs for text in _texts(pair)):
        raise RejectedError("a text has NUL or half a character")
    return fields


def _texts(values: Iterable[Any]) -> Iterator[str]:
    """The texts among values, also those in lists; objects have looked at theirs already."""
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield from _texts(value)


def _integer(text: str) -> int:
    if len(text) > MAX_NUMBER_CHARACTERS:
        raise RejectedError("a number is too long")
    return int(text)


def _number(text: str) -> float:
    if len(text) > MAX_NUMBER_CHARACTERS:
        raise RejectedError("a number is too long")
    number = float(text)
    if math.isinf(number):
        raise RejectedError("a number is too large")
    return number


def _constant(name: str) -> NoReturn:
    raise RejectedError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_number, parse_constant=_constant
)
