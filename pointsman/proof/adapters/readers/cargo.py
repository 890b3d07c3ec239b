"""The output of `cargo test`: one line per test, and a summary for each test binary."""

import re
from dataclasses import dataclass, field
from pathlib import PurePath

from pointsman.proof.adapters.readers.report import ReadReport, result
from pointsman.proof.results import COMPILATION, Outcome

_BINARY = re.compile(r"^\s+Running (?:unittests )?(\S+)(?: \((\S+?)-[0-9a-f]{16}(?:\.exe)?\))?")
_DOCTESTS = re.compile(r"^\s+Doc-tests (\S+)")
_STARTED = re.compile(r"^running (\d+) tests?$")
_TEST = re.compile(r"^test (.+?)(?: - should panic)? \.\.\. (ok|FAILED|ignored)\b")
_SUMMARY = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored;")
_NOT_COMPILED = re.compile(r"^error(\[E\d+\])?: ")
_LINE_NUMBER = re.compile(r" \(line \d+\)")
OUTCOMES = {"ok": Outcome.PASSED, "FAILED": Outcome.FAILED, "ignored": Outcome.SKIPPED}


@dataclass(slots=True)
class _Output:
    """What was read so far: results, the binary that runs, and how many of its tests were seen."""

    report: ReadReport = field(default_factory=ReadReport)
    place: str = ""
    seen: int = 0
    running: bool = False
    binaries: int = 0
    compiled: bool = True

    def take(self, line: str) -> None:
        """Takes one line."""
        if match := _BINARY.match(line):
            self._end()
            self.place = f"{PurePath(match[2]).name}:{match[1]}" if match[2] else match[1]
        elif match := _DOCTESTS.match(line):
            self._end()
            self.place = f"{match[1]}:doc"
        elif _STARTED.match(line):
            self.running, self.seen, self.binaries = True, 0, self.binaries + 1
        elif match := _TEST.match(line):
            self.seen += 1
            name = _LINE_NUMBER.sub("", match[1])
            self.report.tests.append(result(f"{self.place}::{name}", OUTCOMES[match[2]], {}))
        else:
            self._take_other(line)

    def _take_other(self, line: str) -> None:
        if match := _SUMMARY.match(line):
            if sum(map(int, match.groups())) != self.seen:
                self.report.problem = f"{self.place} counts other tests than it shows"
            self.running = False
        elif _NOT_COMPILED.match(line) and not self.binaries:
            self.compiled = False

    def _end(self) -> None:
        if self.running:
            self.report.problem = f"the tests of {self.place or 'a binary'} ended without their summary"
        self.running = False

    def end(self, text: str) -> ReadReport:
        """The report after the last line."""
        self._end()
        if not self.compiled and not self.report.tests:
            self.report.tests.append(result(COMPILATION, Outcome.ERROR, {"message": text}))
        return self.report


def read(text: str) -> ReadReport:
    """Reads results; a binary that started and has no summary, or another count than its lines, has not reported."""
    output = _Output()
    for line in text.splitlines():
        output.take(line)
    return output.end(text)
