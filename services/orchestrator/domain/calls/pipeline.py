"""Calls to the pipeline service."""

from pointsman.services.orchestrator.domain import commands, execution, peer_requests
from pointsman.services.orchestrator.domain.calls.peer_call import PeerCall
from pointsman.services.orchestrator.domain.commands import CallRefused
from pointsman.services.orchestrator.domain.decision import DecisionBuilder
from pointsman.services.orchestrator.domain.enums import PIPELINE_ENDED, Call, Move


def _not_started(builder: DecisionBuilder, command: CallRefused) -> None:
    builder.move(Move.DISPATCH_FAILED, command.reason, is_replan=True)


def _stage_refused(builder: DecisionBuilder, command: CallRefused) -> None:  # noqa: ARG001
    """The pipeline went another way: read its state."""
    for task_id, task in builder.run.wave_tasks.items():
        if task.pipeline_status not in PIPELINE_ENDED:
            execution.see_pipeline(builder, task_id)


def _pipeline_missing(builder: DecisionBuilder, command: CallRefused) -> None:  # noqa: ARG001
    for task_id, task in builder.run.wave_tasks.items():
        if task.pipeline_status not in PIPELINE_ENDED:
            execution.pipeline_gone(builder, task_id)


PIPELINE_CALLS = (
    PeerCall(
        Call.START_PIPELINE,
        peer_requests.StartPipeline,
        commands.PipelineTold,
        execution.pipeline_told,
        _not_started,
    ),
    PeerCall(
        Call.COMPLETE_STAGE,
        peer_requests.CompleteStage,
        commands.PipelineTold,
        execution.pipeline_told,
        _stage_refused,
    ),
    PeerCall(
        Call.TELL_PIPELINE,
        peer_requests.TellPipeline,
        commands.PipelineTold,
        execution.pipeline_told,
        execution.answer_refused,
    ),
    PeerCall(
        Call.SEE_PIPELINE,
        peer_requests.Pipeline,
        commands.PipelineTold,
        execution.pipeline_told,
        _pipeline_missing,
    ),
    PeerCall(Call.CANCEL_PIPELINE, peer_requests.Pipeline),
)
