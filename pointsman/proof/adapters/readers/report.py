"""What every reader returns."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pointsman.proof.results import MESSAGE_LENGTH, Outcome, TestResult


@dataclass(slots=True)
class ReadReport:
    """Results in the order of the report, and why it is not whole."""

    tests: list[TestResult] = field(default_factory=list)
    problem: str = ""


def excerpt(text: str) -> str:
    """The parts of a message that remain: its head, where some runners put the cause, and its tail, where others do."""
    text = text.strip()
    half = MESSAGE_LENGTH // 2
    return text if len(text) <= MESSAGE_LENGTH else f"{text[:half]}\n…\n{text[-half:]}"


def result(test_id: str, outcome: Outcome | None, values: Mapping[str, object]) -> TestResult:
    """One result from a mapping of JSON values; an outcome that nobody knows is an error, never a pass."""
    seconds = values.get("seconds")
    return TestResult(
        id=test_id,
        outcome=outcome or Outcome.ERROR,
        message=excerpt(str(values.get("message") or "")),
        seconds=float(seconds) if isinstance(seconds, int | float) else 0.0,
        file=str(values.get("file") or ""),
        in_source=values.get("in_source") is True,
    )
