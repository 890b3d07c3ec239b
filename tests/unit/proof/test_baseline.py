"""The baseline: BROKEN, RED or GREEN, by what commands did on the base."""

import hashlib

import pytest

from pointsman.proof.baseline import Baseline, State, from_json, judge, to_json
from pointsman.proof.results import Outcome, TestReport, TestResult, by_id
from pointsman.sandbox import CommandResult, EndedBy

PYTEST = ("python", "-m", "pytest")


def ended(output: str, exit_code: int = 0, by: EndedBy = EndedBy.ITSELF) -> CommandResult:
    data = output.encode()
    return CommandResult(exit_code, by, data, hashlib.sha256(data).hexdigest())


def report(**outcomes: Outcome) -> TestReport:
    return TestReport("pytest", by_id(TestResult(name, outcome) for name, outcome in outcomes.items()))


BY_EXIT_CODE = TestReport("exit code", {"x": TestResult("x", Outcome.FAILED)}, exit_code_only=True)
NO_REPORT = TestReport("pytest", complete=False, problem="the test process ended without a report")


def test_every_test_green_is_green() -> None:
    found = judge(PYTEST, ended("2 passed"), report(a=Outcome.PASSED, b=Outcome.PASSED), ())
    assert (found.state, found.describe()) == (State.GREEN, "`python -m pytest`: 2 tests: 2 green, 0 red")


def test_a_failing_test_is_red_and_named() -> None:
    found = judge(PYTEST, ended("1 failed", 1), report(a=Outcome.PASSED, b=Outcome.FAILED, c=Outcome.SKIPPED), ())
    assert (found.state, found.describe()) == (State.RED, "`python -m pytest`: 2 tests: 1 green, 1 red: b")


def test_a_command_that_ends_with_an_error_beside_green_tests_is_red() -> None:
    assert judge(PYTEST, ended("coverage too low", 1), report(a=Outcome.PASSED), ()).state is State.RED


def test_a_test_that_cannot_be_imported_for_want_of_the_projects_own_code_is_red() -> None:
    missing = "ModuleNotFoundError: No module named 'calc.fast'"
    names = ("calc/__init__.py", "tests/test_fast.py")
    assert judge(PYTEST, ended(missing, 2), report(a=Outcome.ERROR), names).state is State.RED


@pytest.mark.parametrize(
    ("result", "found", "words"),
    [
        (ended("cannot start 'pytest': No such file or directory", 127), NO_REPORT, "`python` cannot be started"),
        (ended("/usr/bin/python3: No module named pytest", 1), NO_REPORT, "`pytest` is not installed; install what"),
        (ended("E   ModuleNotFoundError: No module named 'requests'", 2), report(a=Outcome.ERROR), "`requests` is not"),
        (ended("Error: Cannot find module 'chai'", 1), BY_EXIT_CODE, "`chai` is not installed"),
        (ended("no tests ran", 5), report(), "no test ran"),
        (ended("all skipped", 0), report(a=Outcome.SKIPPED), "no test ran"),
        (ended("", 0), NO_REPORT, "ended without a report"),
        (ended("make: *** No rule to make target 'tst'.", 2), BY_EXIT_CODE, "make has no such target"),
        (ended('npm error Missing script: "test"', 1), BY_EXIT_CODE, "package.json has no such script"),
        (ended("sh: 1: mocha: not found\n", 127), BY_EXIT_CODE, "cannot be started"),
        (ended("…", -9, EndedBy.TIME_LIMIT), NO_REPORT, "ran past its time limit and was killed; [proof] timeout"),
    ],
)
def test_what_can_judge_nothing_is_broken_and_says_what_to_do(
    result: CommandResult, found: TestReport, words: str
) -> None:
    judged = judge(PYTEST, result, found, ("src/app.py",))
    assert judged.state is State.BROKEN
    assert words in judged.reason


def test_a_runner_that_nobody_knows_counts_by_its_exit_code_and_says_so() -> None:
    passed = TestReport("exit code", {"x": TestResult("x", Outcome.PASSED)}, exit_code_only=True)
    assert judge(("make", "check"), ended("ok"), passed, ()).state is State.GREEN
    failed = judge(("make", "check"), ended("wrong", 1), BY_EXIT_CODE, ())
    assert failed.describe() == "`make check`: RED by its exit code alone; no test of its own is known"


def test_the_worst_command_decides_and_a_kept_baseline_is_the_same() -> None:
    green = judge(PYTEST, ended(""), report(a=Outcome.PASSED), ())
    red = judge(PYTEST, ended("", 1), report(a=Outcome.FAILED), ())
    broken = judge(PYTEST, ended("", 5), report(), ())
    assert [Baseline(parts).state for parts in ((green,), (green, red), (red, broken))] == list(State)
    assert from_json(to_json(Baseline((green, red)))) == Baseline((green, red))
