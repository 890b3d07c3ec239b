"""The one reader of foreign JSON: no duplicate keys, NaN, NUL or lone surrogates; bounded depth and numbers; linear time."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, TypeAlias

MAX_DEPTH = 64
MAX_DIGITS = 19
MAX_FLOAT_CHARACTERS = 40
MAX_PATH = 256
UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_unstorable = UNSTORABLE.search

Container: TypeAlias = dict[str, Any] | list[Any]
Parent: TypeAlias = "tuple[Parent, str | int] | None"
"""The place of a value, as a chain to the root: rendered only for an error, so that long names cost nothing."""


class JsonError(ValueError):
    """The text is not acceptable: `problem` says why, `path` where, if known."""

    def __init__(self, problem: str, path: str = "") -> None:
        super().__init__(f"{path or 'the document'} {problem}")
        self.problem = problem
        self.path = path


class MalformedJson(JsonError):
    """The text is not JSON at all, or too deep or too long in its numbers to be parsed."""


def decode(text: str | bytes, max_depth: int = MAX_DEPTH) -> Any:
    """The value of the whole text."""
    try:
        value = _DECODER.decode(text.decode() if isinstance(text, bytes) else text)
    except json.JSONDecodeError as error:
        raise MalformedJson(f"is not JSON: line {error.lineno}, column {error.colno}: {error.msg}") from None
    except UnicodeDecodeError:
        raise MalformedJson("is not UTF-8") from None
    except RecursionError:
        raise MalformedJson("is nested too deeply") from None
    _check(value, max_depth)
    return value


def decode_object(text: str | bytes, max_depth: int = MAX_DEPTH) -> dict[str, Any]:
    """The object that the whole text is."""
    value = decode(text, max_depth)
    if not isinstance(value, dict):
        raise JsonError("must be an object")
    return value


def decode_prefix(text: str, start: int, max_depth: int = MAX_DEPTH) -> tuple[Any, int]:
    """The value that begins at a position, and where it ends."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        raise MalformedJson(f"is not JSON: {error.msg}") from None
    except RecursionError:
        raise MalformedJson("is nested too deeply") from None
    _check(value, max_depth)
    return value, end


def printable(text: str) -> str:
    """A text fit for an error message: shortened, and without what cannot be encoded."""
    return UNSTORABLE.sub("\ufffd", text[:MAX_PATH])


def _check(root: Any, max_depth: int) -> None:
    """Check depth and texts, level by level."""
    if isinstance(root, str) and _unstorable(root):
        raise _unstorable_at(None)
    level: list[tuple[Container, Parent]] = [(root, None)] if isinstance(root, (dict, list)) else []
    for _ in range(max_depth):
        level = [inner for value, place in level for inner in _containers(value, place)]
        if not level:
            return
    raise JsonError(f"is nested deeper than {max_depth} levels", _path(level[0][1]))


def _containers(value: Container, place: Parent) -> list[tuple[Container, Parent]]:
    """The objects and lists directly inside a value, after a check of its texts."""
    found: list[tuple[Container, Parent]] = []
    items: Iterable[tuple[str | int, Any]] = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        kind = type(item)  # the parser makes these very types; isinstance would cost a third more
        if kind is str:
            if _unstorable(item):
                raise _unstorable_at((place, key))
        elif kind is dict or kind is list:
            found.append((item, (place, key)))
    if isinstance(value, dict) and _unstorable("".join(value)):
        raise _unstorable_at((place, next(name for name in value if _unstorable(name))))
    return found


def _unstorable_at(place: Parent) -> JsonError:
    return JsonError("must not contain NUL or half of a surrogate pair", _path(place))


def _path(place: Parent) -> str:
    parts: list[str] = []
    while place is not None:
        place, key = place
        parts.append(f"[{key}]" if isinstance(key, int) else f".{key[:MAX_PATH]}")
    return printable("".join(reversed(parts)).removeprefix("."))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen = Counter(name for name, _ in pairs)
        raise JsonError("stands twice in one object", printable(seen.most_common(1)[0][0]))
    return found


def _integer(digits: str) -> int:
    if len(digits.removeprefix("-")) > MAX_DIGITS:
        raise MalformedJson(f"has a number of more than {MAX_DIGITS} digits")
    return int(digits)


def _float(text: str) -> float:
    number = float(text) if len(text) <= MAX_FLOAT_CHARACTERS else math.inf
    if math.isinf(number):
        raise MalformedJson("has a number that is too large or too long")
    return number


def _constant(name: str) -> Any:
    raise JsonError(f"has {name}, which is not a JSON number")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant)
