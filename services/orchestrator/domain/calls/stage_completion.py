"""COMPLETE_STAGE: the word of a stage goes to its pipeline, and why a stage failed into the journal."""

from dataclasses import dataclass

from pointsman._shared.excerpt import excerpt
from pointsman.services.orchestrator.domain import events
from pointsman.services.orchestrator.domain.commands import StageResult
from pointsman.services.orchestrator.domain.decision import DecisionBuilder
from pointsman.services.orchestrator.domain.enums import Call, Severity
from pointsman.services.orchestrator.domain.model import Assignment


@dataclass(frozen=True, slots=True)
class CompleteStage:
    """Hand a stage's answer to the pipeline; `lost` says that its agent is gone for good."""

    call_id: str
    pipeline_id: str
    task_id: str
    stage: str
    delegation_id: str
    agent_id: str
    verdict: str = ""
    route: str = ""
    severity: Severity | None = None
    hint: str = ""
    transcript: str = ""
    report: str = ""
    lost: bool = False
    nonce: str = ""


@dataclass(frozen=True, slots=True)
class StageFailure:
    """Which stage failed, under whom, and why in words."""

    stage: str
    agent_id: str
    reason: str
    again: bool = False
    """Its agents failed twice in the same way."""


def note_failure(builder: DecisionBuilder, task_id: str, failure: StageFailure) -> None:
    """Record why a stage failed."""
    said = excerpt(failure.reason, 2000)
    builder.emit(events.StageFailed(task_id, failure.stage, failure.agent_id, said, failure.again))


def complete_stage(
    builder: DecisionBuilder, assignment: Assignment, agent_id: str, result: StageResult, *, lost: bool
) -> None:
    """Hand a stage's word to the pipeline."""
    pipeline_id = builder.run.tasks[assignment.task_id].pipeline_id
    builder.call(
        Call.COMPLETE_STAGE,
        lambda call: CompleteStage(
            call,
            pipeline_id,
            assignment.task_id,
            assignment.stage,
            assignment.delegation_id,
            agent_id,
            result.verdict,
            result.route,
            result.severity,
            result.hint,
            result.transcript,
            result.report,
            lost,
            assignment.nonce,
        ),
        subject=assignment.task_id,
    )
