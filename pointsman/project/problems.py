"""Problems of a project file, each with its place and the way out."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_HEADER = re.compile(r"^\s*\[\s*([A-Za-z0-9_.\"'-]+)\s*\]")
_KEY = re.compile(r"^\s*([A-Za-z0-9_\"'-]+)\s*[.=]")


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem: the key, its line where that can be known, and what is wrong and what to do."""

    key: str
    message: str
    line: int = 0

    def describe(self, file_name: str) -> str:
        """The problem as one line."""
        place = f"{file_name}:{self.line}" if self.line else file_name
        return f"{place}: {self.key}: {self.message}" if self.key else f"{place}: {self.message}"


class InvalidProjectFile(Exception):
    """A project file with problems; all of them, not only the first."""

    def __init__(self, file_name: str, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(problem.describe(file_name) for problem in self.problems))


class Problems:
    """Collects the problems of one text."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()
        self.found: list[Problem] = []

    def add(self, key: str, message: str, value: object = None) -> None:
        """Adds a problem of a key such as `workspace.setup`; a text value helps to find its line."""
        self.found.append(Problem(key, message, self._line_of(key, value if isinstance(value, str) else "")))

    def _line_of(self, key: str, value: str) -> int:
        """The line of a key, or of the value if it follows the key before the next section; 0 when not found."""
        section, _, name = key.partition(".")
        name = name.partition("[")[0].partition(".")[0]
        found = _find(self._lines, section, name)
        if not found or not value:
            return found
        for number in range(found, len(self._lines) + 1):
            line = self._lines[number - 1]
            if value in line:
                return number
            if number > found and _HEADER.match(line):
                break
        return found


def _find(lines: Sequence[str], section: str, name: str) -> int:
    """The line of a section's header, or of one of its keys; the header's line where the key cannot be seen."""
    current, header = "", 0
    for number, line in enumerate(lines, 1):
        if match := _HEADER.match(line):
            current = match[1].strip("\"'")
            if current == (f"{section}.{name}" if name else section):
                return number
            header = number if current == section else header
        elif (match := _KEY.match(line)) and (current, match[1].strip("\"'")) in ((section, name), ("", section)):
            return number
    return header
