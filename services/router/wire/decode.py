"""Decodes protobuf requests to domain values."""

from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp

from pointsman.api.common.v1 import common_pb2
from pointsman.api.router.v1 import log_pb2, outcome_pb2, policy_pb2, thinking_pb2
from pointsman.services.chassis.core.errors import invalid_field
from pointsman.services.chassis.rpc.paging import page_key
from pointsman.services.router.domain import debate_verdict, outcomes, thinking
from pointsman.services.router.domain.decision_record import RoutingDecision
from pointsman.services.router.domain.enums import Doubt, PlanningTrigger
from pointsman.services.router.domain.policy import SetPolicy, policy_id
from pointsman.services.router.domain.rule_document import OwnRule
from pointsman.services.router.domain.views import Filter
from pointsman.services.router.wire import enums


def own_rule(rule: policy_pb2.OwnRule) -> OwnRule:
    """Decodes a project's own rule."""
    return OwnRule(rule.id, enums.RULE_EFFECT.required(rule.effect), rule.pattern, rule.description)


def set_policy(request: policy_pb2.SetPolicyRequest, project: str) -> SetPolicy:
    """Decodes a SetPolicy command."""
    expected = request.expected_revision if request.HasField("expected_revision") else None
    rules = tuple(own_rule(rule) for rule in request.rules)
    doubt = enums.DOUBT.or_default(request.doubt, Doubt.BALANCED)
    return SetPolicy(policy_id(project), request.hard_routing, rules, expected, doubt)


def report(
    request: outcome_pb2.ReportOutcomeRequest, project: str, decision: RoutingDecision, fingerprint: str
) -> outcomes.ReportOutcome:
    """Decodes a ReportOutcome command."""
    outcome = enums.OUTCOME.required(request.outcome)
    security = any(reason.trigger is PlanningTrigger.SECURITY for reason in decision.reasons)
    failed = outcome is outcomes.Outcome.FAILURE
    return outcomes.ReportOutcome(
        outcomes.outcomes_id(project), decision.task_id, outcome, fingerprint if failed else "", security
    )


def resolve(
    request: outcome_pb2.ResolveDebateRequest, project: str, decision: RoutingDecision
) -> outcomes.ResolveDebate:
    """Decodes a ResolveDebate command."""
    kind = enums.DEBATE_KIND.required(request.kind)
    arguments = debate_verdict.Arguments(
        confidence=request.advocate.confidence,
        has_difference=bool(request.advocate.difference.strip()),
        severity=enums.SEVERITY.or_default(request.critic.severity, debate_verdict.Severity.NONE),
        has_objection=bool(request.critic.objection.strip()),
        has_counter=bool(request.critic.counter_proposal.strip()),
    )
    return outcomes.ResolveDebate(
        outcomes.outcomes_id(project), decision.task_id, kind, decision.session_id, decision.stakes, arguments
    )


def moment(wire: Timestamp) -> datetime:
    """Decodes a timestamp as UTC."""
    return wire.ToDatetime(UTC)


def window(wire: log_pb2.Window, **other: str) -> Filter:
    """Decodes a time window, with other conditions of a filter."""
    start = moment(wire.start) if wire.HasField("start") else None
    end = moment(wire.end) if wire.HasField("end") else None
    if start is not None and end is not None and end < start:
        raise invalid_field("window.end", "must not be before window.start")
    return Filter(start=start, end=end, **other)


def list_filter(request: log_pb2.ListDecisionsRequest) -> Filter:
    """Decodes the filter of ListDecisions."""
    return window(
        request.window,
        mode=str(enums.MODE.to_domain(request.mode) or ""),
        run_id=request.run_id,
        task_id=request.task_id,
    )


def cursor(page: common_pb2.Page) -> tuple[int, str] | None:
    """Decodes a page token."""
    key = page_key(page.page_token, int, str)
    return None if key is None else (int(key[0]), str(key[1]))


def snapshot(wire: thinking_pb2.ThinkingSnapshot) -> thinking.Snapshot:
    """Decodes a thinking snapshot."""
    return thinking.Snapshot(
        latch=_latch(wire.latch),
        blocker=_artifact(wire.blocker),
        trail=_artifact(wire.trail),
        research=_artifact(wire.research),
        delta=_artifact(wire.delta),
        plan=_artifact(wire.plan),
    )


def _latch(wire: thinking_pb2.Latch) -> thinking.Latch:
    created_at = moment(wire.created_at) if wire.HasField("created_at") else None
    return thinking.Latch(
        enums.ARTIFACT_STATE.or_default(wire.state, thinking.FileState.ABSENT), created_at, wire.process_alive
    )


def _artifact(wire: thinking_pb2.Artifact) -> thinking.Artifact:
    return thinking.Artifact(
        state=enums.ARTIFACT_STATE.or_default(wire.state, thinking.FileState.ABSENT),
        status=enums.ENVELOPE_STATUS.or_default(wire.status, thinking.Status.UNKNOWN),
        created_at=moment(wire.created_at) if wire.HasField("created_at") else None,
        needs=enums.NEED.all_to_domain(wire.needs),
        finished=wire.finished,
        env_check=tuple(wire.env_check.items()),
    )
