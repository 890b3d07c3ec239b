"""Encodes domain values to protobuf answers."""

from collections.abc import Sequence
from datetime import datetime

from google.protobuf.timestamp_pb2 import Timestamp

from pointsman.api.router.v1 import decision_pb2, log_pb2, outcome_pb2, policy_pb2, thinking_pb2
from pointsman.services.chassis.core.clock import to_us
from pointsman.services.chassis.rpc.paging import page_token, timestamp
from pointsman.services.router.domain.decision_record import RoutingDecision
from pointsman.services.router.domain.model import DebateReason, Trigger
from pointsman.services.router.domain.outcomes import Reported, Resolved
from pointsman.services.router.domain.policy import Policy
from pointsman.services.router.domain.rule_document import OwnRule
from pointsman.services.router.domain.thinking import Envelope
from pointsman.services.router.domain.views import Stats
from pointsman.services.router.wire import enums


def moment(at: datetime) -> Timestamp:
    """Encodes a time."""
    return timestamp(to_us(at))


def decision(stored: RoutingDecision, decided_at: datetime) -> decision_pb2.RoutingDecision:
    """Encodes a routing decision."""
    return decision_pb2.RoutingDecision(
        decision_id=stored.decision_id,
        task_id=stored.task_id,
        decided_at=moment(decided_at),
        text_excerpt=stored.excerpt,
        mode=enums.MODE.to_wire(stored.mode),
        confidence=enums.CONFIDENCE.to_wire(stored.confidence),
        triggers=[_trigger(trigger) for trigger in stored.triggers],
        route=enums.ROUTE_TARGET.to_wire(stored.route),
        fast_path=stored.fast_path,
        debate=enums.DEBATE.to_wire(stored.debate),
        stakes=enums.STAKES.to_wire(stored.stakes),
        debate_bypass=enums.DEBATE_BYPASS.to_wire(stored.bypass) or decision_pb2.DEBATE_BYPASS_NONE,
        debate_reasons=[_reason(reason) for reason in stored.reasons],
        rules=stored.rules,
        rule_set_version=stored.rule_set_version,
        enforced=stored.enforced,
        overridden=stored.overridden,
        run_id=stored.run_id,
        session_id=stored.session_id,
    )


def _trigger(trigger: Trigger) -> decision_pb2.Trigger:
    kind = enums.TRIGGER_KIND.to_wire(trigger.kind)
    return decision_pb2.Trigger(kind=kind, name=trigger.name, rule=trigger.rule, start=trigger.start, end=trigger.end)


def _reason(reason: DebateReason) -> decision_pb2.DebateReason:
    trigger = enums.PLANNING_TRIGGER.to_wire(reason.trigger)
    return decision_pb2.DebateReason(trigger=trigger, rule=reason.rule, start=reason.start, end=reason.end)


def decision_page(rows: Sequence[tuple[RoutingDecision, datetime]], limit: int) -> log_pb2.ListDecisionsResponse:
    """Encodes a page of decisions; one row more than the limit means that there is a next page."""
    shown = rows[:limit]
    token = page_token(to_us(shown[-1][1]), shown[-1][0].decision_id) if len(rows) > limit else ""
    return log_pb2.ListDecisionsResponse(decisions=[decision(*row) for row in shown], next_page_token=token)


def own_rule(rule: OwnRule) -> policy_pb2.OwnRule:
    """Encodes a project's own rule."""
    effect = enums.RULE_EFFECT.to_wire(rule.effect)
    return policy_pb2.OwnRule(id=rule.id, effect=effect, pattern=rule.pattern, description=rule.description)


def policy(known: Policy, rule_set_version: str) -> policy_pb2.Policy:
    """Encodes a project's policy."""
    return policy_pb2.Policy(
        revision=known.revision,
        hard_routing=known.hard_routing,
        rules=[own_rule(rule) for rule in known.rules],
        rule_set_version=rule_set_version,
        updated_at=None if known.updated_at is None else moment(known.updated_at),
        doubt=enums.DOUBT.to_wire(known.doubt),
    )


def reported(answer: Reported, fingerprint: str, task_id: str) -> outcome_pb2.ReportOutcomeResponse:
    """Encodes the answer to ReportOutcome."""
    return outcome_pb2.ReportOutcomeResponse(
        reaction=enums.REACTION.to_wire(answer.reaction),
        cause=enums.REACTION_CAUSE.to_wire(answer.cause),
        consecutive_failures=answer.failures,
        rejections=answer.rejections,
        fingerprint=fingerprint,
        task_id=task_id,
    )


def resolved(answer: Resolved) -> outcome_pb2.ResolveDebateResponse:
    """Encodes the answer to ResolveDebate."""
    return outcome_pb2.ResolveDebateResponse(
        verdict=enums.VERDICT.to_wire(answer.verdict),
        rule=answer.rule,
        stakes=enums.STAKES.to_wire(answer.stakes),
    )


def envelope(answer: Envelope) -> thinking_pb2.ThinkingEnvelope:
    """Encodes a thinking envelope."""
    return thinking_pb2.ThinkingEnvelope(
        command=answer.command,
        timestamp=moment(answer.timestamp),
        status=enums.ENVELOPE_STATUS.to_wire(answer.status),
        error_code=enums.THINKING_ERROR_CODE.to_wire(answer.error_code),
        warn=answer.warn,
        missing_inputs=answer.missing_inputs,
        artifacts_read=answer.artifacts_read,
        artifacts_written=answer.artifacts_written,
        routed_to=enums.THINKING_ROUTE.to_wire(answer.routed_to),
        next=answer.next,
        rule=answer.rule,
        reason=answer.reason,
    )


def stats(counts: Stats) -> log_pb2.GetStatsResponse:
    """Encodes counts with their rates."""
    return log_pb2.GetStatsResponse(
        decisions=counts.decisions,
        answers=counts.answers,
        actions=counts.actions,
        strong=counts.strong,
        weak=counts.weak,
        fast_paths=counts.fast_paths,
        debates=counts.debates,
        overrides=counts.overrides,
        clarifications=counts.clarifications,
        answer_rate=_rate(counts.answers, counts.decisions),
        action_rate=_rate(counts.actions, counts.decisions),
        strong_rate=_rate(counts.strong, counts.actions),
        override_rate=_rate(counts.overrides + counts.clarifications, counts.decisions),
    )


def _rate(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
