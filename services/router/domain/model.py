"""A routing decision as the rules make it: triggers, reasons to debate, and the classification of one message."""

from typing import NamedTuple

from pointsman.services.router.domain.enums import (
    Bypass,
    Confidence,
    Debate,
    Mode,
    PlanningTrigger,
    RouteTarget,
    Stakes,
    TriggerKind,
)


class Trigger(NamedTuple):
    """One reason for ACTION with its first span in the text, in code points."""

    kind: TriggerKind
    name: str
    rule: str
    start: int
    end: int


class DebateReason(NamedTuple):
    """One reason to debate with its span; start equals end where no text stands for it."""

    trigger: PlanningTrigger
    rule: str
    start: int
    end: int


class Classification(NamedTuple):
    """The result of classifying one message."""

    mode: Mode
    confidence: Confidence
    triggers: tuple[Trigger, ...]
    route: RouteTarget
    fast_path: bool
    debate: Debate
    stakes: Stakes
    bypass: Bypass | None
    reasons: tuple[DebateReason, ...]
    rules: tuple[str, ...]
    rule_set_version: str
