"""Decisions about whole pipelines: start, import, delegate, skip, restart, cancel, time out, clean up."""

from datetime import datetime

from pointsman.services.chassis.core.errors import Reason, Refusal, state_forbids
from pointsman.services.chassis.core.machine import Decision, SetTimer
from pointsman.services.pipeline.domain import commands, events, reflection
from pointsman.services.pipeline.domain.completion import StageCompletion, can_return, check_delegation, put_report
from pointsman.services.pipeline.domain.decision import (
    CLEAN_UP_TIMER,
    BarrierDue,
    DecisionBuilder,
    barrier_timer,
    delegate,
    delegate_ready,
    finish_if_over,
    newly_ready,
    open_barriers,
    require_live,
    require_stage,
)
from pointsman.services.pipeline.domain.delegation import check_env
from pointsman.services.pipeline.domain.enums import KIND, LIVE, Correction, EventName, PipelineStatus
from pointsman.services.pipeline.domain.model import ACTIVE, ESCALATED, FAILED, PENDING, READY, Pipeline, Return


def start_pipeline(command: commands.StartPipeline, now: datetime) -> Decision:
    """Starts a pipeline: its first stages become ready, or are delegated at once."""
    check_env(command.settings.env)
    graph = command.graph
    ready = tuple(node.stage for node in graph.nodes if not node.deps)
    reflections = {
        stage: rounds
        for stage, text in command.reflections.items()
        if stage in graph and (rounds := reflection.rounds_of(text))
    }
    builder = DecisionBuilder(None, command.entity_id, now)
    returned = _readers(command, tuple(reflections))
    builder.begin(
        EventName.PIPELINE_STARTED,
        events.PipelineStarted(command.settings, graph.nodes, ready, reflections, returned),
    )
    open_barriers(builder, ready)
    finish_if_over(builder)
    delegate_ready(builder, ready, command.auto, command.nonce_seed)
    return builder.answer(ready, command.entity_id)


def _readers(command: commands.StartPipeline, reflected: tuple[str, ...]) -> dict[str, Return]:
    """The stages that read reflections of earlier attempts: those that a failure would have returned to."""
    readers: dict[str, Return] = {}
    for stage in reflected:
        target = command.graph.return_target(stage) or stage
        before = readers[target].failed if target in readers else ()
        readers[target] = Return(round=1, failed=(*before, stage))
    return readers


def import_pipeline(command: commands.ImportPipeline, now: datetime) -> Decision:
    """Continues a pipeline that was read from a state file."""
    builder = DecisionBuilder(None, command.entity_id, now)
    builder.begin(EventName.PIPELINE_IMPORTED, command.imported)
    for group, barrier in command.imported.barriers.items():
        if barrier.due_at is not None:
            builder.set_timer(SetTimer(barrier_timer(group), barrier.due_at, BarrierDue(group, barrier.number)))
    if not builder.state.is_live():
        builder.schedule_clean_up()
    return builder.answer(pipeline_id=command.entity_id)


def delegate_stage(state: Pipeline, command: commands.DelegateStage, now: datetime) -> Decision:
    """Delegates a ready stage to an agent; with `replace`, also one that another agent has."""
    require_live(state, command.entity_id, frozenset({PipelineStatus.ACTIVE}))
    require_stage(state, command.entity_id, command.stage)
    returns = state.head.returns
    if returns and command.stage not in returns:
        metadata = {"kind": KIND, "id": command.entity_id, "stages": ",".join(returns)}
        text = f"a failure went back to {', '.join(returns)}; delegate that first"
        raise Refusal(Reason.RETURN_PENDING, text, metadata=metadata)
    allowed = {READY, ACTIVE} if command.replace else {READY}
    if state.mark(command.stage) not in allowed:
        status = state.status_of(command.stage)
        text = f"stage '{command.stage}' is {status}; it can be delegated when it is READY"
        raise state_forbids("stage", command.stage, status, ("READY",), text)
    builder = DecisionBuilder(state, command.entity_id, now)
    delegate(builder, command.stage, command.agent_id, command.nonce_seed)
    return builder.answer((command.stage,))


def put_context(state: Pipeline, command: commands.PutContext, now: datetime) -> Decision:
    """Attaches a report to an active delegation."""
    stage, number = check_delegation(state, command)
    if state.mark(stage) != ACTIVE or state.stages[stage].delegations != number:
        status = state.status_of(stage)
        raise state_forbids("stage", stage, status, ("ACTIVE",), f"{command.delegation_id} is no longer active")
    builder = DecisionBuilder(state, command.entity_id, now)
    put_report(builder, stage, number, command.report)
    return builder.answer()


