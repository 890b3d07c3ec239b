"""The lines of our own reporters: one JSON object per test, and one that ends the report."""

import json

from pointsman.proof.adapters.readers.report import ReadReport, result
from pointsman.proof.results import Outcome

OUTCOMES = {str(outcome): outcome for outcome in Outcome}


def read(text: str) -> ReadReport:
    """Reads lines; without an end that counts as many tests as there are, the report is not whole."""
    read_report, finished = ReadReport(), -1
    for line in text.splitlines():
        try:
            values = json.loads(line)
        except ValueError:
            return ReadReport(read_report.tests, "the report has a line that is no JSON")
        if not isinstance(values, dict):
            return ReadReport(read_report.tests, "the report has a line that is no object")
        if "finished" in values and finished < 0:
            finished = values["finished"] if isinstance(values["finished"], int) else -1
        else:
            outcome = OUTCOMES.get(str(values.get("outcome")))
            read_report.tests.append(result(str(values.get("id", "?")), outcome, values))
    if finished != len(read_report.tests):
        read_report.problem = "the test process ended before its report did"
    return read_report
