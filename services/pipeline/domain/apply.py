"""How each event changes a pipeline; nothing else changes one."""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from pointsman.services.chassis.core.machine import Event
from pointsman.services.pipeline.domain import events, reflection
from pointsman.services.pipeline.domain.dag import shared_graph
from pointsman.services.pipeline.domain.enums import LIVE, EventName, PipelineStatus, RouteSource, Severity, Verdict
from pointsman.services.pipeline.domain.model import (
    ACTIVE,
    DEGRADED,
    ESCALATED,
    FAILED,
    PASSED,
    PENDING,
    READY,
    SKIPPED,
    SKIPPED_AFTER_FAIL,
    TIMED_OUT,
    UNPROVEN,
    UNTOUCHED,
    Head,
    OpenBarrier,
    Pipeline,
)
from pointsman.services.pipeline.domain.retries import MAX_HISTORY, RetryRound


def apply(state: Pipeline | None, event: Event, at: datetime) -> Pipeline:
    """The pipeline after an event."""
    if state is None:
        return apply_first(event.name, event.data, at)
    APPLY[event.name](state, event.data, at)
    return state


def apply_first(name: str, data: Any, at: datetime) -> Pipeline:
    """The pipeline after its first event."""
    return _started(data, at) if name == EventName.PIPELINE_STARTED else _imported(data, at)


def _started(data: events.PipelineStarted, at: datetime) -> Pipeline:
    graph = shared_graph(data.nodes)
    count = len(data.nodes)
    head = Head(data.settings, graph.digest, marks=PENDING * count, reported="0" * count, created_at=at)
    pipeline = Pipeline(head, graph, dict.fromkeys(graph.index, UNTOUCHED))
    for stage in data.reflections.keys() | data.returned.keys():
        rounds, returned = data.reflections.get(stage, ()), data.returned.get(stage)
        pipeline.change_stage(stage, reflection=rounds, returned=returned)
    pipeline.set_marks(data.ready, READY)
    return pipeline


def _imported(data: events.PipelineImported, at: datetime) -> Pipeline:
    graph = shared_graph(data.nodes)
    numbers = [barrier.number for barrier in data.barriers.values()]
    head = Head(
        data.settings, graph.digest, data.marks, data.reported, at, data.status, dict(data.barriers),
        max(numbers, default=0), data.returns, None if data.status in LIVE else at,
    )  # fmt: skip
    return Pipeline(head, graph, dict(data.stages))


def _delegated(pipeline: Pipeline, data: events.StageDelegated, at: datetime) -> None:
    pipeline.change_stage(
        data.stage, delegations=data.number, agent_id=data.agent_id, nonce=data.nonce, delegated_at=at,
        report="", context_file="",
    )  # fmt: skip
    if pipeline.has_report(data.stage):
        pipeline.set_reported([data.stage], reported=False)
    pipeline.set_marks([data.stage], ACTIVE)
    _drop_returns(pipeline, (data.stage,))


def _completed(pipeline: Pipeline, data: events.StageFinished, _at: datetime) -> None:
    _record_route(pipeline, data, reflection=(), returned=None)
    pipeline.set_marks([data.stage], DEGRADED if data.route.degraded else PASSED)
    pipeline.set_marks(data.ready, READY)


def _failed(pipeline: Pipeline, data: events.StageFinished, at: datetime) -> None:
    history = pipeline.stages[data.stage].history
    severity = data.route.severity or Severity.MEDIUM
    last = history[-1].round if history else 0
    _record_route(pipeline, data, history=(*history, RetryRound(last + 1, severity, at))[-MAX_HISTORY:])
    pipeline.set_marks([data.stage], FAILED)
    pipeline.set_marks(data.ready, READY)


def _record_route(pipeline: Pipeline, data: events.StageFinished, **changes: object) -> None:
    route = data.route
    crashes = pipeline.stages[data.stage].crashes if route.source is RouteSource.FALLBACK else 0
    pipeline.change_stage(
        data.stage, verdict=route.verdict, severity=route.severity, hint=route.hint, context_file=route.context_file,
        crashes=crashes, **changes,
    )  # fmt: skip
    if route.context_file:
        pipeline.set_reported([data.stage], reported=True)


def _retry(pipeline: Pipeline, data: events.StageRetry, _at: datetime) -> None:
    for stage in data.counted:
        pipeline.change_stage(stage, retries=pipeline.stages[stage].retries + 1)
    _reset(pipeline, data.reset)
    pipeline.set_marks([data.stage], READY)
    if data.returned is None:
        pipeline.change_stage(data.stage, crashes=pipeline.stages[data.stage].crashes + 1)
        return
    pipeline.change_stage(data.stage, returned=data.returned)
    pipeline.change_head(returns=tuple(dict.fromkeys((*pipeline.head.returns, data.stage))))


def _reset(pipeline: Pipeline, stages: tuple[str, ...]) -> None:
    """Resets stages to pending, and removes their barriers and pending returns."""
    reset = set(stages)
    pipeline.set_marks(stages, PENDING)
    groups = {
        group: barrier for group, barrier in pipeline.head.barriers.items() if not _touches(pipeline, group, reset)
    }
    pipeline.change_head(barriers=groups)
    _drop_returns(pipeline, reset)


def _drop_returns(pipeline: Pipeline, stages: Collection[str]) -> None:
    if pipeline.head.returns:
        pipeline.head.returns = tuple(stage for stage in pipeline.head.returns if stage not in stages)


