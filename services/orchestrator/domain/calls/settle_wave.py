"""SETTLE_WAVE: the workflow service records which tasks are accepted, and which are to be done again."""

from dataclasses import dataclass

from pointsman._shared.excerpt import excerpt
from pointsman.services.orchestrator.domain import events
from pointsman.services.orchestrator.domain.calls.peer_call import PeerCall, fail_run
from pointsman.services.orchestrator.domain.commands import CallRefused
from pointsman.services.orchestrator.domain.decision import DecisionBuilder
from pointsman.services.orchestrator.domain.enums import Call, Trigger, WorkflowStatus

PASSED = "PASS"
RETRY = "RETRY"
REPLAN = "REPLAN"
ESCALATE = "ESCALATE"


@dataclass(frozen=True, slots=True)
class Rejection:
    """A task that is to be done again."""

    task_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class SettleWave:
    """Record a wave."""

    call_id: str
    epic_id: str
    completed: tuple[str, ...]
    rejected: tuple[Rejection, ...]


def settle(builder: DecisionBuilder, verdict: str) -> None:
    """Record the wave in the workflow: accepted tasks, and those to be done again."""
    builder.emit(events.WaveConcluded("", verdict))
    run = builder.run
    completed = tuple(key for key, task in run.wave_tasks.items() if task.judgement.accepted)
    rejected = tuple(
        Rejection(key, excerpt(task.judgement.reason or "rejected", 2000))
        for key, task in run.wave_tasks.items()
        if verdict == RETRY and not task.judgement.accepted
    )
    if completed or rejected:
        builder.call(Call.SETTLE_WAVE, lambda call: SettleWave(call, run.epic_id, completed, rejected))
    else:
        _leave(builder)


def wave_settled(builder: DecisionBuilder, answer: events.WorkflowSeen) -> None:
    """The wave is recorded."""
    builder.emit(answer)
    _leave(builder)


def wave_refused(builder: DecisionBuilder, command: CallRefused) -> None:
    """A retry that the workflow does not allow, as of an epic that was resumed, is for a person; anything else is fatal."""
    if builder.run.wave_verdict == RETRY:
        settle(builder, ESCALATE)
    else:
        fail_run(builder, command)


def _leave(builder: DecisionBuilder) -> None:
    """Go where the wave's verdict says."""
    run = builder.run
    reasons = "; ".join(task.judgement.reason for task in run.wave_tasks.values() if task.judgement.reason)
    if run.wave_verdict == PASSED:
        builder.transition(Trigger.PASS if run.workflow_status is WorkflowStatus.COMPLETED else Trigger.NEXT_WAVE)
    elif run.wave_verdict == RETRY:
        builder.transition(Trigger.REJECT_OR_RETRY, reasons)
    else:
        if run.wave_verdict == ESCALATE:
            builder.emit(events.ConfidenceSet(0.0))
        builder.transition(Trigger.REQUIREMENT_CHANGED_OR_BLOCKED, reasons, is_replan=True)


CALLS = (PeerCall(Call.SETTLE_WAVE, SettleWave, wave_settled, wave_refused),)
