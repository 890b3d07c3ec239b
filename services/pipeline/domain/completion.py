"""What the result of a stage leads to: on, back, once more, wait, stop, or a person's decision."""

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache

from msgspec.structs import replace

from pointsman.services.chassis.core.errors import Reason, Refusal, state_forbids
from pointsman.services.chassis.core.machine import Decision
from pointsman.services.pipeline.domain import commands as c
from pointsman.services.pipeline.domain import events as e
from pointsman.services.pipeline.domain import reflection
from pointsman.services.pipeline.domain.context import KIND, context_handle, split_delegation_id
from pointsman.services.pipeline.domain.dag import Graph
from pointsman.services.pipeline.domain.decision import (
    DecisionBuilder,
    delegate_ready,
    finish_if_over,
    newly_ready,
    open_barriers,
    require_live,
    views,
)
from pointsman.services.pipeline.domain.enums import (
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
    Verdict,
)
from pointsman.services.pipeline.domain.marker import Reported, choose
from pointsman.services.pipeline.domain.model import ACTIVE, FAILED, PENDING, TIMED_OUT, Pipeline, Report, Return, risks
from pointsman.services.pipeline.domain.retries import StopDecision, StopReason, should_stop
from pointsman.services.pipeline.domain.route import EffectiveRoute, Position, Warned, enforce, repair

CRASH_LIMIT = 3
REMEMBERED = 256


def complete_stage(state: Pipeline, command: c.CompleteStage, now: datetime) -> Decision:
    """Take a result: parse, repair, enforce, remember, and go where it leads."""
    stage, number = check_delegation(state, command, may_be_late=True)
    draft = DecisionBuilder(state, command.entity_id, now)
    if state.mark(stage) != ACTIVE or state.stages[stage].delegations != number:
        return _ignore(draft, stage, number, command)
    if command.report:
        put_report(draft, stage, number, command.report)
    settling = Settling(draft, stage, number)
    disposition, route = settling.settle(command)
    delegate_ready(draft, settling.ready, command.auto, command.nonce_seed)
    answer = c.CompletionAnswer(
        disposition=disposition,
        status=draft.state.head.status,
        route=route,
        next=views(draft.state, settling.ready) if draft.state.is_live() else (),
        stop=settling.stop,
        risks=risks(draft.state) if disposition is Disposition.ENDED else (),
        barrier_due_at=draft.state.next_barrier_due,
    )
    return draft.decision(answer)


