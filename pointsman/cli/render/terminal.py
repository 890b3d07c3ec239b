"""Keeps words of others from steering the terminal: agents write claims, file names and errors that commands print."""

import re
import sys
from typing import TextIO

_CONTROLS = re.compile("\x1b\\[[0-9;]*m|[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_CONCEAL, _RESET, _REPLACEMENT = "8", "\x1b[0m", "\ufffd"


def harmless(text: str) -> str:
    """The text without what moves the cursor, hides, reorders or talks to the terminal; colours end with it."""
    shown = _CONTROLS.sub(lambda found: found[0] if _is_colour(found[0]) else _REPLACEMENT, text)
    return f"{shown}{_RESET}" if _COLOUR.search(shown) and not shown.rstrip().endswith(_RESET) else shown


def _is_colour(found: str) -> bool:
    return bool(_COLOUR.fullmatch(found)) and _CONCEAL not in found[2:-1].split(";")


class HarmlessStream:
    """A text stream that prints harmless text; all else is as in the stream itself."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Writes a text without its controls."""
        self.stream.write(harmless(text))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        """Writes some texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> object:
        return getattr(self.stream, name)


def protect_terminal() -> None:
    """Lets everything that this process prints go through a harmless stream."""
    sys.stdout = HarmlessStream(sys.stdout)
    sys.stderr = HarmlessStream(sys.stderr)


def own_terminal() -> TextIO:
    """The stream itself, for a view that moves the cursor and makes its texts harmless before."""
    stream = sys.stdout
    return stream.stream if isinstance(stream, HarmlessStream) else stream
