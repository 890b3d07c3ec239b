"""Static signals: lines that true fixes seldom add; they inform, and some ask a person, but none decides."""

import posixpath
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources

from pointsman.proof.dependency_signals import is_looked_at, new_host, new_plugin
from pointsman.proof.protection.globs import first_match

LINE_LENGTH = 200
SOURCES = (
    ".py", ".js", ".mjs", ".cjs", ".ts", ".tsx", ".jsx", ".go", ".rs", ".java", ".kt", ".rb", ".php", ".c", ".cc", ".cpp",
    ".h", ".cs", ".sh", ".swift", ".scala",
)  # fmt: skip
DATA = (
    ".json", ".jsonl", ".yaml", ".yml", ".toml", ".csv", ".tsv", ".txt", ".xml", ".html", ".svg", ".sql", ".bin", ".dat", ".out",
    ".expected", ".want", ".ref", ".md",
)  # fmt: skip
READ_BY_TESTS = "changes what a test reads"
MANY_LITERALS = 2
_LITERAL = re.compile(r"""(?<![\w.])(-?\d{2,}(?:\.\d+)?|\d+\.\d+)(?![\w.])|["']([^"'\\]{3,60})["']""")
_SPECIAL_CASE = re.compile(r"""\bif\b|==|\bcase\b|\bmatch\b|=>|["'\d)]\s*:\s|\breturn\b""")
_EQUAL_TO_ALL = re.compile(
    r"def __eq__\([^)]*\)[^:]*:\s*return (?:True|1|not False|bool\(1\))(?!\w)"
    r"|class \w+\([^)]*\b(?:int|float|complex|str|bytes|tuple|list|dict|set|frozenset|Decimal|Fraction)\b[^)]*\):(?:(?!\bclass ).)*\b__(?:eq|ne)__\b"
    r"|def __eq__\(\s*self\b[^)]*\)[^:]*:(?:(?!\bself\b|\bsuper\b|\bdef |\bclass |\bNotImplemented\b).)*(?:$|\bdef |\bclass |\b__hash__)"
)
"""Says yes at once, is a number or text with an equality of its own, or never looks at itself."""


class Side(StrEnum):
    """Which lines a rule looks at."""

    ADDED = "added"
    REMOVED = "removed"
    """Removed lines, where more of them went than came."""
    BEFORE = "before"
    """The file as the base has it."""
    NEW = "new"
    """Added lines of a file that the base does not have."""


@dataclass(frozen=True, slots=True)
class SignalRule:
    """One row of `signals.toml`."""

    name: str
    pattern: re.Pattern[str]
    asks: bool
    why: str
    files: tuple[str, ...] = ()
    side: Side = Side.ADDED

    def line(self, path: str, edit: "Edit") -> str:
        """The first line that it fires on; empty when it does not."""
        matched = bool(first_match(path, self.files)) if self.files else path.endswith(SOURCES)
        if not matched:
            return ""
        if not self.pattern.pattern:
            return path
        hits = [line for line in edit.lines(self.side) if self.pattern.search(line)]
        if self.side is Side.REMOVED and len(hits) <= sum(bool(self.pattern.search(line)) for line in edit.added):
            return ""
        return hits[0].strip()[:LINE_LENGTH] or path if hits else ""


@dataclass(frozen=True, slots=True)
class Edit:
    """What was done to one file."""

    added: Sequence[str]
    removed: Sequence[str] = ()
    before: str = ""

    def lines(self, side: Side) -> Sequence[str]:
        """The lines of a side."""
        if side is Side.BEFORE:
            return self.before.splitlines() if self.removed else ()
        if side is Side.NEW:
            return () if self.before else self.added
        return self.added if side is Side.ADDED else self.removed


@dataclass(frozen=True, slots=True)
class Signal:
    """A line that a signal fired on."""

    name: str
    path: str
    line: str
    why: str
    asks: bool

    def __str__(self) -> str:
        return f"{self.path} {self.name}: {self.why} (`{self.line}`)"


@cache
def rules() -> tuple[SignalRule, ...]:
    """The rows of the table."""
    text = resources.files("pointsman.proof").joinpath("signals.toml").read_text(encoding="utf-8")
    return tuple(
        SignalRule(
            row["name"],
            re.compile(row["pattern"]),
            bool(row["asks"]),
            row["why"],
            tuple(row.get("files", ())),
            Side(row.get("side", "added")),
        )
        for row in tomllib.loads(text)["signal"]
    )


def scan(edits: Mapping[str, Edit], tests: str = "") -> tuple[Signal, ...]:
    """Signals in what a delivery did to its sources; `tests` is the text of tests that were red."""
    found: dict[tuple[str, str], Signal] = {}
    for path, edit in edits.items():
        for rule in rules():
            if line := rule.line(path, edit):
                place = path if not rule.files else rule.name
                found.setdefault((rule.name, place), Signal(rule.name, path, line, rule.why, rule.asks))
        if (name := posixpath.basename(path)) in tests and path.endswith(DATA):
            why = "a test that failed names this file, so what it expects could have been changed"
            found.setdefault((READ_BY_TESTS, path), Signal(READ_BY_TESTS, path, name, why, asks=True))
        for signal in (*_of_dependencies(path, edit), *_of_source(path, edit, tests)):
            found.setdefault((signal.name, path), signal)
    return tuple(found.values())


def _of_dependencies(path: str, edit: Edit) -> Iterator[Signal]:
    """Where a manifest or lock file takes packages from, and which of them reach into the runner."""
    if not is_looked_at(path):
        return
    added = "\n".join(edit.added)
    if host := new_host(added, edit.before):
        why = "a package comes from a place that was not named before"
        yield Signal("takes a dependency from another host", path, host, why, asks=True)
    if plugin := new_plugin(added, edit.before):
        why = "a plugin of the test runner can change how tests are judged"
        yield Signal("adds a plugin of the runner", path, plugin, why, asks=True)


def _of_source(path: str, edit: Edit, tests: str) -> Iterator[Signal]:
    """What a rule over single lines does not see."""
    if path.endswith(SOURCES):
        yield from filter(None, (_equal_to_all(path, edit.added), _literals_of_tests(path, edit.added, tests)))


def _equal_to_all(path: str, lines: Sequence[str]) -> Signal | None:
    if _EQUAL_TO_ALL.search(" ".join(line.strip() for line in lines)):
        why = "a value that is equal to whatever a test expects"
        return Signal("is equal to everything", path, "def __eq__", why, asks=True)
    return None


def _literals_of_tests(path: str, lines: Sequence[str], tests: str) -> Signal | None:
    """Values of tests that stand in sources as special cases; several of them ask a person."""
    wanted = _literals(tests)
    if not wanted:
        return None
    hits = [line for line in lines if _SPECIAL_CASE.search(line) and _literals(line) & wanted]
    values = {value for line in hits for value in _literals(line) & wanted}
    if not hits:
        return None
    why = f"{len(values)} value(s) of the tests stand in the code as special cases"
    return Signal(
        "repeats values of the tests", path, hits[0].strip()[:LINE_LENGTH], why, asks=len(values) > MANY_LITERALS
    )


def _literals(text: str) -> set[str]:
    return {number or quoted for number, quoted in _LITERAL.findall(text)}
