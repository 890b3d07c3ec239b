"""REPORT_OUTCOME: the router learns how it went, and says what to do about a failure."""

from dataclasses import dataclass

from pointsman.services.orchestrator.domain import events
from pointsman.services.orchestrator.domain.calls.peer_call import PeerCall
from pointsman.services.orchestrator.domain.calls.resolve_debate import DebateResolved
from pointsman.services.orchestrator.domain.calls.settle_wave import ESCALATE, REPLAN, RETRY, settle
from pointsman.services.orchestrator.domain.commands import CallRefused
from pointsman.services.orchestrator.domain.decision import DecisionBuilder
from pointsman.services.orchestrator.domain.enums import Call, DebateVerdict

_OF_VERDICT = {
    DebateVerdict.RETRY: RETRY,
    DebateVerdict.PROCEED: RETRY,
    DebateVerdict.MODIFY: RETRY,
    DebateVerdict.PIVOT: REPLAN,
    DebateVerdict.ESCALATE: ESCALATE,
}


@dataclass(frozen=True, slots=True)
class ReportOutcome:
    """Tell the router how it went; a failure comes with its text, and with what is different the next time."""

    call_id: str
    decision_id: str
    failed: bool
    error: str
    difference: str
    clarification: bool = False
    """Neither success nor failure: the user is asked what is meant."""


def outcome_reported(builder: DecisionBuilder, answer: DebateResolved) -> None:
    """The router says whether to try again, to plan anew, or to bring a person in."""
    builder.emit(events.CallEnded(answer.call_id))
    settle(builder, _OF_VERDICT[answer.verdict])


def _outcome_refused(builder: DecisionBuilder, command: CallRefused) -> None:  # noqa: ARG001
    settle(builder, RETRY)


CALLS = (PeerCall(Call.REPORT_OUTCOME, ReportOutcome, outcome_reported, _outcome_refused),)
