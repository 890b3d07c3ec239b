"""Completes stages: the pipeline advances, returns, repeats, waits at a barrier, ends or escalates."""

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache

from msgspec.structs import replace

from pointsman.services.chassis.core.errors import Reason, Refusal, state_forbids
from pointsman.services.chassis.core.machine import Decision
from pointsman.services.pipeline.domain import commands, events, reflection
from pointsman.services.pipeline.domain.dag import Graph
from pointsman.services.pipeline.domain.decision import (
    DecisionBuilder,
    delegate_ready,
    delegations_of,
    finish_if_over,
    newly_ready,
    open_barriers,
    require_live,
)
from pointsman.services.pipeline.domain.delegation import context_handle, split_delegation_id
from pointsman.services.pipeline.domain.enums import (
    KIND,
    QUALITY,
    SEVERITY_RANK,
    Correction,
    Disposition,
    EventName,
    PipelineStatus,
    Policy,
    RouteSource,
    RouteTarget,
    Severity,
    StopReason,
    Verdict,
)
from pointsman.services.pipeline.domain.model import ACTIVE, FAILED, PENDING, TIMED_OUT, Pipeline, Report, Return
from pointsman.services.pipeline.domain.retries import StopDecision, should_stop
from pointsman.services.pipeline.domain.route import (
    EffectiveRoute,
    Position,
    ReportedRoute,
    RouteWarning,
    choose_route,
    enforce,
    repair,
)
from pointsman.services.pipeline.domain.views import risks

CRASH_LIMIT = 3
CACHED_ROUTES = 256


def complete_stage(state: Pipeline, command: commands.CompleteStage, now: datetime) -> Decision:
    """Completes a delegation: chooses, repairs and enforces its route, then follows it."""
    stage, number = check_delegation(state, command, may_be_late=True)
    builder = DecisionBuilder(state, command.entity_id, now)
    if state.mark(stage) != ACTIVE or state.stages[stage].delegations != number:
        return _ignore(builder, stage, number, command)
    if command.report:
        put_report(builder, stage, number, command.report)
    completion = StageCompletion(builder, stage, number)
    disposition, route = completion.process(command)
    delegate_ready(builder, completion.ready, command.auto, command.nonce_seed)
    answer = commands.CompletionAnswer(
        disposition=disposition,
        status=builder.state.head.status,
        route=route,
        next=delegations_of(builder.state, completion.ready),
        stop=completion.stop,
        risks=risks(builder.state) if disposition is Disposition.ENDED else (),
        barrier_due_at=builder.state.next_barrier_due,
    )
    return builder.decision(answer)


def check_delegation(
    state: Pipeline, command: commands.CompleteStage | commands.PutContext, *, may_be_late: bool = False
) -> tuple[str, int]:
    """The stage and number of a delegation; refuses one that does not exist or is another agent's.

    A late result is accepted also after the end of the pipeline, if the barrier of its stage timed out.
    """
    pipeline_id, delegation_id = command.entity_id, command.delegation_id
    stage, number = split_delegation_id(delegation_id)
    is_known = stage in state.graph
    if not (may_be_late and is_known and state.mark(stage) == TIMED_OUT):
        require_live(state, pipeline_id)
    if not is_known or not 1 <= number <= state.stages[stage].delegations:
        status = state.status_of(stage) if is_known else "UNKNOWN"
        text = f"'{delegation_id[:100]}' was never delegated; delegate the stage first"
        raise state_forbids("stage", stage[:64], status, ("ACTIVE",), text)
    current = state.stages[stage]
    if number == current.delegations and command.agent_id != current.agent_id:
        metadata = {"kind": KIND, "id": pipeline_id, "delegation_id": delegation_id}
        raise Refusal(Reason.NOT_YOUR_DELEGATION, f"{delegation_id} was given to another agent", metadata=metadata)
    return stage, number


def put_report(builder: DecisionBuilder, stage: str, number: int, report: commands.NewReport) -> None:
    """Attaches a report to the stage."""
    builder.emit(EventName.CONTEXT_PUT, events.ContextPut(stage, number, report.sha256, report.size_bytes))


