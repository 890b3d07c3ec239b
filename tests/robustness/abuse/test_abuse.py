"""A little bad input in every test run; `make abuse` sends the rest."""

from tests.robustness.abuse.__main__ import abuse


def test_bad_input_is_refused_with_documented_codes_and_changes_nothing() -> None:
    findings = abuse(400, seed=7)
    assert findings.problems == []
    assert findings.undocumented == {}
    assert findings.codes["INVALID_ARGUMENT"] > 100
    assert findings.statuses[400] > 5
