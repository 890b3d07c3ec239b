"""A decision in the making: each event is folded into a copy, so that the next step sees what the last one did."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pointsman.services.chassis.core.errors import Reason, Refusal, state_forbids
from pointsman.services.chassis.core.machine import CancelTimer, Decision, Event, SetTimer
from pointsman.services.pipeline.domain import events
from pointsman.services.pipeline.domain.apply import APPLY, apply_first
from pointsman.services.pipeline.domain.commands import AutoDelegate
from pointsman.services.pipeline.domain.delegation import Delegation, delegation_of
from pointsman.services.pipeline.domain.enums import KIND, LIVE, EventName, PipelineStatus
from pointsman.services.pipeline.domain.model import ACTIVE, PENDING, READY, Pipeline

CLEAN_UP_SECONDS = 3 * 24 * 3600.0
CLEAN_UP_TIMER = "clean-up"
NONCE_CHARACTERS = 16


@dataclass(frozen=True, slots=True)
class BarrierDue:
    """What a barrier's timer carries: which barrier it was set for."""

    group: str
    number: int


class DecisionBuilder:
    """What a command leads to, so far."""

    state: Pipeline
    """The pipeline with every event so far."""

    def __init__(self, state: Pipeline | None, pipeline_id: str, now: datetime) -> None:
        if state is not None:
            self.state = state.copy()
        self.pipeline_id = pipeline_id
        self.now = now
        self._events: list[Event] = []
        self._timers: dict[str, SetTimer | CancelTimer] = {}

    def begin(self, name: EventName, data: Any) -> None:
        """Add the first event of a pipeline."""
        self.state = apply_first(name, data, self.now)
        self._events.append(Event(name, "", self.state.head.status, data))

    def emit(self, name: EventName, data: Any) -> None:
        """Add an event and fold it."""
        head = self.state.head
        source, barriers = head.status, head.barriers
        APPLY[name](self.state, data, self.now)
        self._events.append(Event(name, source, head.status, data))
        if head.barriers is not barriers:
            for group in barriers.keys() - head.barriers.keys():
                self.forget_timer(barrier_timer(group))

    def set_timer(self, timer: SetTimer) -> None:
        """Wake the pipeline later."""
        self._timers[timer.name] = timer

    def end(self, name: EventName, data: events.PipelineEnded) -> None:
        """End the pipeline: its barriers and with them their timers are gone, but it will be cleaned up."""
        self.emit(name, data)
        self.clean_up_later()

    def clean_up_later(self) -> None:
        """Have what the pipeline leaves behind removed in a few days."""
        self.set_timer(SetTimer(CLEAN_UP_TIMER, self.now + timedelta(seconds=CLEAN_UP_SECONDS)))

    def forget_timer(self, name: str) -> None:
        """A timer is no longer needed."""
        self._timers[name] = CancelTimer(name)

    def decision(self, answer: Any) -> Decision:
        """All of it, with the answer and the pipeline as it is then."""
        return Decision(self._events, answer, timers=tuple(self._timers.values()), state=self.state)


def barrier_timer(group: str) -> str:
    """The name of a barrier's timer."""
    return f"barrier:{group}"


def require_live(state: Pipeline, pipeline_id: str, allowed: frozenset[PipelineStatus] = LIVE) -> None:
    """Refuse what an ended (or escalated) pipeline cannot do."""
    if state.head.status not in allowed:
        names = tuple(sorted(allowed))
        text = f"the pipeline is {state.head.status}; this needs {' or '.join(names)}"
        raise state_forbids(KIND, pipeline_id, state.head.status, names, text)


def require_stage(state: Pipeline, pipeline_id: str, stage: str) -> None:
    """Refuse a stage that the DAG does not have."""
    if stage not in state.graph:
        metadata = {"kind": "stage", "id": stage}
        raise Refusal(Reason.NOT_FOUND, f"no stage '{stage}' in pipeline '{pipeline_id}'", metadata=metadata)


def newly_ready(state: Pipeline, stages: Iterable[str], finishing: Iterable[str]) -> tuple[str, ...]:
    """Which of these stages may run once the others have finished."""
    done = set(finishing)
    return tuple(
        stage
        for stage in stages
        if state.mark(stage) == PENDING
        and all(dep in done or state.finished(dep) for dep in state.graph.node(stage).deps)
    )


def open_barriers(builder: DecisionBuilder, ready: Iterable[str]) -> None:
    """Create the barriers of stages that became ready, each with its timer."""
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
    """End the pipeline when no stage is left."""
    if builder.state.is_over():
        builder.end(EventName.PIPELINE_COMPLETED, events.PipelineEnded())
        return True
    return False


def delegate(builder: DecisionBuilder, stage: str, agent_id: str, nonce_seed: str) -> None:
    """Give a stage to an agent, with a nonce of its own."""
    number = builder.state.stages[stage].delegations + 1
    nonce = hashlib.sha256(f"{nonce_seed}\n{stage}\n{number}".encode()).hexdigest()[:NONCE_CHARACTERS]
    builder.emit(EventName.STAGE_DELEGATED, events.StageDelegated(stage, number, agent_id, nonce))


def delegate_ready(builder: DecisionBuilder, stages: Iterable[str], auto: AutoDelegate | None, nonce_seed: str) -> None:
    """Delegate stages that became ready, if the caller wants that and nothing speaks against it."""
    if auto is None or builder.state.head.status is not PipelineStatus.ACTIVE:
        return
    for stage in stages:
        returns = builder.state.head.returns
        if builder.state.mark(stage) == READY and (not returns or stage in returns):
            delegate(builder, stage, auto.agents.get(stage, auto.agent_id), nonce_seed)


def delegations_of(state: Pipeline, stages: Iterable[str]) -> tuple[Delegation, ...]:
    """Those of the stages that are delegated or wait to be, as agents get them."""
    return tuple(delegation_of(state, stage) for stage in stages if state.mark(stage) in {READY, ACTIVE})