def skip_stage(state: Pipeline, command: commands.SkipStage, now: datetime) -> Decision:
    """Skips a stage that may run now, and makes the next stages ready."""
    require_live(state, command.entity_id)
    require_stage(state, command.entity_id, command.stage)
    if state.mark(command.stage) not in {READY, ACTIVE, ESCALATED}:
        status = state.status_of(command.stage)
        text = f"stage '{command.stage}' is {status}; only one that may run now can be skipped"
        raise state_forbids("stage", command.stage, status, ("READY", "ACTIVE", "ESCALATED"), text)
    node = state.graph.node(command.stage)
    builder = DecisionBuilder(state, command.entity_id, now)
    if node.barrier is not None:
        builder.emit(EventName.STAGE_SKIPPED, events.StageSkipped(command.stage, command.reason))
        completion = StageCompletion(builder, command.stage)
        completion.check_barrier(node.barrier)
        return builder.answer(completion.ready)
    ready = newly_ready(state, node.next, (command.stage,))
    builder.emit(EventName.STAGE_SKIPPED, events.StageSkipped(command.stage, command.reason, ready))
    open_barriers(builder, ready)
    finish_if_over(builder)
    return builder.answer(ready)


def restart_from(state: Pipeline, command: commands.RestartFrom, now: datetime) -> Decision:
    """Resets a stage and all stages after it, and makes the stage ready."""
    require_live(state, command.entity_id)
    require_stage(state, command.entity_id, command.stage)
    if state.mark(command.stage) == PENDING:
        text = f"stage '{command.stage}' has not been reached yet"
        raise state_forbids("stage", command.stage, state.status_of(command.stage), ("READY", "ACTIVE"), text)
    after = state.graph.after(command.stage)
    reset = tuple(node.stage for node in state.graph.nodes if node.stage in after and state.mark(node.stage) != PENDING)
    builder = DecisionBuilder(state, command.entity_id, now)
    builder.emit(EventName.STAGE_RESTARTED, events.StageRestarted(command.stage, reset, command.reason))
    open_barriers(builder, (command.stage,))
    return builder.answer((command.stage,))


def cancel_pipeline(state: Pipeline, command: commands.CancelPipeline, now: datetime) -> Decision:
    """Ends a pipeline as cancelled."""
    require_live(state, command.entity_id)
    builder = DecisionBuilder(state, command.entity_id, now)
    builder.end(EventName.PIPELINE_CANCELLED, events.PipelineEnded(command.reason))
    return builder.answer()


def time_out_barrier(state: Pipeline, command: commands.TimeOutBarrier, now: datetime) -> Decision:
    """Ends the wait of a barrier: absent stages time out, and the barrier is resolved without them."""
    barrier = state.head.barriers.get(command.group)
    if not state.is_live() or barrier is None or barrier.number != command.number or barrier.due_at is None:
        return Decision((), commands.Answer(state.head.status))
    builder = DecisionBuilder(state, command.entity_id, now)
    completion = StageCompletion(builder, "")
    members = state.graph.groups[command.group]
    will_return = any(state.mark(stage) == FAILED and can_return(state, stage) for stage in members)
    # A return resets the members anyway, so that a member which waits for a person need not hold it up.
    waited_for = {PENDING, READY, ACTIVE, ESCALATED} if will_return else {PENDING, READY, ACTIVE}
    absent = tuple(stage for stage in members if state.mark(stage) in waited_for)
    returns = tuple(stage for stage in absent if stage in state.head.returns)
    builder.emit(EventName.BARRIER_TIMED_OUT, events.BarrierTimedOut(command.group, command.number, absent, returns))
    for stage in absent:
        if not will_return and completion.is_strict(stage):
            builder.emit(EventName.STAGE_ESCALATED, events.StageEscalated(stage, Correction.BARRIER_TIMEOUT))
    if all(builder.state.finished(stage) for stage in members):
        completion.check_barrier(command.group)
    return builder.answer(completion.ready)


def clean_up(state: Pipeline, command: commands.CleanUp, now: datetime) -> Decision:
    """Removes reports and reflections of a pipeline that ended long enough ago."""
    ended_at = state.head.ended_at
    if state.head.status in LIVE or ended_at is None or state.head.cleaned:
        return Decision((), commands.Answer(state.head.status))
    if (now - ended_at).total_seconds() < command.older_than_seconds:
        return Decision((), commands.Answer(state.head.status))
    builder = DecisionBuilder(state, command.entity_id, now)
    builder.emit(EventName.PIPELINE_CLEANED, events.PipelineCleaned())
    builder.cancel_timer(CLEAN_UP_TIMER)
    return builder.answer()