def _ignore(builder: DecisionBuilder, stage: str, number: int, command: commands.CompleteStage) -> Decision:
    chosen = choose_route(command.reported)
    verdict = (chosen.verdict or "")[:16] if chosen else ""
    builder.emit(EventName.COMPLETION_IGNORED, events.CompletionIgnored(stage, number, command.agent_id, verdict))
    found = () if builder.state.is_live() else risks(builder.state)
    due_at = builder.state.next_barrier_due
    status = builder.state.head.status
    return builder.decision(commands.CompletionAnswer(Disposition.IGNORED, status, risks=found, barrier_due_at=due_at))


def _position(graph: Graph, stage: str, retries: int) -> Position:
    """The properties of a stage that `enforce` needs."""
    node = graph.node(stage)
    return Position(
        kind=node.kind,
        has_next=bool(node.next),
        returns_to=graph.return_target(stage),
        on_fail=node.on_fail,
        has_dev=graph.has_dev,
        barrier=node.barrier,
        retries=retries,
        max_retries=node.max_retries,
    )


@lru_cache(maxsize=CACHED_ROUTES)
def effective_route(reported: ReportedRoute, graph: Graph, stage: str, retries: int) -> EffectiveRoute:
    """The effective route of a reported one; cached, since agents report the same few routes."""
    position = _position(graph, stage, retries)
    if reported.source is RouteSource.TYPED and reported.route is None and position.barrier is not None:
        reported = replace(reported, route=RouteTarget.BARRIER)
    return enforce(repair(reported, position.kind), position)


