"""When two failures count as the same: the tests that failed, else the words without paths and numbers."""

import pytest

from pointsman.services.orchestrator.domain.failures import is_same_failure
from pointsman.services.orchestrator.domain.model import Failure

PYTEST = "V1: `pytest`: it ended with exit code 1\nFAILED tests/a.py::test_{} - assert {}\n1 failed in 0.{}s"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (PYTEST.format("mean", 1, 12), PYTEST.format("mean", 2, 97), True),
        (PYTEST.format("mean", 1, 12), PYTEST.format("median", 1, 12), False),
        ("--- FAIL: TestMean (0.00s)", "x\n--- FAIL: TestMean (0.31s)\ny", True),
        ("test stats::mean ... FAILED", "test stats::median ... FAILED", False),
        ("FAIL: test_mean (tests.Stats)", "FAIL: test_mean (tests.Stats)\nmore", True),
        ("not ok 1 - mean", "not ok 2 - mean", True),
        ("no claim speaks to: K1", "no claim speaks to: K2", True),
        ("the disk is full", "the disk is slow", False),
        ("error in /tmp/a1/x.py line 3", "error in /tmp/b7/x.py line 9", True),
        ("conflict in log", "conflict in log", False),
        ("", "", False),
    ],
)
def test_failures_are_compared_by_what_failed(one: str, other: str, same: bool) -> None:
    assert is_same_failure(Failure(one), Failure(other)) is same


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [(("a", "b"), ("b", "a"), True), (("a",), ("a", "b"), False), (("a",), (), False), ((), (), False)],
)
def test_tests_that_the_verifier_names_decide_whatever_the_words_are(
    one: tuple[str, ...], other: tuple[str, ...], same: bool
) -> None:
    assert is_same_failure(Failure("FAILED x.py::a", one), Failure("another text", other)) is same
