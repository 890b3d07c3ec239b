"""Drives a pipeline in memory, the way the chassis would: decide, fold, remember timers and events."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from pointsman.services.chassis.core.machine import CancelTimer, Event, SetTimer
from pointsman.services.pipeline.domain import commands
from pointsman.services.pipeline.domain.dag import Graph
from pointsman.services.pipeline.domain.decision import BarrierDue
from pointsman.services.pipeline.domain.delegation import Delegation
from pointsman.services.pipeline.domain.enums import EventName, Policy, RouteSource, StageStatus
from pointsman.services.pipeline.domain.machine import MACHINE
from pointsman.services.pipeline.domain.model import Pipeline, Settings, Stage
from pointsman.services.pipeline.domain.route import ReportedRoute
from pointsman.services.pipeline.domain.row_selection import stages_needed_by
from pointsman.services.pipeline.domain.templates import template_graph
from pointsman.services.pipeline.domain.transitions import TRANSITIONS

START = datetime(2026, 1, 1, tzinfo=UTC)


def said(verdict: str = "PASS", route: str | None = None, **more: Any) -> tuple[ReportedRoute, ...]:
    """A route in an agent's own words."""
    default = "NEXT" if verdict == "PASS" else "DEV"
    return (ReportedRoute(RouteSource.MARKER, verdict=verdict, route=route or default, **more),)


@dataclass
class Drive:
    """One pipeline and everything that happened to it."""

    state: Pipeline | None = None
    now: datetime = START
    events: list[Event] = field(default_factory=list)
    timers: dict[str, SetTimer] = field(default_factory=dict)

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline, which must have begun."""
        assert self.state is not None
        return self.state

    def do(self, command: Any) -> Any:
        """Decide with only the stages that the command claims to need, and fold what follows."""
        seen = self._slice(command)
        before = dict(self.state.stages) if self.state else {}
        decision = MACHINE.decide(seen, command, self.now)
        for event in decision.events:
            assert (event.source, event.target) in TRANSITIONS[EventName(event.name)], event
            self.state = MACHINE.apply(self.state, event, self.now)
        self.events += decision.events
        if decision.events:
            self._check_carried(decision.state, before)
        for timer in decision.timers:
            self.timers.pop(timer.name, None)
            if not isinstance(timer, CancelTimer):
                self.timers[timer.name] = timer
        return decision.answer

    def _check_carried(self, carried: Pipeline, before: dict[str, Stage]) -> None:
        """What the decision carries is the fold of its events, and what it did not see has not changed."""
        assert carried.head == self.pipeline.head
        assert carried.graph.nodes == self.pipeline.graph.nodes
        assert before | carried.stages == self.pipeline.stages

    def _slice(self, command: Any) -> Pipeline | None:
        if self.state is None:
            return None
        seen = stages_needed_by(self.state.graph, command)
        kept = {stage: known for stage, known in self.state.stages.items() if seen is None or stage in seen}
        return Pipeline(self.state.head, self.state.graph, kept)

    def names(self) -> list[str]:
        """The names of all events so far."""
        return [event.name for event in self.events]

    def count(self, name: EventName) -> int:
        """How often an event happened."""
        return self.names().count(name)

    def last(self, name: EventName) -> Any:
        """The payload of the last event of a name."""
        return next(event.data for event in reversed(self.events) if event.name == name)

    def status(self, stage: str) -> StageStatus:
        """Where a stage is."""
        return self.pipeline.status_of(stage)

    def delegate(self, stage: str, agent_id: str = "agent") -> Delegation:
        """Give a stage to an agent."""
        answer: commands.Answer = self.do(commands.DelegateStage("p", stage, agent_id, "seed"))
        return answer.next[0]

    def complete(
        self, stage: str, words: tuple[ReportedRoute, ...] | None = None, **more: Any
    ) -> commands.CompletionAnswer:
        """Complete the current delegation of a stage; every next stage is delegated unless told otherwise."""
        known = self.pipeline.stages[stage]
        more.setdefault("auto", commands.AutoDelegate("agent"))
        command = commands.CompleteStage(
            "p", f"{stage}#{known.delegations}", known.agent_id, "seed", said() if words is None else words, **more
        )
        answer: commands.CompletionAnswer = self.do(command)
        return answer

    def put(self, stage: str, sha256: str) -> None:
        """Attach a report to the current delegation of a stage."""
        known = self.pipeline.stages[stage]
        self.do(
            commands.PutContext("p", f"{stage}#{known.delegations}", known.agent_id, commands.NewReport(sha256, 10))
        )

    def fire(self, name: str) -> commands.Answer:
        """Let a timer come due."""
        timer = self.timers.pop(name)
        self.now = max(self.now, timer.due_at)
        assert isinstance(timer.data, BarrierDue)
        answer: commands.Answer = self.do(commands.TimeOutBarrier("p", timer.data.group, timer.data.number))
        return answer

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)


def start(template: str = "standard", *, graph: Graph | None = None, auto: bool = True, **settings: Any) -> Drive:
    """A pipeline that has just begun."""
    drive = Drive()
    reflections = settings.pop("reflections", {})
    values = Settings(template="" if graph else template, **settings)
    command = commands.StartPipeline(
        "p",
        values,
        graph or template_graph(template),
        "seed",
        reflections,
        commands.AutoDelegate("agent") if auto else None,
    )
    drive.do(command)
    return drive


def at_barrier(**settings: Any) -> Drive:
    """A quick-dev pipeline whose DEV has passed: REVIEW and TEST are active."""
    drive = start("quick-dev", **settings)
    drive.complete("DEV")
    return drive


STRICT = Policy.STRICT
