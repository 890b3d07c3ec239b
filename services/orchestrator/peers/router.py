"""Calls to the router."""

from typing import Any

from pointsman.api.router.v1 import outcome_pb2 as outcome
from pointsman.services.chassis.engine.deliveries import PendingEffect
from pointsman.services.orchestrator.domain.calls.report_outcome import ReportOutcome
from pointsman.services.orchestrator.domain.calls.resolve_debate import DebateResolved, ResolveDebate
from pointsman.services.orchestrator.domain.enums import Call, DebateVerdict
from pointsman.services.orchestrator.peers.clients import Peers, opaque, performs
from pointsman.services.orchestrator.wire import encode, enums


@performs(Call.REPORT_OUTCOME)
async def report_outcome(peers: Peers, effect: PendingEffect, data: ReportOutcome) -> Any:
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
    return DebateResolved(data.call_id, verdict)


async def _failure_debate(peers: Peers, effect: PendingEffect, data: ReportOutcome) -> DebateVerdict:
    request = outcome.ResolveDebateRequest(
        request_id=opaque(f"{effect.effect_id}:debate"),
        decision_id=data.decision_id,
        kind=outcome.DEBATE_KIND_FAILURE,
        advocate=outcome.Advocate(proposal="try again", confidence=0.7, difference=data.difference),
        critic=outcome.Critic(objection=data.error[:4000], severity=outcome.SEVERITY_MEDIUM),
    )
    answer = await peers.call_router(effect, peers.router.stub.ResolveDebate, request)
    return enums.DEBATE_VERDICT.required(answer.verdict)


@performs(Call.RESOLVE_DEBATE)
async def resolve_debate(peers: Peers, effect: PendingEffect, data: ResolveDebate) -> Any:
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
    return DebateResolved(data.call_id, enums.DEBATE_VERDICT.required(answer.verdict))
