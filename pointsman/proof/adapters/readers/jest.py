"""The JSON of jest, which vitest writes as well."""

import json

from pointsman.proof.adapters.readers.report import ReadReport, result
from pointsman.proof.results import Outcome, TestResult

OUTCOMES = {
    "passed": Outcome.PASSED, "failed": Outcome.FAILED, "pending": Outcome.SKIPPED, "skipped": Outcome.SKIPPED,
    "todo": Outcome.SKIPPED, "disabled": Outcome.SKIPPED,
}  # fmt: skip


def read(text: str) -> ReadReport:
    """Reads the files and their assertions; a file that could not be run is an error itself."""
    try:
        document = json.loads(text)
        files = [file for file in document["testResults"] if isinstance(file, dict)]
    except (ValueError, KeyError, TypeError):
        return ReadReport(problem="the report is not the JSON that was asked for")
    found = ReadReport()
    for file in files:
        found.tests += _file(file)
    if document.get("wasInterrupted") is True:
        found.problem = "the run was interrupted"
    return found


def _file(file: dict[str, object]) -> list[TestResult]:
    name = str(file.get("name", ""))
    assertions = file.get("assertionResults")
    tests = [_assertion(one, name) for one in assertions] if isinstance(assertions, list) else []
    if file.get("status") == "failed" and not any(test.outcome is Outcome.FAILED for test in tests):
        tests.append(result(name, Outcome.ERROR, {"message": file.get("message"), "file": name}))
    return tests


def _assertion(one: dict[str, object], file: str) -> TestResult:
    ancestors = one.get("ancestorTitles")
    titles = [str(title) for title in ancestors] if isinstance(ancestors, list) else []
    messages = one.get("failureMessages")
    values = {"message": "\n".join(map(str, messages)) if isinstance(messages, list) else "", "file": file}
    test_id = " > ".join([file, *(title for title in titles if title), str(one.get("title", "?"))])
    return result(test_id, OUTCOMES.get(str(one.get("status"))), values)
