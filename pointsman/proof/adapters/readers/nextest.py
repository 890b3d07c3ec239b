"""The output of `cargo nextest run`."""

import re

from pointsman.proof.adapters.readers.report import ReadReport, result
from pointsman.proof.results import Outcome

_TEST = re.compile(r"^\s+(PASS|FAIL|SIGABRT|SIGSEGV|TIMEOUT|LEAK) \[[^\]]*\] (?:\([^)]*\) )?(\S+) (\S+)")
_SUMMARY = re.compile(r"^\s+Summary \[[^\]]*\]\s+(\d+) tests? run")
OUTCOMES = {"PASS": Outcome.PASSED, "LEAK": Outcome.PASSED}


def read(text: str) -> ReadReport:
    """Reads results up to the summary, after which failures are repeated."""
    found = ReadReport(problem="the run ended without its summary")
    for line in text.splitlines():
        if match := _SUMMARY.match(line):
            distinct = len({test.id for test in found.tests})
            found.problem = "" if int(match[1]) == distinct else "the summary counts other tests than it shows"
            break
        if match := _TEST.match(line):
            found.tests.append(result(f"{match[2]}::{match[3]}", OUTCOMES.get(match[1], Outcome.FAILED), {}))
    return found
