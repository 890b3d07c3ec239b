"""The verdict of a debate between advocate and critic: the first row that holds decides."""

from dataclasses import dataclass
from enum import StrEnum

from pointsman.services.router.domain.enums import Stakes

CONFIDENT_AT = 0.8


class DebateKind(StrEnum):
    """Whether the debate was held before the work or after failures."""

    PLANNING = "planning"
    FAILURE = "failure"


class Severity(StrEnum):
    """How severe the critic's objection is."""

    NONE = "none"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Verdict(StrEnum):
    """What to do after the debate."""

    PROCEED = "proceed"
    MODIFY = "modify"
    ESCALATE = "escalate"
    RETRY = "retry"
    PIVOT = "pivot"


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of both sides that the rules weigh."""

    confidence: float
    has_difference: bool
    severity: Severity
    has_objection: bool
    has_counter: bool

    @property
    def disagree(self) -> bool:
        """Whether the critic objects in any form."""
        return self.has_objection or self.has_counter or self.severity is not Severity.NONE


def planning_verdict(arguments: Arguments, stakes: Stakes) -> tuple[Verdict, str]:
    """The verdict of a debate before execution, with the name of its row."""
    high = stakes is Stakes.HIGH
    confident = arguments.confidence >= CONFIDENT_AT and arguments.severity in (Severity.NONE, Severity.LOW)
    rows = (
        ("high_severity_with_counter", Verdict.MODIFY, arguments.severity is Severity.HIGH and arguments.has_counter),
        ("high_severity", Verdict.ESCALATE, arguments.severity is Severity.HIGH),
        ("high_stakes_disagreement", Verdict.MODIFY, high and arguments.disagree),
        ("confident", Verdict.PROCEED, confident),
        ("disagreement", Verdict.MODIFY, arguments.disagree),
        ("high_stakes_unsure", Verdict.ESCALATE, high),
    )
    return _first(rows, Verdict.PROCEED, "planning")


def failure_verdict(arguments: Arguments, same_pattern_again: bool) -> tuple[Verdict, str]:
    """The verdict of a debate after failures, with the name of its row."""
    rows = (
        ("same_pattern_again", Verdict.ESCALATE, same_pattern_again),
        ("no_difference", Verdict.PIVOT, not arguments.has_difference),
    )
    return _first(rows, Verdict.RETRY, "failure")


def _first(rows: tuple[tuple[str, Verdict, bool], ...], otherwise: Verdict, kind: str) -> tuple[Verdict, str]:
    for name, verdict, holds in rows:
        if holds:
            return verdict, f"{kind}.{name}"
    return otherwise, f"{kind}.otherwise"
