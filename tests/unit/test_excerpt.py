"""Shortened texts keep what explains a failure, wherever in the text it stands."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointsman._shared.excerpt import GAP, excerpt

NOISE = "".join(f"collected item {number}\n" for number in range(2000))


@pytest.mark.parametrize(
    "cause",
    [
        "E   assert 3 == 4",
        "panic: runtime error: index out of range",
        "error[E0308]: mismatched types",
        "tests/test_a.py::test_mean FAILED",
        "PermissionError: permission denied",
    ],
)
@pytest.mark.parametrize("place", ["first", "between", "last"])
def test_the_failure_is_in_it(cause: str, place: str) -> None:
    begin, end = {"first": ("", NOISE), "between": (NOISE, NOISE), "last": (NOISE, "")}[place]
    shown = excerpt(f"$ make test\n{begin}{cause}\n{end}exit 1\n", 600)
    assert shown.startswith("$ make test\n")
    assert cause in shown
    assert shown.endswith("exit 1")
    assert len(shown) <= 600


def test_a_short_text_stays_as_it_is() -> None:
    assert excerpt(" all of it\n", 100) == " all of it\n"


def test_without_a_failure_beginning_and_end_are_kept() -> None:
    shown = excerpt(NOISE, 500)
    assert shown.startswith("collected item 0\n")
    assert shown.endswith("item 1999")
    assert GAP in shown


@settings(deadline=None)
@given(st.text(alphabet=st.sampled_from("ab \nE error fail"), max_size=500), st.integers(0, 400))
def test_no_text_becomes_longer_than_it_may(text: str, length: int) -> None:
    assert len(excerpt(text, length)) <= length
