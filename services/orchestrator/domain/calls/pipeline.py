"""Calls to the pipeline service."""

from pointsman.services.orchestrator.domain import commands, execution, peer_requests
from pointsman.services.orchestrator.domain.calls.peer_call import PeerCall
from pointsman.services.orchestrator.domain.commands import CallRefused
from pointsman.services.orchestrator.domain.decision import DecisionBuilder
from pointsman.services.orchestrator.domain.enums import PIPELINE_ENDED, Call, Trigger


def _not_started(builder: DecisionBuilder, command: CallRefused) -> None:
    builder.transition(Trigger.DISPATCH_FAILED, command.reason, is_replan=True)


def _stage_refused(builder: DecisionBuilder, command: CallRefused) -> None:  # noqa: ARG001
    """The pipeline went another way: read its state."""
    for task_id, task in builder.run.wave_tasks.items():
        if task.pipeline_status not in PIPELINE_ENDED:
            execution.get_pipeline(builder, task_id)


def _pipeline_missing(builder: DecisionBuilder, command: CallRefused) -> None:  # noqa: ARG001
    for task_id, task in builder.run.wave_tasks.items():
        if task.pipeline_status not in PIPELINE_ENDED:
            execution.pipeline_gone(builder, task_id)


PIPELINE_CALLS = (
    PeerCall(
        Call.START_PIPELINE,
        peer_requests.StartPipeline,
        commands.PipelineAdvanced,
        execution.pipeline_advanced,
        _not_started,
    ),
    PeerCall(
        Call.COMPLETE_STAGE,
        peer_requests.CompleteStage,
        commands.PipelineAdvanced,
        execution.pipeline_advanced,
        _stage_refused,
    ),
    PeerCall(
        Call.FORWARD_STAGE_ANSWER,
        peer_requests.ForwardStageAnswer,
        commands.PipelineAdvanced,
        execution.pipeline_advanced,
        execution.answer_refused,
    ),
    PeerCall(
        Call.GET_PIPELINE,
        peer_requests.Pipeline,
        commands.PipelineAdvanced,
        execution.pipeline_advanced,
        _pipeline_missing,
    ),
    PeerCall(Call.CANCEL_PIPELINE, peer_requests.Pipeline),
)
