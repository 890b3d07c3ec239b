"""Static signals: lines that true fixes seldom add; they inform, and some ask a person, but none decides."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

LINE_LENGTH = 200
SOURCES = (
    ".py", ".js", ".mjs", ".cjs", ".ts", ".tsx", ".jsx", ".go", ".rs", ".java", ".kt", ".rb", ".php", ".c", ".cc", ".cpp",
    ".h", ".cs", ".sh", ".swift", ".scala",
)  # fmt: skip
MANY_LITERALS = 2
_LITERAL = re.compile(r"""(?<![\w.])(-?\d{2,}(?:\.\d+)?|\d+\.\d+)(?![\w.])|["']([^"'\\]{3,60})["']""")
_SPECIAL_CASE = re.compile(r"""\bif\b|==|\bcase\b|\bmatch\b|=>|["'\d)]\s*:\s|\breturn\b""")
_EQUAL_TO_ALL = re.compile(r"def __eq__\([^)]*\)[^:]*:\s*return True\b")


@dataclass(frozen=True, slots=True)
class SignalRule:
    """One row of `signals.toml`."""

    name: str
    pattern: re.Pattern[str]
    asks: bool
    why: str


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
        SignalRule(row["name"], re.compile(row["pattern"]), bool(row["asks"]), row["why"])
        for row in tomllib.loads(text)["signal"]
    )


def scan(added: Mapping[str, Sequence[str]], tests: str = "") -> tuple[Signal, ...]:
    """Signals in the lines that a delivery adds to its sources; `tests` is the text of tests that were red."""
    found: dict[tuple[str, str], Signal] = {}
    for path, lines in added.items():
        if not path.endswith(SOURCES):
            continue
        for line in lines:
            for rule in rules():
                if rule.pattern.search(line) and (rule.name, path) not in found:
                    shown = line.strip()[:LINE_LENGTH]
                    found[rule.name, path] = Signal(rule.name, path, shown, rule.why, rule.asks)
        for signal in (_equal_to_all(path, lines), _literals_of_tests(path, lines, tests)):
            if signal is not None:
                found.setdefault((signal.name, path), signal)
    return tuple(found.values())


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