class StageCompletion:
    """Follows the route of one completed stage, or of the barrier that the stage belongs to."""

    def __init__(self, builder: DecisionBuilder, stage: str, number: int = 0) -> None:
        self._builder = builder
        self._stage = stage
        self._number = number
        self.stop: StopDecision | None = None
        self.ready: tuple[str, ...] = ()

    def process(self, command: commands.CompleteStage) -> tuple[Disposition, EffectiveRoute]:
        """Emits what follows from the result; returns the disposition and the effective route."""
        state = self._builder.state
        details = state.stages[self._stage]
        chosen = choose_route(command.reported, details.nonce if state.head.settings.require_nonce else None)
        if chosen is None:
            return self._without_route(tried_again=command.tried_again)
        route = effective_route(chosen, state.graph, self._stage, details.retries)
        return self._by_route(route), route

    def _by_route(self, route: EffectiveRoute) -> Disposition:
        if route.warnings:
            self._builder.emit(EventName.ROUTE_CORRECTED, events.RouteCorrected(self._stage, route.warnings))
        if route.route is RouteTarget.ABORT:
            return self._abort(route)
        if self._must_escalate(route):
            return self._escalate(route)
        if route.route is RouteTarget.BARRIER:
            return self._arrive(route)
        return self._return(route) if route.route is RouteTarget.DEV else self._advance(route)

    def _must_escalate(self, route: EffectiveRoute) -> bool:
        """Under the strict policy a QUALITY stage never advances without a proven verdict."""
        unproven = route.degraded or (route.verdict is Verdict.FAIL and route.route is RouteTarget.NEXT)
        return unproven and self.is_strict(self._stage)

    def is_strict(self, stage: str) -> bool:
        """Whether the stage may not advance without a proven verdict."""
        state = self._builder.state
        return state.head.settings.policy is Policy.STRICT and state.graph.node(stage).kind in QUALITY

    def _without_route(self, *, tried_again: bool) -> tuple[Disposition, EffectiveRoute]:
        """Handles an answer without a route: an IMPL stage advances, a QUALITY stage is repeated up to the crash limit."""
        builder, stage = self._builder, self._stage
        is_quality = builder.state.graph.node(stage).kind in QUALITY
        warning = RouteWarning(Correction.NO_ROUTE, "no route was found in the agent's answer")
        route = EffectiveRoute(Verdict.PASS, RouteTarget.NEXT, source=RouteSource.FALLBACK, warnings=(warning,))
        builder.emit(EventName.ROUTE_FALLBACK, events.RouteFallback(stage, self._number))
        if not is_quality:
            return self._finish_fallback(route)
        crashes = builder.state.stages[stage].crashes + 1
        if crashes < CRASH_LIMIT and not (tried_again and self.is_strict(stage)):
            builder.emit(EventName.STAGE_RETRY, events.StageRetry(stage, returned=None))
            self.ready = (stage,)
            return Disposition.REPEATED, route
        builder.emit(EventName.AGENT_CRASH, events.AgentCrash(stage, crashes))
        return self._finish_fallback(
            EffectiveRoute(
                Verdict.PASS, RouteTarget.NEXT, source=RouteSource.FALLBACK, degraded=True, warnings=(warning,)
            ).corrected(Correction.CRASH_LIMIT, f"{crashes} answers in a row had no route; taken as PASS, unproven")
        )

    def _finish_fallback(self, route: EffectiveRoute) -> tuple[Disposition, EffectiveRoute]:
        state = self._builder.state
        enforced = enforce(route, _position(state.graph, self._stage, state.stages[self._stage].retries))
        return self._by_route(enforced), enforced

    def _finished(self, route: EffectiveRoute, ready: tuple[str, ...] = ()) -> None:
        name = EventName.STAGE_COMPLETED if route.verdict is Verdict.PASS else EventName.STAGE_FAILED
        self._builder.emit(name, events.StageFinished(self._stage, self._number, route, ready))
        # Read after the event, whose round counts in the history.
        details, node = self._builder.state.stages[self._stage], self._builder.state.graph.node(self._stage)
        self.stop = should_stop(route.verdict, details.retries, node.max_retries, details.history)
        if self.stop.reason is StopReason.CONVERGENCE_STALL_OBSERVED:
            severity = route.severity or Severity.MEDIUM
            self._builder.emit(EventName.CONVERGENCE_STALL, events.ConvergenceStall(self._stage, severity))

    def _abort(self, route: EffectiveRoute) -> Disposition:
        self._finished(route)
        self._builder.end(EventName.PIPELINE_ABORTED, events.PipelineEnded(route.hint, self._stage))
        return Disposition.ENDED

    def _escalate(self, route: EffectiveRoute) -> Disposition:
        cause = Correction.CRASH_LIMIT if route.source is RouteSource.FALLBACK else route.warnings[-1].code
        self._finished(route)
        if route.was(Correction.RETRY_EXHAUSTED):
            self._builder.emit(EventName.RETRY_EXHAUSTED, events.RetryExhausted((self._stage,)))
        self._builder.emit(EventName.STAGE_ESCALATED, events.StageEscalated(self._stage, cause))
        return Disposition.ESCALATED

    def _advance(self, route: EffectiveRoute) -> Disposition:
        """Makes the next stages ready, after a PASS or forced on after a FAIL."""
        state = self._builder.state
        ready = newly_ready(state, state.graph.node(self._stage).next, (self._stage,))
        self._finished(route, ready)
        if route.was(Correction.RETRY_EXHAUSTED):
            self._builder.emit(EventName.RETRY_EXHAUSTED, events.RetryExhausted((self._stage,), forced_on=True))
        return self._continue_with(ready)

    def _continue_with(self, ready: tuple[str, ...]) -> Disposition:
        self.ready = ready
        open_barriers(self._builder, ready)
        return Disposition.ENDED if finish_if_over(self._builder) else Disposition.ADVANCED

    def _return(self, route: EffectiveRoute) -> Disposition:
        self._finished(route)
        target = self._builder.state.graph.return_target(self._stage)
        assert target is not None
        self._go_back(target, (self._stage,))
        return Disposition.REPEATED if target == self._stage else Disposition.RETURNED

    def _go_back(self, target: str, failed: Sequence[str]) -> None:
        """Writes reflections, resets every stage after the target, and makes the target ready."""
        builder = self._builder
        for stage in failed:
            reflect(builder, stage)
        counted = tuple(stage for stage in failed if _retries_left(builder.state, stage))
        rounds = [builder.state.stages[stage].retries + (stage in counted) for stage in failed]
        returned = Return(
            max(rounds), tuple(failed), _worst_hint(builder.state, failed), _reports(builder.state, failed)
        )
        affected = builder.state.graph.after(target) | {target}
        reset = tuple(
            node.stage for node in builder.state.graph.nodes if _was_reached(builder.state, node.stage, affected)
        )
        builder.emit(EventName.STAGE_RETRY, events.StageRetry(target, returned, reset, counted))
        self.ready = (*self.ready, target)
        open_barriers(builder, (target,))

    def _arrive(self, route: EffectiveRoute) -> Disposition:
        self._finished(route)
        group = self._builder.state.graph.node(self._stage).barrier
        assert group is not None
        return self.check_barrier(group)

    def check_barrier(self, group: str) -> Disposition:
        """Waits for the other members, or resolves the barrier by the worst of all results."""
        builder = self._builder
        members = builder.state.graph.groups[group]
        arrived = [stage for stage in members if builder.state.finished(stage)]
        if len(arrived) < len(members):
            waiting = events.BarrierWaiting(group, self._stage, len(arrived), len(members))
            builder.emit(EventName.BARRIER_WAITING, waiting)
            return Disposition.ESCALATED if builder.state.head.status is PipelineStatus.ESCALATED else Disposition.WAIT
        failed = tuple(stage for stage in members if builder.state.mark(stage) == FAILED)
        if not failed:
            return self._resolve(group, ())
        if any(can_return(builder.state, stage) for stage in failed):
            return self._merge_and_return(group, failed)
        strict = [stage for stage in failed if self.is_strict(stage)]
        builder.emit(EventName.RETRY_EXHAUSTED, events.RetryExhausted(failed, forced_on=not strict))
        for stage in strict:
            builder.emit(EventName.STAGE_ESCALATED, events.StageEscalated(stage, Correction.RETRY_EXHAUSTED))
        return Disposition.ESCALATED if strict else self._resolve(group, failed)

    def _resolve(self, group: str, failed: tuple[str, ...]) -> Disposition:
        """Resolves the barrier and makes the stages after it ready."""
        state = self._builder.state
        members = state.graph.groups[group]
        ready = newly_ready(state, state.graph.node(members[0]).next, members)
        self._builder.emit(EventName.BARRIER_RESOLVED, self._resolved(group, failed, ready))
        return self._continue_with(ready)

    def _merge_and_return(self, group: str, failed: tuple[str, ...]) -> Disposition:
        self._builder.emit(EventName.BARRIER_RESOLVED, self._resolved(group, failed, ()))
        targets: dict[str, list[str]] = {}
        for stage in failed:
            target = self._builder.state.graph.return_target(stage)
            if target is not None and (target != stage or _retries_left(self._builder.state, stage)):
                targets.setdefault(target, []).append(stage)
        for target, sent_back in targets.items():
            self._go_back(target, sent_back)
        return Disposition.RETURNED

    def _resolved(self, group: str, failed: tuple[str, ...], ready: tuple[str, ...]) -> events.BarrierResolved:
        state = self._builder.state
        number = state.head.barriers[group].number
        if not failed:
            return events.BarrierResolved(group, number, Verdict.PASS, ready=ready)
        return events.BarrierResolved(group, number, Verdict.FAIL, _worst(state, failed), failed, ready)


