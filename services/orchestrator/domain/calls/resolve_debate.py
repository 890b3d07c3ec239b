"""RESOLVE_DEBATE: the router weighs the plan's advocate against its critic."""

from dataclasses import dataclass

from pointsman.services.orchestrator.domain import events
from pointsman.services.orchestrator.domain.calls.peer_call import PeerCall
from pointsman.services.orchestrator.domain.commands import CallRefused
from pointsman.services.orchestrator.domain.decision import DecisionBuilder
from pointsman.services.orchestrator.domain.enums import Call, DebateVerdict, Severity, Trigger
from pointsman.services.orchestrator.domain.run import MAX_FEEDBACK_ROUNDS

MAX_BLOCKING_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class ResolveDebate:
    """Let the router weigh the plan's advocate against its critic."""

    call_id: str
    decision_id: str
    proposal: str
    confidence: float
    objection: str
    counter: str
    severity: Severity | None


@dataclass(frozen=True, slots=True)
class DebateResolved:
    """How to go on after a debate or a failure."""

    call_id: str
    verdict: DebateVerdict


def debate_resolved(builder: DecisionBuilder, answer: DebateResolved) -> None:
    """Go by the router's verdict."""
    builder.emit(events.CallEnded(answer.call_id))
    go_by_verdict(builder, answer.verdict)


def go_by_verdict(builder: DecisionBuilder, verdict: DebateVerdict) -> None:
    """PROCEED passes, ESCALATE asks a person, MODIFY stays, blocks or releases."""
    if verdict is DebateVerdict.PROCEED:
        builder.transition(Trigger.PASS_OR_FEEDBACK_LIMIT_REACHED, "passed")
    elif verdict is DebateVerdict.ESCALATE:
        builder.transition(Trigger.FEEDBACK_ESCALATED, "the debate was escalated")
    else:
        _modify(builder)


def _modify(builder: DecisionBuilder) -> None:
    run = builder.run
    blocking = [i.remark.statement for i in run.remarks.values() if i.remark.blocking or run.order.routing.high_stakes]
    if blocking:
        block(builder, "; ".join(blocking))
        return
    released = {key: item for key, item in run.remarks.items() if item.rounds >= MAX_FEEDBACK_ROUNDS}
    for key, item in released.items():
        builder.risk(f"feedback-{key}", item.remark.statement, severity=item.remark.severity)
    if released:
        builder.emit(events.FeedbackSettled(tuple(released)))
    if builder.run.remarks:
        builder.transition(Trigger.NON_BLOCKING_FEEDBACK)
    else:
        builder.transition(
            Trigger.PASS_OR_FEEDBACK_LIMIT_REACHED, "feedback limit reached" if released else "no remark is open"
        )


def block(builder: DecisionBuilder, reason: str) -> None:
    """Have the plan changed; blocked too often, it is for a person."""
    if builder.run.blocking_rounds >= MAX_BLOCKING_ROUNDS:
        builder.transition(Trigger.FEEDBACK_ESCALATED, reason)
    else:
        builder.transition(Trigger.BLOCKING_FEEDBACK, reason)


def _debate_refused(builder: DecisionBuilder, command: CallRefused) -> None:  # noqa: ARG001
    go_by_verdict(builder, DebateVerdict.ESCALATE)


CALLS = (PeerCall(Call.RESOLVE_DEBATE, ResolveDebate, debate_resolved, _debate_refused),)
