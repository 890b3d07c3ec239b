"""How a debate ends: an advocate and a critic, weighed by rule. The first row that holds gives the verdict."""

from dataclasses import dataclass
from enum import StrEnum

from pointsman.services.router.domain.enums import Stakes

CONFIDENT_AT = 0.8


class DebateKind(StrEnum):
    """Which debate was held."""

    PLANNING = "planning"
    FAILURE = "failure"


class Severity(StrEnum):
    """How bad the critic's objection is."""

    NONE = "none"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Verdict(StrEnum):
    """How to go on."""

    PROCEED = "proceed"
    MODIFY = "modify"
    ESCALATE = "escalate"
    RETRY = "retry"
    PIVOT = "pivot"


@dataclass(frozen=True, slots=True)
class Arguments:
    """What both sides said, as far as it counts."""

    confidence: float
    has_difference: bool
    severity: Severity
    has_objection: bool
    has_counter: bool

    @property
    def disagree(self) -> bool:
        """Whether the critic has anything against it."""
        return self.has_objection or self.has_counter or self.severity is not Severity.NONE


def planning_verdict(said: Arguments, stakes: Stakes) -> tuple[Verdict, str]:
    """Before execution; every row with its name."""
    high = stakes is Stakes.HIGH
    confident = said.confidence >= CONFIDENT_AT and said.severity in (Severity.NONE, Severity.LOW)
    rows = (
        ("high_severity_with_counter", Verdict.MODIFY, said.severity is Severity.HIGH and said.has_counter),
        ("high_severity", Verdict.ESCALATE, said.severity is Severity.HIGH),
        ("high_stakes_disagreement", Verdict.MODIFY, high and said.disagree),
        ("confident", Verdict.PROCEED, confident),
        ("disagreement", Verdict.MODIFY, said.disagree),
        ("high_stakes_unsure", Verdict.ESCALATE, high),
    )
    return _first(rows, Verdict.PROCEED, "planning")


def failure_verdict(said: Arguments, same_pattern_again: bool) -> tuple[Verdict, str]:
    """After failures."""
    rows = (
        ("same_pattern_again", Verdict.ESCALATE, same_pattern_again),
        ("no_difference", Verdict.PIVOT, not said.has_difference),
    )
    return _first(rows, Verdict.RETRY, "failure")


def _first(rows: tuple[tuple[str, Verdict, bool], ...], otherwise: Verdict, kind: str) -> tuple[Verdict, str]:
    for name, verdict, holds in rows:
        if holds:
            return verdict, f"{kind}.{name}"
    return otherwise, f"{kind}.otherwise"
