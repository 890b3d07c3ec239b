"""The events of `go test -json`, among whatever else the command prints."""

import json
from dataclasses import dataclass, field

from pointsman.proof.adapters.readers.report import ReadReport, result
from pointsman.proof.results import Outcome, TestResult

OUTCOMES = {"pass": Outcome.PASSED, "fail": Outcome.FAILED, "skip": Outcome.SKIPPED}


@dataclass(slots=True)
class _Events:
    tests: list[TestResult] = field(default_factory=list)
    running: set[str] = field(default_factory=set)
    packages: set[str] = field(default_factory=set)
    output: dict[str, str] = field(default_factory=dict)
    failed_packages: set[str] = field(default_factory=set)

    def take(self, event: dict[str, object]) -> None:
        """Takes one event."""
        action, package, test = (str(event.get(key, "")) for key in ("Action", "Package", "Test"))
        key = f"{package}.{test}" if test else package
        if action == "output":
            self.output[key] = (self.output.get(key, "") + str(event.get("Output", "")))[-2000:]
        elif action == "start":
            self.packages.add(package)
        elif action == "run":
            self.running.add(key)
        elif action in OUTCOMES and test:
            self.running.discard(key)
            values = {"message": self.output.get(key, ""), "seconds": event.get("Elapsed")}
            self.tests.append(result(key, OUTCOMES[action], values))
        elif action in OUTCOMES:
            self.packages.discard(package)
            if action == "fail":
                self.failed_packages.add(package)


def read(text: str) -> ReadReport:
    """Reads events; a package that failed without a failing test (it does not compile, it died) is an error itself."""
    events = _Events()
    for line in text.splitlines():
        if line.startswith("{"):
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict):
                events.take(event)
    for package in sorted(events.failed_packages):
        if not any(test.outcome is Outcome.FAILED and test.id.startswith(f"{package}.") for test in events.tests):
            events.tests.append(result(package, Outcome.ERROR, {"message": events.output.get(package, "")}))
    events.tests += [result(key, Outcome.ERROR, {"message": "it never ended"}) for key in sorted(events.running)]
    problem = f"no end of {', '.join(sorted(events.packages))} was reported" if events.packages else ""
    return ReadReport(events.tests, problem)
