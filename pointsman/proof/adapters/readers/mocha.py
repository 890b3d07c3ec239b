"""The JSON of mocha."""

import json

from pointsman.proof.adapters.readers.report import ReadReport, result
from pointsman.proof.results import Outcome


def read(text: str) -> ReadReport:
    """Reads passes, failures and pending tests."""
    try:
        document = json.loads(text)
        groups = {
            Outcome.PASSED: document["passes"],
            Outcome.FAILED: document["failures"],
            Outcome.SKIPPED: document["pending"],
        }
    except (ValueError, KeyError, TypeError):
        return ReadReport(problem="the report is not the JSON that was asked for")
    found = ReadReport()
    for outcome, tests in groups.items():
        for test in tests:
            message = (test.get("err") or {}).get("message", "")
            found.tests.append(result(str(test.get("fullTitle", "?")), outcome, {"message": message}))
    return found
