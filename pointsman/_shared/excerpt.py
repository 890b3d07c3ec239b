"""Shortens a text to what explains a failure: its beginning, its end, and the failure between them."""

import re

GAP = "\n[…]\n"
_FAILURE = re.compile(
    r"^.*(?:\b(?:errors?|fail(?:ed|ure|s)?|exception|traceback|panic(?:ked)?|fatal|assert\w*|denied|refused)\b|^E  +).*$",
    re.IGNORECASE | re.MULTILINE,
)
MAX_SEARCHED = 1_000_000


def excerpt(text: str, length: int) -> str:
    """The text in at most `length` characters; of a longer one the head, the tail, and the first failure between."""
    if len(text) <= length:
        return text
    text = text.strip()
    if length < 8 * len(GAP):
        return text[:length]
    room = length - 2 * len(GAP)
    head, tail = room // 4, room // 2
    between = text[head : len(text) - tail]
    found = _FAILURE.search(between[-MAX_SEARCHED:])
    if found is None:
        return f"{text[:head]}{GAP}{text[head + len(GAP) - length :]}"[:length]
    start = len(between) - len(between[-MAX_SEARCHED:]) + found.start()
    shown = between[start : start + room - head - tail]
    return f"{text[:head]}{GAP}{shown}{GAP}{text[-tail:]}"


def names_failure(line: str) -> bool:
    """Whether a line says that something failed."""
    return _FAILURE.search(line) is not None
