"""Compares two reports of one command test by test: what broke, what was fixed, what is new, and what went away."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from pointsman.proof.results import COMPILATION, NOT_RUN, RED, Outcome, TestReport, TestResult

SEPARATORS = ": .#/>"
"""What can follow the name of a file or package in the id of a test."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The delivery's tests against the base's, by id."""

    regressions: tuple[str, ...] = ()
    """Green on the base, red now."""
    fixed: tuple[str, ...] = ()
    """Red on the base, green now."""
    still_red: tuple[str, ...] = ()
    """Red on both."""
    added: tuple[str, ...] = ()
    """Not there on the base."""
    added_red: tuple[str, ...] = ()
    """Not there on the base, and red now."""
    removed: tuple[str, ...] = ()
    """Executed on the base, not there now."""
    newly_not_run: tuple[str, ...] = ()
    """Executed on the base; skipped, expected to fail or deselected now."""
    renamed: Mapping[str, str] | None = None
    """Tests that have another id now, old to new."""


def compare_restored(base: TestReport, restored: TestReport) -> Comparison:
    """Compares where the base's tests were put back: one that comes from another file now is not the one that was there."""
    strangers = {key for key, test in base.tests.items() if _is_elsewhere(test, restored.tests.get(key))}
    own = {key: test for key, test in restored.tests.items() if key not in strangers}
    return compare(base, replace(restored, tests=own))


def _is_elsewhere(before: TestResult, now: TestResult | None) -> bool:
    return now is not None and bool(before.file and now.file) and before.file != now.file


def compare(base: TestReport, delivered: TestReport, renamed: Mapping[str, str] | None = None) -> Comparison:
    """Compares; `renamed` maps ids of the base to the ids that the same tests have now."""
    moved = {old: new for old, new in (renamed or {}).items() if old in base.tests and new in delivered.tests}
    before = _follow(base, moved)
    executed = {test.id for test in before.executed}
    green = {test_id for test_id in executed if before.outcome(test_id) is Outcome.PASSED}
    red_before = {test.id for test in before.red}
    red_now = {test.id for test in delivered.red}
    green_now = {test.id for test in delivered.executed} - red_now
    now = set(delivered.tests)
    loaded = {test_id for test_id in red_before - now if _loads(test_id, delivered)}
    return Comparison(
        regressions=_sorted(green & red_now),
        fixed=_sorted((red_before & green_now) | loaded),
        still_red=_sorted(red_before & red_now),
        added=_sorted(now - set(before.tests)),
        added_red=_sorted(red_now - set(before.tests)),
        removed=_sorted(executed - now - {test_id for test_id in red_before if _inside(test_id, delivered)}),
        newly_not_run=_sorted(test_id for test_id in executed & now if delivered.outcome(test_id) in NOT_RUN),
        renamed=moved,
    )


def excuses_exit_code(comparison: Comparison, delivered: TestReport) -> bool:
    """Whether a non-zero exit says nothing new: tests are red, and each of them was red on the base."""
    return bool(delivered.red) and not comparison.regressions and not comparison.added_red


def _inside(container: str, report: TestReport) -> list[TestResult]:
    """The tests of a file, package or build that was an error itself: when it loads again, they take its place."""
    return [
        test
        for test_id, test in report.tests.items()
        if test_id != container and (container == COMPILATION or _is_inside(test_id, container))
    ]


def _is_inside(test_id: str, container: str) -> bool:
    return test_id.startswith(container) and test_id[len(container)] in SEPARATORS


def _loads(container: str, report: TestReport) -> bool:
    inside = _inside(container, report)
    return any(test.outcome is Outcome.PASSED for test in inside) and not any(test.outcome in RED for test in inside)


def _follow(report: TestReport, moved: Mapping[str, str]) -> TestReport:
    tests = {moved.get(key, key): replace(test, id=moved.get(key, key)) for key, test in report.tests.items()}
    return replace(report, tests=tests)


def _sorted(ids: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(ids))
