"""Builds a decision: each event is applied to a copy at once, so that the next rule sees its effect."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pointsman.services.chassis.core.errors import Reason, Refusal, state_forbids
from pointsman.services.chassis.core.machine import CancelTimer, Decision, Event, SetTimer
from pointsman.services.pipeline.domain import events
from pointsman.services.pipeline.domain.apply import APPLY, apply_first
from pointsman.services.pipeline.domain.commands import Answer, AutoDelegate
from pointsman.services.pipeline.domain.delegation import Delegation, delegation_of
from pointsman.services.pipeline.domain.enums import KIND, LIVE, EventName, PipelineStatus
from pointsman.services.pipeline.domain.model import ACTIVE, PENDING, READY, Pipeline

CLEAN_UP_SECONDS = 3 * 24 * 3600.0
CLEAN_UP_TIMER = "clean-up"
NONCE_CHARACTERS = 16


@dataclass(frozen=True, slots=True)
class BarrierDue:
    """The data of a barrier's timer: the barrier that it was set for."""

    group: str
    number: int


class DecisionBuilder:
    """Collects the events and timers of one command, and the state that they lead to."""

    state: Pipeline
    """The pipeline after the events so far."""

    def __init__(self, state: Pipeline | None, pipeline_id: str, now: datetime) -> None:
        if state is not None:
            self.state = state.copy()
        self.pipeline_id = pipeline_id
        self.now = now
        self._events: list[Event] = []
        self._timers: dict[str, SetTimer | CancelTimer] = {}

    def begin(self, name: EventName, data: Any) -> None:
        """Adds the first event of a pipeline."""
        self.state = apply_first(name, data, self.now)
        self._events.append(Event(name, "", self.state.head.status, data))

    def emit(self, name: EventName, data: Any) -> None:
        """Adds an event and applies it; the timers of barriers that it removes are cancelled."""
        head = self.state.head
        source, barriers = head.status, head.barriers
        APPLY[name](self.state, data, self.now)
        self._events.append(Event(name, source, head.status, data))
        # Events replace the dict of barriers whenever they change it, so identity shows a change.
        if head.barriers is not barriers:
            for group in barriers.keys() - head.barriers.keys():
                self.cancel_timer(barrier_timer(group))

    def set_timer(self, timer: SetTimer) -> None:
        """Sets a timer."""
        self._timers[timer.name] = timer

    def end(self, name: EventName, data: events.PipelineEnded) -> None:
        """Ends the pipeline and schedules its clean-up."""
        self.emit(name, data)
        self.schedule_clean_up()

    def schedule_clean_up(self) -> None:
        """Sets the timer that removes reports and reflections in a few days."""
        self.set_timer(SetTimer(CLEAN_UP_TIMER, self.now + timedelta(seconds=CLEAN_UP_SECONDS)))

    def cancel_timer(self, name: str) -> None:
        """Cancels a timer."""
        self._timers[name] = CancelTimer(name)

    def answer(self, ready: Iterable[str] = (), pipeline_id: str = "") -> Decision:
        """The decision with a plain answer: the status, and the delegations of stages that became ready."""
        status, delegations = self.state.head.status, delegations_of(self.state, ready)
        return self.decision(Answer(status, delegations, pipeline_id))

    def decision(self, answer: Any) -> Decision:
        """The decision: events, timers, answer and the new state."""
        return Decision(self._events, answer, timers=tuple(self._timers.values()), state=self.state)


def barrier_timer(group: str) -> str:
    """The name of a barrier's timer."""
    return f"barrier:{group}"


def require_live(state: Pipeline, pipeline_id: str, allowed: frozenset[PipelineStatus] = LIVE) -> None:
    """Refuses a command in a status that does not allow it."""
    if state.head.status not in allowed:
        names = tuple(sorted(allowed))
        text = f"the pipeline is {state.head.status}; this needs {' or '.join(names)}"
        raise state_forbids(KIND, pipeline_id, state.head.status, names, text)


def require_stage(state: Pipeline, pipeline_id: str, stage: str) -> None:
    """Refuses a stage that is not in the DAG."""
    if stage not in state.graph:
        metadata = {"kind": "stage", "id": stage}
        raise Refusal(Reason.NOT_FOUND, f"no stage '{stage}' in pipeline '{pipeline_id}'", metadata=metadata)


def newly_ready(state: Pipeline, stages: Iterable[str], finishing: Iterable[str]) -> tuple[str, ...]:
    """Those of the stages that become ready when the finishing ones end."""
    done = set(finishing)
    return tuple(
        stage
        for stage in stages
        if state.mark(stage) == PENDING
        and all(dep in done or state.finished(dep) for dep in state.graph.node(stage).deps)
    )


def open_barriers(builder: DecisionBuilder, ready: Iterable[str]) -> None:
    """Creates the barriers of stages that became ready, each with its timer."""
    for stage in ready:
        group = builder.state.graph.node(stage).barrier
        if group is None or group in builder.state.head.barriers:
            continue
        due_at = builder.now + timedelta(seconds=builder.state.head.settings.barrier_timeout_seconds)
        number = builder.state.head.barriers_created + 1
        members = builder.state.graph.groups[group]
        builder.emit(EventName.BARRIER_CREATED, events.BarrierCreated(group, number, members, due_at))
        builder.set_timer(SetTimer(barrier_timer(group), due_at, BarrierDue(group, number)))


def finish_if_over(builder: DecisionBuilder) -> bool:
    """Ends the pipeline when no stage is left."""
    if builder.state.is_over():
        builder.end(EventName.PIPELINE_COMPLETED, events.PipelineEnded())
        return True
    return False


def delegate(builder: DecisionBuilder, stage: str, agent_id: str, nonce_seed: str) -> None:
    """Delegates a stage to an agent, with a new nonce."""
    number = builder.state.stages[stage].delegations + 1
    nonce = hashlib.sha256(f"{nonce_seed}\n{stage}\n{number}".encode()).hexdigest()[:NONCE_CHARACTERS]
    builder.emit(EventName.STAGE_DELEGATED, events.StageDelegated(stage, number, agent_id, nonce))


def delegate_ready(builder: DecisionBuilder, stages: Iterable[str], auto: AutoDelegate | None, nonce_seed: str) -> None:
    """Delegates stages that became ready, if the caller asked for it; a pending return goes first."""
    if auto is None or builder.state.head.status is not PipelineStatus.ACTIVE:
        return
    for stage in stages:
        returns = builder.state.head.returns
        if builder.state.mark(stage) == READY and (not returns or stage in returns):
            delegate(builder, stage, auto.agents.get(stage, auto.agent_id), nonce_seed)


def delegations_of(state: Pipeline, stages: Iterable[str]) -> tuple[Delegation, ...]:
    """The delegations of those of the stages that are ready or active; none once the pipeline has ended."""
    if not state.is_live():
        return ()
    return tuple(delegation_of(state, stage) for stage in stages if state.mark(stage) in {READY, ACTIVE})
