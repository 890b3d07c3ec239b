"""CLAIM_WAVE: the workflow service hands out the next tasks."""

from dataclasses import dataclass

from pointsman.services.orchestrator.domain import events
from pointsman.services.orchestrator.domain.calls.peer_call import PeerCall
from pointsman.services.orchestrator.domain.calls.pipelines import advance_wave, start_pipeline
from pointsman.services.orchestrator.domain.calls.workflow_status import why_it_waits
from pointsman.services.orchestrator.domain.commands import CallRefused
from pointsman.services.orchestrator.domain.decision import DecisionBuilder
from pointsman.services.orchestrator.domain.enums import Call, Capability, Severity, Trigger, WorkflowStatus

WITH_REVIEW = "quick-dev"
WITHOUT_REVIEW = "fix"


@dataclass(frozen=True, slots=True)
class ClaimWave:
    """Hand out the next tasks."""

    call_id: str
    epic_id: str
    limit: int


@dataclass(frozen=True, slots=True)
class NextWave:
    """The tasks of the next wave."""

    call_id: str
    task_ids: tuple[str, ...]
    status: WorkflowStatus
    detail: str = ""


def wave_claimed(builder: DecisionBuilder, answer: NextWave) -> None:
    """Start one pipeline per claimed task; nothing claimed means to wait, or that all is done."""
    builder.emit(events.WorkflowSeen(answer.call_id, answer.status, answer.detail))
    if not answer.task_ids and answer.status is not WorkflowStatus.COMPLETED:
        builder.transition(Trigger.RESOURCE_BUSY, why_it_waits(answer.status, answer.detail))
        return
    builder.emit(events.WaveClaimed("", answer.task_ids))
    template = _template(builder) if answer.task_ids else ""
    for task_id in answer.task_ids:
        start_pipeline(builder, task_id, template)
    advance_wave(builder)


def _template(builder: DecisionBuilder) -> str:
    if builder.run.order.template:
        return builder.run.order.template
    if builder.is_present(Capability.REVIEW):
        return WITH_REVIEW
    builder.risk("no-reviewer", "no reviewer was there: the stage REVIEW was left out", severity=Severity.MEDIUM)
    return WITHOUT_REVIEW


def _wave_not_claimed(builder: DecisionBuilder, command: CallRefused) -> None:
    builder.transition(Trigger.DISPATCH_FAILED, command.reason, is_replan=True)


CALLS = (PeerCall(Call.CLAIM_WAVE, ClaimWave, wave_claimed, _wave_not_claimed),)