def _touches(pipeline: Pipeline, group: str, stages: set[str]) -> bool:
    return not stages.isdisjoint(pipeline.graph.groups[group])


def _skipped(pipeline: Pipeline, data: events.StageSkipped, _at: datetime) -> None:
    failed = pipeline.mark(data.stage) == ESCALATED and pipeline.stages[data.stage].verdict is Verdict.FAIL
    pipeline.change_stage(data.stage, returned=None)
    pipeline.set_marks([data.stage], SKIPPED_AFTER_FAIL if failed else SKIPPED)
    pipeline.set_marks(data.ready, READY)
    _drop_returns(pipeline, (data.stage,))


def _escalated(pipeline: Pipeline, data: events.StageEscalated, _at: datetime) -> None:
    pipeline.set_marks([data.stage], ESCALATED)


def _restarted(pipeline: Pipeline, data: events.StageRestarted, _at: datetime) -> None:
    _reset(pipeline, (data.stage, *data.reset))
    for stage in (data.stage, *data.reset):
        pipeline.change_stage(stage, retries=0, crashes=0, history=(), verdict=None, severity=None, returned=None)
    pipeline.set_marks([data.stage], READY)


def _reflected(pipeline: Pipeline, data: events.ReflectionWritten, _at: datetime) -> None:
    rounds = reflection.with_section(pipeline.stages[data.stage].reflection, data.section)
    pipeline.change_stage(data.stage, reflection=rounds)


def _context_put(pipeline: Pipeline, data: events.ContextPut, _at: datetime) -> None:
    pipeline.change_stage(data.stage, report=data.sha256)
    pipeline.set_reported([data.stage], reported=True)


def _barrier_created(pipeline: Pipeline, data: events.BarrierCreated, at: datetime) -> None:
    barriers = {**pipeline.head.barriers, data.group: OpenBarrier(data.number, at, data.due_at)}
    pipeline.change_head(barriers=barriers, barriers_created=data.number)


def _barrier_resolved(pipeline: Pipeline, data: events.BarrierResolved, _at: datetime) -> None:
    remaining = {group: barrier for group, barrier in pipeline.head.barriers.items() if group != data.group}
    pipeline.change_head(barriers=remaining)
    pipeline.set_marks(data.ready, READY)


def _barrier_timed_out(pipeline: Pipeline, data: events.BarrierTimedOut, _at: datetime) -> None:
    pipeline.set_marks(data.absent, TIMED_OUT)
    barrier = replace(pipeline.head.barriers[data.group], due_at=None)
    pipeline.change_head(barriers={**pipeline.head.barriers, data.group: barrier})
    _drop_returns(pipeline, data.returns)


def _crashed(pipeline: Pipeline, data: events.AgentCrash, _at: datetime) -> None:
    pipeline.change_stage(data.stage, crashes=data.crashes)


def _ended(status: PipelineStatus) -> Callable[[Pipeline, Any, datetime], None]:
    def end(pipeline: Pipeline, _data: events.PipelineEnded, at: datetime) -> None:
        pipeline.change_head(status=status, ended_at=at, barriers={}, returns=())

    return end


def _completed_pipeline(pipeline: Pipeline, data: events.PipelineEnded, at: datetime) -> None:
    clean = UNPROVEN.isdisjoint(pipeline.head.marks)
    status = PipelineStatus.COMPLETED if clean else PipelineStatus.COMPLETED_WITH_FAILURES
    _ended(status)(pipeline, data, at)


def _cleaned(pipeline: Pipeline, _data: events.PipelineCleaned, _at: datetime) -> None:
    pipeline.change_head(cleaned=True, reported="0" * len(pipeline.head.marks))
    for stage in pipeline.stages:
        pipeline.change_stage(stage, reflection=(), report="", returned=None, hint="")


def _unchanged(_pipeline: Pipeline, _data: Any, _at: datetime) -> None:
    """The event is only recorded; the state does not change."""


APPLY: Mapping[str, Callable[[Pipeline, Any, datetime], None]] = {
    EventName.STAGE_DELEGATED: _delegated,
    EventName.STAGE_COMPLETED: _completed,
    EventName.STAGE_FAILED: _failed,
    EventName.STAGE_RETRY: _retry,
    EventName.STAGE_SKIPPED: _skipped,
    EventName.STAGE_ESCALATED: _escalated,
    EventName.STAGE_RESTARTED: _restarted,
    EventName.ROUTE_FALLBACK: _unchanged,
    EventName.ROUTE_CORRECTED: _unchanged,
    EventName.RETRY_EXHAUSTED: _unchanged,
    EventName.CONVERGENCE_STALL: _unchanged,
    EventName.REFLECTION_WRITTEN: _reflected,
    EventName.CONTEXT_PUT: _context_put,
    EventName.BARRIER_CREATED: _barrier_created,
    EventName.BARRIER_WAITING: _unchanged,
    EventName.BARRIER_RESOLVED: _barrier_resolved,
    EventName.BARRIER_TIMED_OUT: _barrier_timed_out,
    EventName.AGENT_CRASH: _crashed,
    EventName.COMPLETION_IGNORED: _unchanged,
    EventName.PIPELINE_COMPLETED: _completed_pipeline,
    EventName.PIPELINE_ABORTED: _ended(PipelineStatus.ABORTED),
    EventName.PIPELINE_CANCELLED: _ended(PipelineStatus.CANCELLED),
    EventName.PIPELINE_CLEANED: _cleaned,
}
