"""Where in a JSON text each value is, so that a problem is named by its line and a value replaced in place."""

import json
import re
from bisect import bisect_left

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{},:]|[^\s\[\]{},:"]++')
MAX_VALUES = 200_000
"""More than a file of tasks has; of a hostile one, the rest is named by the line of what is around it."""
Path = tuple[str | int, ...]


class JsonPlaces:
    """The values of a text that was decoded before, by the keys and indexes that lead to them."""

    def __init__(self, text: str) -> None:
        self._ends = [found.start() for found in re.finditer("\n", text)]
        self._spans: dict[Path, tuple[int, int]] = {}
        self._path: list[str | int] = []
        self._wants_key = False
        for token in TOKEN.finditer(text):
            self._read(token[0], token.span())

    def span(self, path: Path) -> tuple[int, int]:
        """Where a value begins, and where its first token ends."""
        return self._spans[path]

    def line(self, path: Path) -> int:
        """The line of a value, or of the nearest one around it that is there."""
        while path not in self._spans:
            path = path[:-1]
        return bisect_left(self._ends, self._spans[path][0]) + 1

    def _read(self, word: str, span: tuple[int, int]) -> None:
        if word in ("}", "]"):
            self._path.pop()
            self._wants_key = False
        elif word == ",":
            last = self._path[-1]
            self._wants_key = isinstance(last, str)
            self._path[-1] = last if isinstance(last, str) else last + 1
        elif word == ":":
            self._wants_key = False
        elif self._wants_key:
            self._path[-1] = json.loads(word)
        else:
            self._begin(word, span)

    def _begin(self, word: str, span: tuple[int, int]) -> None:
        if len(self._spans) < MAX_VALUES:
            self._spans[tuple(self._path)] = span
        if word in ("{", "["):
            self._path.append("" if word == "{" else 0)
            self._wants_key = word == "{"
