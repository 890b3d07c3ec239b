"""What changed between the base and the delivery, test by test."""

from pointsman.proof.comparison import compare, excuses_exit_code
from pointsman.proof.renames import TestSources, find_renames
from pointsman.proof.results import Outcome, TestReport, TestResult

WORDS = {"+": Outcome.PASSED, "-": Outcome.FAILED, "!": Outcome.ERROR, "s": Outcome.SKIPPED, "x": Outcome.XFAILED}


def report(**tests: str) -> TestReport:
    return TestReport("pytest", {name: TestResult(name, WORDS[sign], file="t.py") for name, sign in tests.items()})


def test_every_way_a_test_can_change_is_named() -> None:
    base = report(kept="+", broke="+", fixed="-", red="-", gone="+", skipped="+", hidden="-", was_skipped="s")
    found = compare(
        base,
        report(kept="+", broke="-", fixed="+", red="!", skipped="s", hidden="x", new="+", new_red="-", was_skipped="+"),
    )
    assert found.regressions == ("broke",)
    assert found.fixed == ("fixed",)
    assert found.still_red == ("red",)
    assert found.added == ("new", "new_red")
    assert found.added_red == ("new_red",)
    assert found.removed == ("gone",)
    assert found.newly_not_run == ("hidden", "skipped")


def test_a_failing_exit_is_excused_only_by_tests_that_failed_before() -> None:
    base, same = report(a="+", b="-"), report(a="+", b="-")
    assert excuses_exit_code(compare(base, same), same)
    for worse in (report(a="-", b="-"), report(a="+", b="-", c="-"), report(a="+", b="+")):
        assert not excuses_exit_code(compare(base, worse), worse)


def test_a_file_that_loads_again_is_no_removed_test() -> None:
    base = TestReport("pytest", {"t.py": TestResult("t.py", Outcome.ERROR)})
    now = TestReport("pytest", {"t.py::a": TestResult("t.py::a", Outcome.PASSED)})
    assert compare(base, now).removed == ()


def test_a_moved_file_keeps_its_tests() -> None:
    base = TestReport("pytest", {"t.py::a": TestResult("t.py::a", Outcome.PASSED, file="t.py")})
    now = TestReport("pytest", {"u/t.py::a": TestResult("u/t.py::a", Outcome.FAILED, file="u/t.py")})
    renames = find_renames(base, now, TestSources({}, {}, {"t.py": "u/t.py"}))
    found = compare(base, now, renames)
    assert (found.regressions, found.removed, found.added) == (("u/t.py::a",), (), ())


def renamed(before: str, after: str) -> dict[str, str]:
    base = TestReport("pytest", {"t.py::test_a": TestResult("t.py::test_a", Outcome.PASSED, file="t.py")})
    now = TestReport("pytest", {"t.py::test_b": TestResult("t.py::test_b", Outcome.PASSED, file="t.py")})
    return find_renames(base, now, TestSources({"t.py": before}, {"t.py": after}, {}))


def test_a_renamed_test_is_followed_only_with_the_same_body() -> None:
    before = "def test_a():\n    assert f() == 2\n\nX = 1\n"
    assert renamed(before, "def test_b():\n    assert f() == 2\n") == {"t.py::test_a": "t.py::test_b"}
    assert renamed(before, "def test_b():\n    assert True\n") == {}
