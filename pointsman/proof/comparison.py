"""Compares two reports of one command test by test: what broke, what was fixed, what is new, and what went away."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from pointsman.proof.results import NOT_RUN, RED, Outcome, TestReport


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
    return Comparison(
        regressions=_sorted(green & red_now),
        fixed=_sorted(red_before & green_now),
        still_red=_sorted(red_before & red_now),
        added=_sorted(now - set(before.tests)),
        added_red=_sorted(red_now - set(before.tests)),
        removed=_sorted(_without_containers(executed - now, before, delivered)),
        newly_not_run=_sorted(test_id for test_id in executed & now if delivered.outcome(test_id) in NOT_RUN),
        renamed=moved,
    )


def excuses_exit_code(comparison: Comparison, delivered: TestReport) -> bool:
    """Whether a non-zero exit says nothing new: tests are red, and each of them was red on the base."""
    return bool(delivered.red) and not comparison.regressions and not comparison.added_red


def _without_containers(removed: Collection[str], before: TestReport, delivered: TestReport) -> list[str]:
    """Leaves out errors of whole files or packages: when those load again, their tests take their place."""
    return [test_id for test_id in removed if not (before.outcome(test_id) in RED and _holds(test_id, delivered))]


def _holds(container: str, report: TestReport) -> bool:
    return any(test_id != container and test_id.startswith(container) for test_id in report.tests)


def _follow(report: TestReport, moved: Mapping[str, str]) -> TestReport:
    tests = {moved.get(key, key): replace(test, id=moved.get(key, key)) for key, test in report.tests.items()}
    return replace(report, tests=tests)


def _sorted(ids: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(ids))
