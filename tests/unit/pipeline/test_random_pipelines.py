"""Random DAGs and random agents: the engine and a naive model of it always agree, and nothing runs for ever."""

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pointsman.services.chassis.core.errors import Refusal
from pointsman.services.pipeline.domain import commands
from pointsman.services.pipeline.domain.dag import Graph
from pointsman.services.pipeline.domain.enums import Disposition, EventName, PipelineStatus, Policy, StageStatus
from pointsman.services.pipeline.domain.machine import MACHINE
from pointsman.services.pipeline.domain.model import ACTIVE, ESCALATED, READY
from tests.unit.pipeline.driver import Drive, said, start
from tests.unit.pipeline.model import WORDS, Model, graphs


class RandomPipelines(RuleBasedStateMachine):
    """One pipeline, driven at random, with the model beside it."""

    drive: Drive
    model: Model

    @initialize(graph=graphs(), policy=st.sampled_from(Policy))
    def begin(self, graph: Graph, policy: Policy) -> None:
        self.drive = start(graph=graph, auto=False, policy=policy)
        self.model = Model(graph, strict=policy is Policy.STRICT)

    def _pick(self, data: st.DataObject, *words: StageStatus) -> str | None:
        names = [node.stage for node in self.drive.pipeline.graph.nodes if self.drive.status(node.stage) in words]
        return data.draw(st.sampled_from(names)) if names else None

    @precondition(lambda self: self.drive.pipeline.head.status is PipelineStatus.ACTIVE)
    @rule(data=st.data())
    def delegate(self, data: st.DataObject) -> None:
        returns = self.drive.pipeline.head.returns
        names = returns or self.drive.pipeline.marked(READY)
        if names:
            stage = data.draw(st.sampled_from(list(names)))
            self.drive.delegate(stage)
            self.model.take(stage)

    @precondition(lambda self: self.drive.pipeline.is_live())
    @rule(data=st.data(), passed=st.booleans(), severity=st.sampled_from(["LOW", "HIGH", None]))
    def complete(self, data: st.DataObject, passed: bool, severity: str | None) -> None:
        stage = self._pick(data, StageStatus.ACTIVE)
        if stage is not None:
            words = said("PASS") if passed else said("FAIL", "DEV", severity=severity)
            self.drive.complete(stage, words, auto=None)
            self.model.finish(stage, passed=passed)

    @precondition(lambda self: self.drive.pipeline.is_live())
    @rule(data=st.data(), garbled=st.booleans())
    def complete_beyond_belief(self, data: st.DataObject, garbled: bool) -> None:
        stage = self._pick(data, StageStatus.ACTIVE)
        if stage is not None:
            self.drive.complete(stage, said("never heard of it") if garbled else (), auto=None)
            (self.model.garble if garbled else self.model.mumble)(stage)

    @precondition(lambda self: self.drive.pipeline.is_live())
    @rule(data=st.data())
    def complete_too_late(self, data: st.DataObject) -> None:
        stage = self._pick(data, StageStatus.READY, StageStatus.PASSED, StageStatus.FAILED, StageStatus.PENDING)
        if stage is not None and self.drive.pipeline.stages[stage].delegations:
            assert self.drive.complete(stage).disposition is Disposition.IGNORED

    @precondition(lambda self: self.drive.pipeline.is_live())
    @rule(data=st.data())
    def skip(self, data: st.DataObject) -> None:
        stage = self._pick(data, StageStatus.READY, StageStatus.ACTIVE, StageStatus.ESCALATED)
        if stage is not None:
            self.drive.do(commands.SkipStage("p", stage))
            self.model.skip(stage)

    @precondition(lambda self: self.drive.pipeline.is_live())
    @rule(data=st.data())
    def restart(self, data: st.DataObject) -> None:
        words = (
            StageStatus.PASSED,
            StageStatus.FAILED,
            StageStatus.ACTIVE,
            StageStatus.ESCALATED,
            StageStatus.TIMED_OUT,
        )
        stage = self._pick(data, *words)
        if stage is not None:
            self.drive.do(commands.RestartFrom("p", stage))
            self.model.restart(stage)

    def _due(self) -> list[str]:
        barriers = self.drive.pipeline.head.barriers
        return sorted(group for group, barrier in barriers.items() if barrier.due_at is not None)

    @precondition(lambda self: self.drive.pipeline.is_live() and bool(self._due()))
    @rule(data=st.data())
    def time_out(self, data: st.DataObject) -> None:
        group = data.draw(st.sampled_from(self._due()))
        self.drive.fire(f"barrier:{group}")
        self.model.time_out(next(node.stage for node in self.model.nodes.values() if node.barrier == group))

    @precondition(lambda self: not self.drive.pipeline.is_live())
    @rule()
    def ask_after_the_end(self) -> None:
        with pytest.raises(Refusal):
            self.drive.do(commands.CancelPipeline("p"))

    @invariant()
    def agrees_with_the_model(self) -> None:
        pipeline = self.drive.pipeline
        assert {stage: WORDS[self.drive.status(stage)] for stage in pipeline.graph.index} == self.model.stages
        assert {stage: known.retries for stage, known in pipeline.stages.items()} == self.model.retries
        assert {stage: known.crashes for stage, known in pipeline.stages.items()} == self.model.crashes
        ends = {PipelineStatus.COMPLETED: "well", PipelineStatus.COMPLETED_WITH_FAILURES: "with failures"}
        assert ends.get(pipeline.head.status, "") == self.model.ended
        assert self.drive.count(EventName.BARRIER_RESOLVED) == self.model.resolved

    @invariant()
    def is_the_fold_of_its_events_and_waits_for_nothing(self) -> None:
        state: Any = None
        for event in self.drive.events:
            state = MACHINE.apply(state, event, self.drive.now)
        pipeline = self.drive.pipeline
        assert state.head.marks == pipeline.head.marks
        for stage, known in pipeline.stages.items():
            assert known.retries <= pipeline.graph.node(stage).max_retries
        waiting = {timer for timer in self.drive.timers if timer.startswith("barrier:")}
        assert waiting == {f"barrier:{group}" for group in self._due()}
        if pipeline.is_live():
            assert pipeline.marked(READY) or pipeline.marked(ACTIVE) or pipeline.marked(ESCALATED)
        assert (pipeline.head.status is PipelineStatus.ESCALATED) == (
            pipeline.is_live() and ESCALATED in pipeline.head.marks
        )


TestRandomPipelines = RandomPipelines.TestCase
TestRandomPipelines.settings = settings(
    max_examples=100, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
