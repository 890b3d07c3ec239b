"""Calls to the router."""

from pointsman.services.orchestrator.domain import acceptance, commands, peer_requests, planning
from pointsman.services.orchestrator.domain.calls.peer_call import PeerCall
from pointsman.services.orchestrator.domain.commands import CallRefused
from pointsman.services.orchestrator.domain.decision import DecisionBuilder
from pointsman.services.orchestrator.domain.enums import Call, DebateVerdict


def _outcome_refused(builder: DecisionBuilder, command: CallRefused) -> None:  # noqa: ARG001
    acceptance.settle(builder, acceptance.RETRY)


def _debate_refused(builder: DecisionBuilder, command: CallRefused) -> None:  # noqa: ARG001
    planning.go_by_verdict(builder, DebateVerdict.ESCALATE)


ROUTER_CALLS = (
    PeerCall(
        Call.REPORT_OUTCOME,
        peer_requests.ReportOutcome,
        commands.DebateResolved,
        acceptance.outcome_reported,
        _outcome_refused,
    ),
    PeerCall(
        Call.RESOLVE_DEBATE,
        peer_requests.ResolveDebate,
        commands.DebateResolved,
        planning.debate_resolved,
        _debate_refused,
    ),
)
