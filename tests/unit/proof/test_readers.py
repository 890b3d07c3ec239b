"""Readers of reports whose runners are not on every machine, and reports that are not whole."""

import json

import pytest

from pointsman.proof.adapters.readers import jest, junit, lines, mocha, nextest, tap
from pointsman.proof.results import Outcome, TestResult, by_id

JEST = {
    "wasInterrupted": False,
    "testResults": [
        {
            "name": "/tree/a.test.js",
            "status": "failed",
            "assertionResults": [
                {"ancestorTitles": ["g"], "title": "good", "status": "passed", "failureMessages": []},
                {"ancestorTitles": ["g"], "title": "bad", "status": "failed", "failureMessages": ["1 is not 2"]},
                {"ancestorTitles": [], "title": "later", "status": "pending", "failureMessages": []},
            ],
        },
        {"name": "/tree/b.test.js", "status": "failed", "message": "cannot load", "assertionResults": []},
    ],
}


def outcomes(tests: list[TestResult]) -> dict[str, str]:
    return {test.id: str(test.outcome) for test in tests}


def test_jest_files_that_do_not_load_are_errors() -> None:
    assert outcomes(jest.read(json.dumps(JEST)).tests) == {
        "/tree/a.test.js > g > good": "passed",
        "/tree/a.test.js > g > bad": "failed",
        "/tree/a.test.js > later": "skipped",
        "/tree/b.test.js": "error",
    }


def test_an_interrupted_jest_has_no_whole_report() -> None:
    assert jest.read(json.dumps({**JEST, "wasInterrupted": True})).problem


def test_mocha_reports_passes_failures_and_pending() -> None:
    text = {
        "passes": [{"fullTitle": "g good"}],
        "failures": [{"fullTitle": "g bad", "err": {"message": "x"}}],
        "pending": [],
    }
    assert outcomes(mocha.read(json.dumps(text)).tests) == {"g good": "passed", "g bad": "failed"}


SUREFIRE = """<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="com.example.CalcTest" tests="3" failures="1" errors="0" skipped="1">
  <testcase name="adds" classname="com.example.CalcTest" time="0.012"/>
  <testcase name="divides" classname="com.example.CalcTest"><failure message="expected 2">at …</failure></testcase>
  <testcase name="later" classname="com.example.CalcTest"><skipped/></testcase>
</testsuite>
"""


def test_surefire_reports_are_read_one_after_the_other() -> None:
    other = '<?xml version="1.0"?>\n<testsuite><testcase name="x" classname="B"><error/></testcase></testsuite>'
    assert outcomes(junit.read(SUREFIRE + other).tests) == {
        "com.example.CalcTest#adds": "passed",
        "com.example.CalcTest#divides": "failed",
        "com.example.CalcTest#later": "skipped",
        "B#x": "error",
    }


@pytest.mark.parametrize("text", ["<testsuite>", '<!DOCTYPE x [<!ENTITY a "b">]><testsuite/>'])
def test_junit_that_is_no_plain_xml_is_not_whole(text: str) -> None:
    assert junit.read(text).problem


def test_tap_needs_its_plan() -> None:
    text = "TAP version 13\nok 1 - adds\nnot ok 2 - divides\nok 3 - later # SKIP no network\n"
    assert outcomes(tap.read(text + "1..3\n").tests) == {"adds": "passed", "divides": "failed", "later": "skipped"}
    assert not tap.read(text + "1..3\n").problem
    assert tap.read(text).problem
    assert tap.read(text + "1..4\n").problem


def test_the_assertions_of_tape_are_named_by_their_test() -> None:
    text = "TAP version 13\n# adds\nok 1 should be equal\n# divides\nnot ok 2 should be equal\n\n1..2\n# tests 2\n# fail 1\n"
    assert outcomes(tap.read(text).tests) == {"adds: should be equal": "passed", "divides: should be equal": "failed"}


def test_nextest_needs_its_summary() -> None:
    text = "        PASS [   0.005s] calc tests::adds\n        FAIL [   0.004s] calc tests::divides\n"
    summary = "     Summary [   0.01s] 2 tests run: 1 passed, 1 failed, 0 skipped\n        FAIL [   0.004s] calc tests::divides\n"
    assert outcomes(nextest.read(text + summary).tests) == {
        "calc::tests::adds": "passed",
        "calc::tests::divides": "failed",
    }
    assert not nextest.read(text + summary).problem
    assert nextest.read(text).problem


@pytest.mark.parametrize(
    "text",
    [
        '{"id": "a", "outcome": "passed"}\n',
        '{"id": "a", "outcome": "passed"}\n{"finished": 2}\n',
        '{"id": "a", "outcome": "passed"}\n{"finished": 1}\n{"id": "b", "outcome": "passed"}\n',
        "nonsense\n",
        "[]\n",
        "",
    ],
)
def test_lines_without_their_own_end_are_not_whole(text: str) -> None:
    assert lines.read(text).problem


def test_an_outcome_that_nobody_knows_is_no_pass() -> None:
    read = lines.read('{"id": "a", "outcome": "splendid"}\n{"finished": 1}\n')
    assert (read.problem, read.tests[0].outcome) == ("", Outcome.ERROR)


def test_a_later_line_cannot_whitewash_an_earlier_one() -> None:
    tests = [TestResult("a", Outcome.FAILED), TestResult("a", Outcome.PASSED)]
    assert by_id(tests)["a"].outcome is Outcome.FAILED
    assert by_id(reversed(tests))["a"].outcome is Outcome.FAILED


BATS = """1..3
ok 1 adds
not ok 2 fails
# (in test file a.bats, line 2)
#   `@test "fails" { false; }' failed
ok 3 later # skip not now
"""


def test_what_bats_1_8_printed_is_read() -> None:
    found = tap.read(BATS)
    assert [(test.id, str(test.outcome)) for test in found.tests] == [
        ("adds", "passed"),
        ("fails", "failed"),
        ("later", "skipped"),
    ]
    assert not found.problem


GRADLE = """<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="calc.CalcTest" tests="3" skipped="1" failures="1" errors="0" timestamp="2026-11-18T02:14:40" time="0.002">
  <properties/>
  <testcase name="adds" classname="calc.CalcTest" time="0.002">
    <failure message="java.lang.AssertionError: expected:&lt;3&gt; but was:&lt;-1&gt;" type="java.lang.AssertionError">at calc</failure>
  </testcase>
  <testcase name="keeps" classname="calc.CalcTest" time="0.0"/>
  <testcase name="later" classname="calc.CalcTest" time="0.0"><skipped/></testcase>
  <system-out><![CDATA[]]></system-out>
</testsuite>
"""


def test_what_gradle_4_4_wrote_is_read() -> None:
    found = junit.read(GRADLE)
    assert [(test.id, str(test.outcome)) for test in found.tests] == [
        ("calc.CalcTest#adds", "failed"),
        ("calc.CalcTest#keeps", "passed"),
        ("calc.CalcTest#later", "skipped"),
    ]
    assert "expected:<3> but was:<-1>" in found.tests[0].message
