"""What each command does to a pipeline: events, or a refusal."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from pointsman.services.chassis.core.errors import Reason, Refusal, not_found, state_forbids
from pointsman.services.chassis.core.machine import Decision, SetTimer
from pointsman.services.pipeline.domain import commands as c
from pointsman.services.pipeline.domain import events as e
from pointsman.services.pipeline.domain import reflection
from pointsman.services.pipeline.domain.completion import (
    Settling,
    can_return,
    check_delegation,
    complete_stage,
    put_report,
)
from pointsman.services.pipeline.domain.context import KIND, check_env
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
    views,
)
from pointsman.services.pipeline.domain.enums import LIVE, Correction, EventName, PipelineStatus
from pointsman.services.pipeline.domain.model import ACTIVE, ESCALATED, FAILED, PENDING, READY, Pipeline, Return


def decide(state: Pipeline | None, command: Any, now: datetime) -> Decision:
    """What a command leads to."""
    if isinstance(command, c.StartPipeline | c.ImportPipeline):
        if state is not None:
            metadata = {"kind": KIND, "id": command.entity_id}
            raise Refusal(Reason.ALREADY_EXISTS, f"pipeline '{command.entity_id}' exists already", metadata=metadata)
        return _start(command, now) if isinstance(command, c.StartPipeline) else _import(command, now)
    if state is None:
        raise not_found(KIND, command.entity_id)
    return _DECISIONS[type(command)](state, command, now)


def _start(command: c.StartPipeline, now: datetime) -> Decision:
    check_env(command.settings.env)
    graph = command.graph
    ready = tuple(node.stage for node in graph.nodes if not node.deps)
    reflections = {
        stage: rounds
        for stage, text in command.reflections.items()
        if stage in graph and (rounds := reflection.rounds_of(text))
    }
    draft = DecisionBuilder(None, command.entity_id, now)
    returned = _readers(command, tuple(reflections))
    draft.begin(
        EventName.PIPELINE_STARTED,
        e.PipelineStarted(command.settings, graph.nodes, ready, reflections, returned),
    )
    open_barriers(draft, ready)
    finish_if_over(draft)
    delegate_ready(draft, ready, command.auto, command.nonce_seed)
    return draft.decision(c.Answer(draft.state.head.status, views(draft.state, ready), command.entity_id))


def _readers(command: c.StartPipeline, reflected: tuple[str, ...]) -> dict[str, Return]:
    """Who should read what earlier attempts taught: the stage that a failure would have gone back to."""
    readers: dict[str, Return] = {}
    for stage in reflected:
        target = command.graph.return_target(stage) or stage
        before = readers[target].failed if target in readers else ()
        readers[target] = Return(round=1, failed=(*before, stage))
    return readers


def _import(command: c.ImportPipeline, now: datetime) -> Decision:
    draft = DecisionBuilder(None, command.entity_id, now)
    draft.begin(EventName.PIPELINE_IMPORTED, command.imported)
    for group, barrier in command.imported.barriers.items():
        if barrier.due_at is not None:
            draft.set_timer(SetTimer(barrier_timer(group), barrier.due_at, BarrierDue(group, barrier.number)))
    if not draft.state.is_live():
        draft.clean_up_later()
    return draft.decision(c.Answer(draft.state.head.status, (), command.entity_id))


def _delegate(state: Pipeline, command: c.DelegateStage, now: datetime) -> Decision:
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
    draft = DecisionBuilder(state, command.entity_id, now)
    delegate(draft, command.stage, command.agent_id, command.nonce_seed)
    return draft.decision(c.Answer(draft.state.head.status, views(draft.state, (command.stage,))))


def _put_context(state: Pipeline, command: c.PutContext, now: datetime) -> Decision:
    stage, number = check_delegation(state, command)
    if state.mark(stage) != ACTIVE or state.stages[stage].delegations != number:
        status = state.status_of(stage)
        raise state_forbids("stage", stage, status, ("ACTIVE",), f"{command.delegation_id} is no longer active")
    draft = DecisionBuilder(state, command.entity_id, now)
    put_report(draft, stage, number, command.report)
    return draft.decision(c.Answer(draft.state.head.status))


def _skip(state: Pipeline, command: c.SkipStage, now: datetime) -> Decision:
    require_live(state, command.entity_id)
    require_stage(state, command.entity_id, command.stage)
    if state.mark(command.stage) not in {READY, ACTIVE, ESCALATED}:
        status = state.status_of(command.stage)
        text = f"stage '{command.stage}' is {status}; only one that may run now can be skipped"
        raise state_forbids("stage", command.stage, status, ("READY", "ACTIVE", "ESCALATED"), text)
    node = state.graph.node(command.stage)
    draft = DecisionBuilder(state, command.entity_id, now)
    if node.barrier is not None:
        draft.emit(EventName.STAGE_SKIPPED, e.StageSkipped(command.stage, command.reason))
        settling = Settling(draft, command.stage)
        settling.settle_barrier(node.barrier)
        return draft.decision(c.Answer(draft.state.head.status, _live_views(draft, settling.ready)))
    ready = newly_ready(state, node.next, (command.stage,))
    draft.emit(EventName.STAGE_SKIPPED, e.StageSkipped(command.stage, command.reason, ready))
    open_barriers(draft, ready)
    finish_if_over(draft)
    return draft.decision(c.Answer(draft.state.head.status, _live_views(draft, ready)))


def _live_views(draft: DecisionBuilder, ready: tuple[str, ...]) -> tuple[Any, ...]:
    return views(draft.state, ready) if draft.state.is_live() else ()


def _restart(state: Pipeline, command: c.RestartFrom, now: datetime) -> Decision:
    require_live(state, command.entity_id)
    require_stage(state, command.entity_id, command.stage)
    if state.mark(command.stage) == PENDING:
        text = f"stage '{command.stage}' has not been reached yet"
        raise state_forbids("stage", command.stage, state.status_of(command.stage), ("READY", "ACTIVE"), text)
    after = state.graph.after(command.stage)
    reset = tuple(node.stage for node in state.graph.nodes if node.stage in after and state.mark(node.stage) != PENDING)
    draft = DecisionBuilder(state, command.entity_id, now)
    draft.emit(EventName.STAGE_RESTARTED, e.StageRestarted(command.stage, reset, command.reason))
    open_barriers(draft, (command.stage,))
    return draft.decision(c.Answer(draft.state.head.status, views(draft.state, (command.stage,))))


def _cancel(state: Pipeline, command: c.CancelPipeline, now: datetime) -> Decision:
    require_live(state, command.entity_id)
    draft = DecisionBuilder(state, command.entity_id, now)
    draft.end(EventName.PIPELINE_CANCELLED, e.PipelineEnded(command.reason))
    return draft.decision(c.Answer(draft.state.head.status))


def _time_out(state: Pipeline, command: c.TimeOutBarrier, now: datetime) -> Decision:
    barrier = state.head.barriers.get(command.group)
    if not state.is_live() or barrier is None or barrier.number != command.number or barrier.due_at is None:
        return Decision((), c.Answer(state.head.status))
    draft = DecisionBuilder(state, command.entity_id, now)
    settling = Settling(draft, "")
    members = state.graph.groups[command.group]
    goes_back = any(state.mark(stage) == FAILED and can_return(state, stage) for stage in members)
    waited_for = {PENDING, READY, ACTIVE, ESCALATED} if goes_back else {PENDING, READY, ACTIVE}
    absent = tuple(stage for stage in members if state.mark(stage) in waited_for)
    returns = tuple(stage for stage in absent if stage in state.head.returns)
    draft.emit(EventName.BARRIER_TIMED_OUT, e.BarrierTimedOut(command.group, command.number, absent, returns))
    for stage in absent:
        if not goes_back and settling.is_strict(stage):
            draft.emit(EventName.STAGE_ESCALATED, e.StageEscalated(stage, Correction.BARRIER_TIMEOUT))
    if all(draft.state.finished(stage) for stage in members):
        settling.settle_barrier(command.group)
    return draft.decision(c.Answer(draft.state.head.status, _live_views(draft, settling.ready)))


def _clean_up(state: Pipeline, command: c.CleanUp, now: datetime) -> Decision:
    ended_at = state.head.ended_at
    if state.head.status in LIVE or ended_at is None or state.head.cleaned:
        return Decision((), c.Answer(state.head.status))
    if (now - ended_at).total_seconds() < command.older_than_seconds:
        return Decision((), c.Answer(state.head.status))
    draft = DecisionBuilder(state, command.entity_id, now)
    draft.emit(EventName.PIPELINE_CLEANED, e.PipelineCleaned())
    draft.forget_timer(CLEAN_UP_TIMER)
    return draft.decision(c.Answer(draft.state.head.status))


_DECISIONS: Mapping[type, Callable[[Pipeline, Any, datetime], Decision]] = {
    c.DelegateStage: _delegate,
    c.CompleteStage: complete_stage,
    c.PutContext: _put_context,
    c.SkipStage: _skip,
    c.RestartFrom: _restart,
    c.CancelPipeline: _cancel,
    c.TimeOutBarrier: _time_out,
    c.CleanUp: _clean_up,
}
