"""Calls to the router."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pointsman.api.router.v1 import outcome_pb2 as outcome
from pointsman.services.chassis.engine.deliveries import PendingEffect
from pointsman.services.orchestrator.domain import commands, peer_requests
from pointsman.services.orchestrator.domain.enums import Call, DebateVerdict
from pointsman.services.orchestrator.peers.clients import Peers, opaque
from pointsman.services.orchestrator.wire import encode, enums


async def report_outcome(peers: Peers, effect: PendingEffect, data: peer_requests.ReportOutcome) -> Any:
    """Tell the router how it went; a failure debate is resolved in the same breath."""
    request = outcome.ReportOutcomeRequest(
        request_id=opaque(effect.effect_id),
        decision_id=data.decision_id,
        outcome=encode.peers.reported_outcome(data),
        error_text=data.error,
    )
    answer = await peers.call_router(effect, peers.router.stub.ReportOutcome, request)
    if answer.reaction == outcome.REACTION_AUTO_ESCALATE:
        verdict = DebateVerdict.ESCALATE
    elif answer.reaction == outcome.REACTION_DEBATE_FAILURE:
        verdict = await _failure_debate(peers, effect, data)
    else:
        verdict = DebateVerdict.RETRY
    return commands.DebateResolved(effect.entity_id, data.call_id, verdict)


async def _failure_debate(peers: Peers, effect: PendingEffect, data: peer_requests.ReportOutcome) -> DebateVerdict:
    request = outcome.ResolveDebateRequest(
        request_id=opaque(f"{effect.effect_id}:debate"),
        decision_id=data.decision_id,
        kind=outcome.DEBATE_KIND_FAILURE,
        advocate=outcome.Advocate(proposal="try again", confidence=0.7, difference=data.difference),
        critic=outcome.Critic(objection=data.error[:4000], severity=outcome.SEVERITY_MEDIUM),
    )
    answer = await peers.call_router(effect, peers.router.stub.ResolveDebate, request)
    return enums.DEBATE_VERDICT.required(answer.verdict)


async def resolve_debate(peers: Peers, effect: PendingEffect, data: peer_requests.ResolveDebate) -> Any:
    """Let the router weigh the plan's critic against its advocate."""
    request = outcome.ResolveDebateRequest(
        request_id=opaque(effect.effect_id),
        decision_id=data.decision_id,
        kind=outcome.DEBATE_KIND_PLANNING,
        advocate=outcome.Advocate(proposal=data.proposal[:4000], confidence=data.confidence),
        critic=outcome.Critic(
            objection=data.objection[:4000],
            severity=encode.peers.critic_severity(data.severity),
            counter_proposal=data.counter[:4000],
        ),
    )
    answer = await peers.call_router(effect, peers.router.stub.ResolveDebate, request)
    return commands.DebateResolved(effect.entity_id, data.call_id, enums.DEBATE_VERDICT.required(answer.verdict))


ROUTER: Mapping[Call, Callable[[Peers, PendingEffect, Any], Awaitable[Any]]] = {
    Call.REPORT_OUTCOME: report_outcome,
    Call.RESOLVE_DEBATE: resolve_debate,
}