def check_delegation(
    state: Pipeline, command: c.CompleteStage | c.PutContext, *, may_be_late: bool = False
) -> tuple[str, int]:
    """The stage and number of a delegation that was handed out, if it is the agent's own.

    One that may be late is taken also when the pipeline has ended because the stage's barrier has not waited for it.
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


def put_report(draft: DecisionBuilder, stage: str, number: int, report: c.NewReport) -> None:
    """Attach a report to the stage."""
    draft.emit(EventName.CONTEXT_PUT, e.ContextPut(stage, number, report.sha256, report.size_bytes))


def _ignore(draft: DecisionBuilder, stage: str, number: int, command: c.CompleteStage) -> Decision:
    said = choose(command.said)
    verdict = (said.verdict or "")[:16] if said else ""
    draft.emit(EventName.COMPLETION_IGNORED, e.CompletionIgnored(stage, number, command.agent_id, verdict))
    found = () if draft.state.is_live() else risks(draft.state)
    due_at = draft.state.next_barrier_due
    status = draft.state.head.status
    return draft.decision(c.CompletionAnswer(Disposition.IGNORED, status, risks=found, barrier_due_at=due_at))


def _position(graph: Graph, stage: str, retries: int) -> Position:
    """What the policy has to know of a stage."""
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


@lru_cache(maxsize=REMEMBERED)
def effective_route(said: Reported, graph: Graph, stage: str, retries: int) -> EffectiveRoute:
    """What counts of what was said by a stage. Agents say the same few things, so the answers are remembered."""
    position = _position(graph, stage, retries)
    if said.source is RouteSource.TYPED and said.route is None and position.barrier is not None:
        said = replace(said, route=RouteTarget.BARRIER)
    return enforce(repair(said, position.kind), position)


class Settling:
    """One stage's result on its way through the pipeline."""

    def __init__(self, draft: DecisionBuilder, stage: str, number: int = 0) -> None:
        self._draft = draft
        self._stage = stage
        self._number = number
        self.stop: StopDecision | None = None
        self.ready: tuple[str, ...] = ()

    def settle(self, command: c.CompleteStage) -> tuple[Disposition, EffectiveRoute]:
        """Where the result leads, and the route that counts."""
        state = self._draft.state
        known = state.stages[self._stage]
        said = choose(command.said, known.nonce if state.head.settings.require_nonce else None)
        if said is None:
            return self._without_route()
        route = effective_route(said, state.graph, self._stage, known.retries)
        return self._by_route(route), route

    def _by_route(self, route: EffectiveRoute) -> Disposition:
        if route.warnings:
            self._draft.emit(EventName.ROUTE_CORRECTED, e.RouteCorrected(self._stage, route.warnings))
        if route.route is RouteTarget.ABORT:
            return self._abort(route)
        if self._must_escalate(route):
            return self._escalate(route)
        if route.route is RouteTarget.BARRIER:
            return self._arrive(route)
        return self._return(route) if route.route is RouteTarget.DEV else self._advance(route)

    def _must_escalate(self, route: EffectiveRoute) -> bool:
        """Under the strict policy a QUALITY stage never goes on without a verdict that can be believed."""
        unbelieved = route.degraded or (route.verdict is Verdict.FAIL and route.route is RouteTarget.NEXT)
        return unbelieved and self.is_strict(self._stage)

    def is_strict(self, stage: str) -> bool:
        """Whether the stage needs a verdict that can be believed."""
        state = self._draft.state
        return state.head.settings.policy is Policy.STRICT and state.graph.node(stage).kind in QUALITY

    def _without_route(self) -> tuple[Disposition, EffectiveRoute]:
        """An agent that answered without a route: go on in an IMPL stage, ask again in a QUALITY stage."""
        draft, stage = self._draft, self._stage
        is_quality = draft.state.graph.node(stage).kind in QUALITY
        warning = Warned(Correction.NO_ROUTE, "no route was found in the agent's answer")
        route = EffectiveRoute(Verdict.PASS, RouteTarget.NEXT, source=RouteSource.FALLBACK, warnings=(warning,))
        draft.emit(EventName.ROUTE_FALLBACK, e.RouteFallback(stage, self._number))
        if not is_quality:
            return self._finish_fallback(route)
        crashes = draft.state.stages[stage].crashes + 1
        if crashes < CRASH_LIMIT:
            draft.emit(EventName.STAGE_RETRY, e.StageRetry(stage, returned=None))
            self.ready = (stage,)
            return Disposition.REPEATED, route
        draft.emit(EventName.AGENT_CRASH, e.AgentCrash(stage, crashes))
        return self._finish_fallback(
            EffectiveRoute(
                Verdict.PASS, RouteTarget.NEXT, source=RouteSource.FALLBACK, degraded=True, warnings=(warning,)
            ).corrected(Correction.CRASH_LIMIT, f"{crashes} answers in a row had no route; taken as PASS, unproven")
        )

    def _finish_fallback(self, route: EffectiveRoute) -> tuple[Disposition, EffectiveRoute]:
        state = self._draft.state
        enforced = enforce(route, _position(state.graph, self._stage, state.stages[self._stage].retries))
        return self._by_route(enforced), enforced

    def _finished(self, route: EffectiveRoute, ready: tuple[str, ...] = ()) -> None:
        name = EventName.STAGE_COMPLETED if route.verdict is Verdict.PASS else EventName.STAGE_FAILED
        self._draft.emit(name, e.StageFinished(self._stage, self._number, route, ready))
        known, node = self._draft.state.stages[self._stage], self._draft.state.graph.node(self._stage)
        self.stop = should_stop(route.verdict, known.retries, node.max_retries, known.history)
        if self.stop.reason is StopReason.CONVERGENCE_STALL_OBSERVED:
            severity = route.severity or Severity.MEDIUM
            self._draft.emit(EventName.CONVERGENCE_STALL, e.ConvergenceStall(self._stage, severity))

    def _abort(self, route: EffectiveRoute) -> Disposition:
        self._finished(route)
        self._draft.end(EventName.PIPELINE_ABORTED, e.PipelineEnded(route.hint, self._stage))
        return Disposition.ENDED

    def _escalate(self, route: EffectiveRoute) -> Disposition:
        cause = Correction.CRASH_LIMIT if route.source is RouteSource.FALLBACK else route.warnings[-1].code
        self._finished(route)
        if route.was(Correction.RETRY_EXHAUSTED):
            self._draft.emit(EventName.RETRY_EXHAUSTED, e.RetryExhausted((self._stage,)))
        self._draft.emit(EventName.STAGE_ESCALATED, e.StageEscalated(self._stage, cause))
        return Disposition.ESCALATED

    def _advance(self, route: EffectiveRoute) -> Disposition:
        """On to the next stages, with a PASS or forced with a FAIL."""
        state = self._draft.state
        ready = newly_ready(state, state.graph.node(self._stage).next, (self._stage,))
        self._finished(route, ready)
        if route.was(Correction.RETRY_EXHAUSTED):
            self._draft.emit(EventName.RETRY_EXHAUSTED, e.RetryExhausted((self._stage,), forced_on=True))
        return self._go_on(ready)

    def _go_on(self, ready: tuple[str, ...]) -> Disposition:
        self.ready = ready
        open_barriers(self._draft, ready)
        return Disposition.ENDED if finish_if_over(self._draft) else Disposition.ADVANCED

    def _return(self, route: EffectiveRoute) -> Disposition:
        self._finished(route)
        target = self._draft.state.graph.return_target(self._stage)
        assert target is not None
        self._go_back(target, (self._stage,))
        return Disposition.REPEATED if target == self._stage else Disposition.RETURNED

    def _go_back(self, target: str, failed: Sequence[str]) -> None:
        """Remember what failed, reset everything after the target, and make the target ready."""
        draft = self._draft
        for stage in failed:
            reflect(draft, stage)
        counted = tuple(stage for stage in failed if _retries_left(draft.state, stage))
        rounds = [draft.state.stages[stage].retries + (stage in counted) for stage in failed]
        returned = Return(max(rounds), tuple(failed), _worst_hint(draft.state, failed), _reports(draft.state, failed))
        affected = draft.state.graph.after(target) | {target}
        reset = tuple(node.stage for node in draft.state.graph.nodes if _was_reached(draft.state, node.stage, affected))
        draft.emit(EventName.STAGE_RETRY, e.StageRetry(target, returned, reset, counted))
        self.ready = (*self.ready, target)
        open_barriers(draft, (target,))

    def _arrive(self, route: EffectiveRoute) -> Disposition:
        self._finished(route)
        group = self._draft.state.graph.node(self._stage).barrier
        assert group is not None
        return self.settle_barrier(group)

    def settle_barrier(self, group: str) -> Disposition:
        """Wait for the others, or let the worst result of all decide, once."""
        draft = self._draft
        members = draft.state.graph.groups[group]
        arrived = [stage for stage in members if draft.state.finished(stage)]
        if len(arrived) < len(members):
            waiting = e.BarrierWaiting(group, self._stage, len(arrived), len(members))
            draft.emit(EventName.BARRIER_WAITING, waiting)
            return Disposition.ESCALATED if draft.state.head.status is PipelineStatus.ESCALATED else Disposition.WAIT
        failed = tuple(stage for stage in members if draft.state.mark(stage) == FAILED)
        if not failed:
            return self._resolve(group, ())
        if any(can_return(draft.state, stage) for stage in failed):
            return self._merge_and_return(group, failed)
        strict = [stage for stage in failed if self.is_strict(stage)]
        draft.emit(EventName.RETRY_EXHAUSTED, e.RetryExhausted(failed, forced_on=not strict))
        for stage in strict:
            draft.emit(EventName.STAGE_ESCALATED, e.StageEscalated(stage, Correction.RETRY_EXHAUSTED))
        return Disposition.ESCALATED if strict else self._resolve(group, failed)

    def _resolve(self, group: str, failed: tuple[str, ...]) -> Disposition:
        """On to the stages after the barrier."""
        state = self._draft.state
        members = state.graph.groups[group]
        ready = newly_ready(state, state.graph.node(members[0]).next, members)
        self._draft.emit(EventName.BARRIER_RESOLVED, self._resolved(group, failed, ready))
        return self._go_on(ready)

    def _merge_and_return(self, group: str, failed: tuple[str, ...]) -> Disposition:
        self._draft.emit(EventName.BARRIER_RESOLVED, self._resolved(group, failed, ()))
        targets: dict[str, list[str]] = {}
        for stage in failed:
            target = self._draft.state.graph.return_target(stage)
            if target is not None and (target != stage or _retries_left(self._draft.state, stage)):
                targets.setdefault(target, []).append(stage)
        for target, sent_back in targets.items():
            self._go_back(target, sent_back)
        return Disposition.RETURNED

    def _resolved(self, group: str, failed: tuple[str, ...], ready: tuple[str, ...]) -> e.BarrierResolved:
        state = self._draft.state
        number = state.head.barriers[group].number
        if not failed:
            return e.BarrierResolved(group, number, Verdict.PASS, ready=ready)
        return e.BarrierResolved(group, number, Verdict.FAIL, _worst(state, failed), failed, ready)


def reflect(draft: DecisionBuilder, stage: str) -> None:
    """Remember the failed round under the stage that failed."""
    known = draft.state.stages[stage]
    handle = context_handle(stage) if draft.state.has_report(stage) else ""
    number = known.history[-1].round if known.history else 1
    names = (known.context_file, handle)
    text = reflection.section(stage, number, known.severity or Severity.MEDIUM, known.hint, names)
    draft.emit(EventName.REFLECTION_WRITTEN, e.ReflectionWritten(stage, number, text))


def _was_reached(state: Pipeline, stage: str, affected: frozenset[str]) -> bool:
    return stage in affected and state.mark(stage) != PENDING


def _retries_left(state: Pipeline, stage: str) -> bool:
    return state.stages[stage].retries < state.graph.node(stage).max_retries


def can_return(state: Pipeline, stage: str) -> bool:
    """Whether a failed stage may still send the pipeline back."""
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
