"""Quotes what others wrote, so that it cannot be taken for Pointsman's own words."""

import re
import unicodedata

MIN_FENCE = 4
MAX_INLINE = 200
_BACKTICKS = re.compile("`+")
_DIRECTION_CONTROLS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_REPLACEMENT = "\ufffd"


def quote(text: str, author: str) -> str:
    """A fenced block whose every line begins with `> `; the fence names the author."""
    lines = printable(text).splitlines() or [""]
    return _fenced([f"> {line}".rstrip() for line in lines], f"quoted from {author}")


def quote_document(text: str, author: str) -> str:
    """A whole file that somebody else wrote, fenced but otherwise as it is."""
    return _fenced(printable(text).splitlines(), f"quoted from {author}")


def code_block(text: str, info: str) -> str:
    """A text of our own that is to be read as it stands."""
    return _fenced(text.splitlines(), info)


def inline(text: str) -> str:
    """A short text as a code span on one line."""
    shown = " ".join(printable(text).replace("`", "'").split())
    return f"`{shown[:MAX_INLINE] or '-'}`"


def printable(text: str) -> str:
    """The text without characters that hide, overwrite or reorder what a reader sees."""
    return "".join(_visible(letter) for letter in text.replace("\r\n", "\n"))


def _visible(letter: str) -> str:
    if letter in "\n\t":
        return letter
    if letter in "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029":
        return "\n"
    hides = unicodedata.category(letter) in ("Cc", "Cs") or letter in _DIRECTION_CONTROLS
    return _REPLACEMENT if hides else letter


def _fenced(lines: list[str], info: str) -> str:
    longest = max((len(run) for line in lines for run in _BACKTICKS.findall(line)), default=0)
    fence = "`" * max(MIN_FENCE, longest + 1)
    return "\n".join((f"{fence}{info}", *lines, fence)) + "\n"
