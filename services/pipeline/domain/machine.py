"""The machine of a pipeline: which function decides each command, and what the chassis runs."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from pointsman.services.chassis.core.errors import Reason, Refusal, not_found
from pointsman.services.chassis.core.machine import Decision, Machine
from pointsman.services.pipeline.domain import commands, lifecycle
from pointsman.services.pipeline.domain.apply import apply
from pointsman.services.pipeline.domain.completion import complete_stage
from pointsman.services.pipeline.domain.enums import KIND, PipelineStatus
from pointsman.services.pipeline.domain.events import EVENTS
from pointsman.services.pipeline.domain.model import Pipeline
from pointsman.services.pipeline.domain.transitions import ENDED

VERSION = 1

_DECISIONS: Mapping[type, Callable[[Pipeline, Any, datetime], Decision]] = {
    commands.DelegateStage: lifecycle.delegate_stage,
    commands.CompleteStage: complete_stage,
    commands.PutContext: lifecycle.put_context,
    commands.SkipStage: lifecycle.skip_stage,
    commands.RestartFrom: lifecycle.restart_from,
    commands.CancelPipeline: lifecycle.cancel_pipeline,
    commands.TimeOutBarrier: lifecycle.time_out_barrier,
    commands.CleanUp: lifecycle.clean_up,
}


def decide(state: Pipeline | None, command: Any, now: datetime) -> Decision:
    """The decision on a command, or a refusal."""
    if isinstance(command, commands.StartPipeline | commands.ImportPipeline):
        if state is not None:
            metadata = {"kind": KIND, "id": command.entity_id}
            raise Refusal(Reason.ALREADY_EXISTS, f"pipeline '{command.entity_id}' exists already", metadata=metadata)
        return (
            lifecycle.start_pipeline(command, now)
            if isinstance(command, commands.StartPipeline)
            else lifecycle.import_pipeline(command, now)
        )
    if state is None:
        raise not_found(KIND, command.entity_id)
    return _DECISIONS[type(command)](state, command, now)


MACHINE: Machine[Pipeline] = Machine(
    kind=KIND,
    version=VERSION,
    state_type=Pipeline,
    decide=decide,
    apply=apply,
    status=lambda pipeline: str(pipeline.head.status),
    run_id=lambda pipeline: pipeline.head.settings.run_id,
    events=EVENTS,
    answers=commands.ANSWERS,
    terminal=ENDED,
    failed=frozenset({PipelineStatus.ABORTED}),
)
