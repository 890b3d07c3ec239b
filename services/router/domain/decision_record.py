"""The machine of a stored routing decision: what is stored, whether it binds, and whether a caller may override it."""

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
    """Journal events of a routing decision."""

    DECISION_MADE = "DECISION_MADE"
    CLARIFICATION_REQUESTED = "CLARIFICATION_REQUESTED"


@dataclass(frozen=True, slots=True)
class RoutingDecision:
    """Everything that is stored of a routing decision."""

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
    """A clarification was requested instead of delegating."""


@dataclass(slots=True)
class DecisionRecord:
    """State of a stored routing decision."""

    made: RoutingDecision  # the name under which stored states and answers have it
    decided_at: datetime
    clarifications: int = 0


@dataclass(frozen=True, slots=True)
class StoreDecision:
    """Stores a routing decision."""

    entity_id: str
    decision: RoutingDecision


@dataclass(frozen=True, slots=True)
class CountClarification:
    """Counts a requested clarification."""

    entity_id: str


@dataclass(frozen=True, slots=True)
class StoredDecision:
    """Answer to StoreDecision: the decision as it was first stored."""

    made: RoutingDecision
    decided_at: datetime


@dataclass(frozen=True, slots=True)
class ClarificationCounted:
    """Answer to CountClarification."""

    task_id: str


@dataclass(frozen=True, slots=True)
class DecisionContext:
    """What a decision depends on beside its message: ids, policy and the caller's override."""

    decision_id: str
    run_id: str
    session_id: str
    hard_routing: bool
    mode_override: Mode | None = None
    item: int = 0


def make_routing_decision(
    text: str, classification: Classification, context: DecisionContext, as_action: Classification | None = None
) -> RoutingDecision:
    """Makes the decision to store, with the caller's override applied; refuses an override that hard routing forbids.

    An overridden decision keeps its rules and triggers for the log; the debate of an ANSWER made ACTION comes from `as_action`.
    """
    overridden = context.mode_override is not None and context.mode_override is not classification.mode
    if overridden and context.hard_routing and classification.confidence is Confidence.STRONG:
        metadata = {
            "mode": str(classification.mode),
            "confidence": str(classification.confidence),
            "item": str(context.item),
        }
        detail = "the decision is STRONG and hard routing is on; only the policy's switch lifts that"
        raise Refusal(Reason.OVERRIDE_REFUSED, detail, metadata=metadata)
    decision = RoutingDecision(
        decision_id=context.decision_id,
        task_id=task_id(text),
        excerpt=text[:EXCERPT_LETTERS].replace("\0", ""),
        mode=classification.mode,
        confidence=classification.confidence,
        triggers=classification.triggers[:MAX_TRIGGERS],
        trigger_count=len(classification.triggers),
        route=classification.route,
        fast_path=classification.fast_path,
        debate=classification.debate,
        stakes=classification.stakes,
        bypass=classification.bypass,
        reasons=classification.reasons,
        rules=classification.rules[:MAX_TRIGGERS],
        rule_set_version=classification.rule_set_version,
        enforced=context.hard_routing,
        overridden=overridden,
        run_id=context.run_id,
        session_id=context.session_id,
    )
    return _overridden(decision, as_action or classification) if overridden else decision


def decided_mode(decision: RoutingDecision) -> Mode:
    """The mode that the rules decided, before any override."""
    if not decision.overridden:
        return decision.mode
    return Mode.ANSWER if decision.mode is Mode.ACTION else Mode.ACTION


def _overridden(decision: RoutingDecision, as_action: Classification) -> RoutingDecision:
    """Switches the mode: ACTION becomes a direct response, ANSWER goes to the swarm orchestrator with its debate."""
    if decision.mode is Mode.ACTION:
        return replace(
            decision,
            mode=Mode.ANSWER,
            route=RouteTarget.DIRECT_RESPONSE,
            fast_path=False,
            debate=Debate.NONE,
        )
    debated = (rule for rule in as_action.rules if rule.startswith(("debate.", "bypass.", "own.")))
    return replace(
        decision,
        mode=Mode.ACTION,
        route=RouteTarget.SWARM_ORCHESTRATOR,
        debate=as_action.debate,
        stakes=as_action.stakes,
        bypass=as_action.bypass,
        reasons=as_action.reasons,
        rules=tuple(dict.fromkeys((*decision.rules, *debated)))[:MAX_TRIGGERS],
    )


def decide(state: DecisionRecord | None, command: Any, now: datetime) -> Decision:
    """Stores a new decision, or counts a clarification of a stored one."""
    if isinstance(command, StoreDecision):
        return Decision(
            [Event(DecisionEvent.DECISION_MADE, "", STORED, command.decision)], StoredDecision(command.decision, now)
        )
    if state is None:
        raise not_found(KIND, command.entity_id)
    event = Event(DecisionEvent.CLARIFICATION_REQUESTED, STORED, STORED, Clarification())
    return Decision([event], ClarificationCounted(state.made.task_id))


def apply(state: DecisionRecord | None, event: Event, at: datetime) -> DecisionRecord:
    """Applies one event."""
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
