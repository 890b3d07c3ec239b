"""A decision that was made: what is kept of it, whether it binds, and whether a caller may override it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from pointsman.services.chassis.core.errors import Reason, Refusal, not_found
from pointsman.services.chassis.core.machine import Decision, Event, Machine
from pointsman.services.router.domain.enums import Bypass, Confidence, Debate, Mode, RouteTarget, Stakes
from pointsman.services.router.domain.identity import task_id
from pointsman.services.router.domain.model import Classification, DebateReason, Trigger

KIND = "decision"
EXCERPT_LETTERS = 200
MAX_TRIGGERS = 64
STORED = "STORED"


class DecisionEvent(StrEnum):
    """What happens to a decision."""

    DECISION_MADE = "DECISION_MADE"
    CLARIFICATION_REQUESTED = "CLARIFICATION_REQUESTED"


@dataclass(frozen=True, slots=True)
class RoutingDecision:
    """Everything that is kept of a decision."""

    decision_id: str
    task_id: str
    excerpt: str
    mode: Mode
    confidence: Confidence
    triggers: tuple[Trigger, ...]
    trigger_count: int
    route: RouteTarget
    fast_path: bool
    debate: Debate
    stakes: Stakes
    bypass: Bypass | None
    reasons: tuple[DebateReason, ...]
    rules: tuple[str, ...]
    rule_set_version: str
    enforced: bool
    overridden: bool
    run_id: str
    session_id: str


@dataclass(frozen=True, slots=True)
class Clarification:
    """Clarification was asked instead of delegating."""


@dataclass(slots=True)
class DecisionRecord:
    """A stored decision."""

    made: RoutingDecision
    decided_at: datetime
    clarifications: int = 0


@dataclass(frozen=True, slots=True)
class StoreDecision:
    """Store a decision."""

    entity_id: str
    made: RoutingDecision


@dataclass(frozen=True, slots=True)
class CountClarification:
    """Count that clarification was asked for."""

    entity_id: str


@dataclass(frozen=True, slots=True)
class StoredDecision:
    """The decision as it was stored first."""

    made: RoutingDecision
    decided_at: datetime


@dataclass(frozen=True, slots=True)
class ClarificationCounted:
    """The clarification was counted."""

    task_id: str


@dataclass(frozen=True, slots=True)
class DecisionContext:
    """Where a message came from and what holds there."""

    decision_id: str
    run_id: str
    session_id: str
    hard_routing: bool
    mode_override: Mode | None = None
    item: int = 0


def make_routing_decision(
    text: str, found: Classification, context: DecisionContext, weighed: Classification | None = None
) -> RoutingDecision:
    """The decision as it will be stored, with the caller's override applied; refused if it may not be.

    What was found stays, so that the log can tell it; of talk that becomes work, the debate is what was weighed as an ACTION.
    """
    overridden = context.mode_override is not None and context.mode_override is not found.mode
    if overridden and context.hard_routing and found.confidence is Confidence.STRONG:
        metadata = {"mode": str(found.mode), "confidence": str(found.confidence), "item": str(context.item)}
        text = "the decision is STRONG and hard routing is on; only the policy's switch lifts that"
        raise Refusal(Reason.OVERRIDE_REFUSED, text, metadata=metadata)
    kept = RoutingDecision(
        decision_id=context.decision_id,
        task_id=task_id(text),
        excerpt=text[:EXCERPT_LETTERS].replace("\0", ""),
        mode=found.mode,
        confidence=found.confidence,
        triggers=found.triggers[:MAX_TRIGGERS],
        trigger_count=len(found.triggers),
        route=found.route,
        fast_path=found.fast_path,
        debate=found.debate,
        stakes=found.stakes,
        bypass=found.bypass,
        reasons=found.reasons,
        rules=found.rules[:MAX_TRIGGERS],
        rule_set_version=found.rule_set_version,
        enforced=context.hard_routing,
        overridden=overridden,
        run_id=context.run_id,
        session_id=context.session_id,
    )
    return _overridden(kept, weighed or found) if overridden else kept


def decided_mode(made: RoutingDecision) -> Mode:
    """What the rules decided, whether or not it was overridden."""
    if not made.overridden:
        return made.mode
    return Mode.ANSWER if made.mode is Mode.ACTION else Mode.ACTION


def _overridden(made: RoutingDecision, weighed: Classification) -> RoutingDecision:
    """The other mode: what was work becomes a direct response, what was talk goes to the swarm, once it is debated."""
    if made.mode is Mode.ACTION:
        return replace(
            made,
            mode=Mode.ANSWER,
            route=RouteTarget.DIRECT_RESPONSE,
            fast_path=False,
            debate=Debate.NONE,
        )
    debated = (rule for rule in weighed.rules if rule.startswith(("debate.", "bypass.", "own.")))
    return replace(
        made,
        mode=Mode.ACTION,
        route=RouteTarget.SWARM_ORCHESTRATOR,
        debate=weighed.debate,
        stakes=weighed.stakes,
        bypass=weighed.bypass,
        reasons=weighed.reasons,
        rules=tuple(dict.fromkeys((*made.rules, *debated)))[:MAX_TRIGGERS],
    )


def decide(state: DecisionRecord | None, command: Any, now: datetime) -> Decision:
    """Store a decision once; count clarifications of one that is stored."""
    if isinstance(command, StoreDecision):
        return Decision(
            [Event(DecisionEvent.DECISION_MADE, "", STORED, command.made)], StoredDecision(command.made, now)
        )
    if state is None:
        raise not_found(KIND, command.entity_id)
    event = Event(DecisionEvent.CLARIFICATION_REQUESTED, STORED, STORED, Clarification())
    return Decision([event], ClarificationCounted(state.made.task_id))


def apply(state: DecisionRecord | None, event: Event, at: datetime) -> DecisionRecord:
    """Fold one event."""
    if state is None:
        return DecisionRecord(event.data, at)
    state.clarifications += 1
    return state


EVENTS: Mapping[str, type] = {
    DecisionEvent.DECISION_MADE: RoutingDecision,
    DecisionEvent.CLARIFICATION_REQUESTED: Clarification,
}

MACHINE: Machine[DecisionRecord] = Machine(
    kind=KIND,
    version=1,
    state_type=DecisionRecord,
    decide=decide,
    apply=apply,
    status=lambda _record: STORED,
    run_id=lambda record: record.made.run_id,
    events=EVENTS,
    answers={StoreDecision: StoredDecision, CountClarification: ClarificationCounted},
)
