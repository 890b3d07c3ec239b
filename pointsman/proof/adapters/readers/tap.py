"""The Test Anything Protocol; only its top level counts."""

import re

from pointsman.proof.adapters.readers.report import ReadReport, result
from pointsman.proof.results import Outcome

_TEST = re.compile(r"^(not )?ok\b\s*\d*\s*(?:- )?([^#]*)(?:#\s*(skip|todo)\b.*)?$", re.IGNORECASE)
_GROUP = re.compile(
    r"^# (?!Subtest: |tests\b|pass\b|fail\b|suites\b|skipped\b|todo\b|cancelled\b|duration_ms\b|ok$)(.+)$"
)
"""The name of a test in a comment, with which `tape` begins its assertions; its plan is at the end."""
_PLAN = re.compile(r"^1\.\.(\d+)")


def read(text: str) -> ReadReport:
    """Reads results; without a plan, or with another number of tests than it says, the report is not whole."""
    found, planned, group = ReadReport(), -1, ""
    for number, line in enumerate(text.splitlines()):
        if match := _PLAN.match(line):
            planned = int(match[1])
        elif line.startswith("Bail out!"):
            found.problem = line.strip()
        elif planned < 0 and (match := _GROUP.match(line)):
            group = f"{match[1].strip()}: "
        elif match := _TEST.match(line):
            outcome = Outcome.FAILED if match[1] else Outcome.PASSED
            outcome = Outcome.SKIPPED if match[3] else outcome
            found.tests.append(result(group + (match[2].strip() or f"line {number + 1}"), outcome, {}))
    if not found.problem and planned != len(found.tests):
        found.problem = (
            f"{len(found.tests)} tests ran, and the plan says {planned}"
            if planned >= 0
            else "the tests ended before they were all done"
        )
    return found
