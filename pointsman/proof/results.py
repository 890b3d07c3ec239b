"""Results per test, as a reporter outside the tree gives them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

MESSAGE_LENGTH = 1000
COMPILATION = "compilation"
"""The id of a build that failed, and with it every test."""


class Outcome(StrEnum):
    """How one test ended."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"
    XFAILED = "xfailed"
    DESELECTED = "deselected"


RED = frozenset({Outcome.FAILED, Outcome.ERROR})
NOT_RUN = frozenset({Outcome.SKIPPED, Outcome.XFAILED, Outcome.DESELECTED})
_SEVERITY = (
    Outcome.PASSED, Outcome.DESELECTED, Outcome.SKIPPED, Outcome.XFAILED, Outcome.FAILED, Outcome.ERROR,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TestResult:
    """One test: its id in the words of its runner, how it ended, and the file it is in where the runner says so."""

    id: str
    outcome: Outcome
    message: str = ""
    seconds: float = 0.0
    file: str = ""
    in_source: bool = False
    """It stands in a source file (a doctest), which its author may change."""

    __test__ = False


@dataclass(frozen=True, slots=True)
class TestReport:
    """What one command reported: its tests, and whether the report is whole."""

    adapter: str
    tests: Mapping[str, TestResult] = field(default_factory=dict)
    complete: bool = True
    problem: str = ""
    """Why the report is not whole."""
    exit_code_only: bool = False
    """No adapter knows the runner: only its exit code counts, which is an open risk."""

    __test__ = False

    @property
    def executed(self) -> tuple[TestResult, ...]:
        """Tests that ran to an end of their own."""
        return tuple(test for test in self.tests.values() if test.outcome not in NOT_RUN)

    @property
    def red(self) -> tuple[TestResult, ...]:
        """Tests that failed or could not be run."""
        return tuple(test for test in self.tests.values() if test.outcome in RED)

    def outcome(self, test_id: str) -> Outcome | None:
        """How a test ended; None when it is not in the report."""
        found = self.tests.get(test_id)
        return found.outcome if found else None


def by_id(tests: Iterable[TestResult]) -> dict[str, TestResult]:
    """Results by id; of several with one id the worst counts, so that a later line cannot whitewash an earlier one."""
    found: dict[str, TestResult] = {}
    for test in tests:
        known = found.get(test.id)
        if known is None or _SEVERITY.index(test.outcome) > _SEVERITY.index(known.outcome):
            found[test.id] = test
    return found
