"""JSON as a careful reader takes it: no key twice, no constants, no endless numbers, no NUL, no half characters."""

import json
import re
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
    if any(_UNSTORABLE.search(text) for pair in pairs for text in pair if isinstance(text, str)):
        raise RejectedError("a text has NUL or half a character")
    return fields


def _integer(text: str) -> int:
    if len(text) > MAX_NUMBER_CHARACTERS:
        raise RejectedError("a number is too long")
    return int(text)


def _number(text: str) -> float:
    if len(text) > MAX_NUMBER_CHARACTERS:
        raise RejectedError("a number is too long")
    return float(text)


def _constant(name: str) -> NoReturn:
    raise RejectedError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_number, parse_constant=_constant
)