def reflect(builder: DecisionBuilder, stage: str) -> None:
    """Writes the reflection on the failed round of a stage."""
    details = builder.state.stages[stage]
    handle = context_handle(stage) if builder.state.has_report(stage) else ""
    number = details.history[-1].round if details.history else 1
    names = (details.context_file, handle)
    text = reflection.section(stage, number, details.severity or Severity.MEDIUM, details.hint, names)
    builder.emit(EventName.REFLECTION_WRITTEN, events.ReflectionWritten(stage, number, text))


def _was_reached(state: Pipeline, stage: str, affected: frozenset[str]) -> bool:
    return stage in affected and state.mark(stage) != PENDING


def _retries_left(state: Pipeline, stage: str) -> bool:
    return state.stages[stage].retries < state.graph.node(stage).max_retries


def can_return(state: Pipeline, stage: str) -> bool:
    """Whether a failed stage may still return the pipeline to an earlier stage."""
    return _retries_left(state, stage) and state.graph.return_target(stage) is not None


def _severity(state: Pipeline, stage: str) -> Severity:
    return state.stages[stage].severity or Severity.MEDIUM


def _worst(state: Pipeline, stages: Sequence[str]) -> Severity:
    return max((_severity(state, stage) for stage in stages), key=SEVERITY_RANK.__getitem__)


def _worst_hint(state: Pipeline, stages: Sequence[str]) -> str:
    worst = max(stages, key=lambda stage: SEVERITY_RANK[_severity(state, stage)])
    return state.stages[worst].hint


def _reports(state: Pipeline, stages: Sequence[str]) -> tuple[Report, ...]:
    return tuple(Report(stage, state.stages[stage].report) for stage in stages if state.has_report(stage))
