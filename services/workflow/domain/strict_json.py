"""JSON that cannot say two things at once: no duplicate keys, no NaN, no NUL, no lone surrogates, bounded depth and numbers."""

import json
from typing import Any

MAX_DEPTH = 32
MAX_DIGITS = 19


class JsonError(ValueError):
    """The text is not JSON that can be taken; the message says why and, if known, where."""


def load_object(text: str) -> dict[str, Any]:
    """The object that the text holds."""
    _check_depth(text)
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant, parse_int=_integer)
    except json.JSONDecodeError as error:
        raise JsonError(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    if not isinstance(value, dict):
        raise JsonError("the document must be an object")
    _check_text(value)
    return value


def _check_depth(text: str) -> None:
    """Count brackets outside of strings, before a parser recurses into them."""
    depth, quoted, escaped = 0, False, False
    for character in text:
        if quoted:
            quoted = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            quoted = True
        elif character in "{[":
            depth += 1
            if depth > MAX_DEPTH:
                raise JsonError(f"nested deeper than {MAX_DEPTH} levels")
        elif character in "}]":
            depth -= 1


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise JsonError(f"key '{twice[:100]}' stands twice in one object")
    return found


def _no_constant(name: str) -> Any:
    raise JsonError(f"{name} is not JSON")


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise JsonError(f"a number has more than {MAX_DIGITS} digits")
    return int(digits)


def _check_text(value: Any) -> None:
    if isinstance(value, str):
        if "\0" in value or not _encodable(value):
            raise JsonError("a text holds NUL or half a surrogate pair")
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_text(key)
            _check_text(item)
    elif isinstance(value, list):
        for item in value:
            _check_text(item)


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
