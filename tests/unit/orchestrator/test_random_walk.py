"""A model test: whatever is said to a run, in whatever order and however often, it keeps its word."""

from collections import Counter
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from pointsman.services.chassis.core.codec import to_json
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.orchestrator.domain import commands
from pointsman.services.orchestrator.domain.enums import (
    TAKES,
    Capability,
    DebateVerdict,
    EvidenceKind,
    PipelineStatus,
    Purpose,
    Reply,
    Resume,
    State,
    Trigger,
    Verdict,
    Wait,
    WorkflowStatus,
)
from pointsman.services.orchestrator.domain.events import TaskJudged, Transitioned
from pointsman.services.orchestrator.domain.machine import MACHINE
from pointsman.services.orchestrator.domain.model import Budget, Candidate, OpenQuestion, Remark
from pointsman.services.orchestrator.domain.run import MAX_REJECTIONS, RunState
from pointsman.services.orchestrator.domain.table import TABLE
from pointsman.services.orchestrator.domain.waiting import waiting_for
from tests.unit.orchestrator.driver import START, Driver, plan, work

CAPABILITIES = st.frozensets(st.sampled_from(Capability))
EXPECTED = {Reason.STATE_FORBIDS, Reason.LEASE_LOST, Reason.INVALID_FIELD, Reason.ALREADY_EXISTS, Reason.LOST_RACE}

SELDOM = 4
"""Inside the ranges that it is drawn from: their ends are drawn far too often for what ends a run."""
PROOFS = st.sampled_from([EvidenceKind.COMMAND, EvidenceKind.NOTE, EvidenceKind.DIFF])
HEAD_STARTS = (0, 4, 8, 12, 16, 20, 24)
"""How far all goes well before anything can happen: walks begin all along the way, not only at its beginning."""


class RandomWalk(RuleBasedStateMachine):
    """One run, and everybody who may say something to it, well-behaved or not."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver()
        self.said: list[Any] = []
        self.ended: State | None = None
        self.folded: RunState | None = None
        self.checked = 0
        self.accepted = 0

    @initialize(
        present=CAPABILITIES,
        confidence=st.sampled_from([0.5, 0.6, 0.9]),
        resume=st.sampled_from(Resume),
        flags=st.tuples(st.booleans(), st.booleans(), st.booleans(), st.booleans(), st.booleans()),
        ahead=st.tuples(st.sampled_from(HEAD_STARTS), PROOFS),
    )
    def submit(
        self,
        present: frozenset[Capability],
        confidence: float,
        resume: Resume,
        flags: tuple[bool, ...],
        ahead: tuple[int, EvidenceKind],
    ) -> None:
        debate, rival, repository, candidates, contest = flags
        self.driver = Driver(
            present,
            confidence=confidence,
            resume=resume,
            debate=debate,
            rival_run_id="run_0" if rival else "",
            repository_id="r" if repository else "",
            best_of=2 if contest else 0,
        )
        if candidates:
            self.driver.candidates = (Candidate("epic_9", "old", planned=True),)
        self.driver.with_budget(assignments=40, transitions=600).submit()
        self.all_goes_well(*ahead)

    def say(self, command: Any) -> Any:
        self.said.append(command)
        try:
            return self.driver.send(command)
        except Refusal as refusal:
            if refusal.reason not in EXPECTED:
                raise
            return None

    @rule(present=CAPABILITIES)
    def agents_come_and_go(self, present: frozenset[Capability]) -> None:
        self.driver.present = present

    @precondition(lambda self: self.driver.effects)
    @rule(
        refuse=st.integers(0, 9),
        status=st.sampled_from([WorkflowStatus.RUNNING] * 3 + [WorkflowStatus.PAUSED, WorkflowStatus.BLOCKED]),
        verdict=st.sampled_from(DebateVerdict),
    )
    def a_peer_answers(self, refuse: int, status: WorkflowStatus, verdict: DebateVerdict) -> None:
        if self.driver.workflow is not WorkflowStatus.COMPLETED:
            self.driver.workflow = status
        self.driver.verdicts = [verdict]
        effect = self.driver.effects.pop(0)
        if refuse == SELDOM:
            self.say(commands.CallRefused("run_1", effect.data.call_id, "refused"))
        else:
            self.driver._deliver(effect)

    @precondition(lambda self: self.driver.open())
    @rule(data=st.data(), quality=st.sampled_from(["good", "good", "good", "bad", "lost", "odd", "fails"]))
    def an_agent_answers(self, data: st.DataObject, quality: str) -> None:
        assignment = data.draw(st.sampled_from(self.driver.open()))
        key = assignment.assignment_id
        agent_id = "coder" if assignment.capability is Capability.CODE else "agent"
        epoch = self.driver.lease(key, agent_id)
        if quality == "lost":
            self.say(commands.ExpireAssignment("run_1", key, epoch))
        elif quality == "fails":
            self.say(commands.FailAssignment("run_1", key, epoch, agent_id, "cannot"))
        else:
            result = self.result(assignment, quality)
            self.say(commands.CompleteAssignment("run_1", key, epoch, agent_id, result))

    def result(self, assignment: Any, quality: str) -> Any:
        if quality == "odd":
            return commands.MalformedResult("x", "odd")
        good = self.driver.good_result(assignment)
        bad: dict[Purpose, Any] = {
            Purpose.PLAN: commands.PlanResult(plan("T1", "T2", confidence=0.3)),
            Purpose.DEBATE: commands.DebateResult((Remark("k", "no"),)),
            Purpose.RESEARCH: commands.ResearchResult(0.1, "{}"),
            Purpose.REVIEW: commands.ReviewResult(Verdict.RETRY),
            Purpose.STAGE: commands.StageResult("PASS", work=work(assignment.task_id, "coder", EvidenceKind.NOTE)),
        }
        return bad.get(assignment.purpose, good) if quality == "bad" else good

    @precondition(lambda self: self.driver.run.question)
    @rule(data=st.data(), confidence=st.sampled_from([None, 0.1, 0.9]))
    def a_person_answers(self, data: st.DataObject, confidence: float | None) -> None:
        question = self.driver.run.question
        assert question is not None
        reply = data.draw(st.sampled_from([*TAKES[question.kind], Reply.RAISE, Reply.ACCEPT]))
        task_id = data.draw(st.sampled_from(["", *self.driver.run.tasks]))
        self.say(self.answer(question, reply, confidence, task_id))

    def answer(self, question: OpenQuestion, reply: Reply, confidence: float | None, task_id: str = "") -> Any:
        budget = Budget(10_000, 0, 0, 0, 0, 0.0)
        return commands.Answer(
            "run_1", question.question_id, reply, "so", confidence, budget, task_id=task_id, stage="REVIEW"
        )

    @rule(steps=st.integers(4, 24), proof=PROOFS)
    def a_stretch_goes_well(self, steps: int, proof: EvidenceKind) -> None:
        self.all_goes_well(steps, proof)

    def all_goes_well(self, steps: int, proof: EvidenceKind) -> None:
        """A stretch of the way, so that what is only there to be tried is tried."""
        for _ in range(steps):
            self.next_step(proof)

    def next_step(self, proof: EvidenceKind) -> None:
        """The run gets what it waits for, as it would wish; only the coder's evidence may be of any kind."""
        driver = self.driver
        question, waiting = driver.run.question, driver.open()
        if driver.effects:
            driver.verdicts = []
            if driver.workflow is not WorkflowStatus.COMPLETED:
                driver.workflow = WorkflowStatus.RUNNING
            driver._deliver(driver.effects.pop(0))
        elif question is not None:
            self.say(self.answer(question, TAKES[question.kind][0], 0.9))
        elif waiting:
            agent_id = "coder" if waiting[0].capability is Capability.CODE else "agent"
            key, result = waiting[0].assignment_id, driver.good_result(waiting[0])
            if isinstance(result, commands.StageResult) and result.work:
                result = commands.StageResult("PASS", work=work(waiting[0].task_id, "coder", proof))
            self.say(commands.CompleteAssignment("run_1", key, driver.lease(key, agent_id), agent_id, result))

    @precondition(lambda self: self.driver.timers)
    @rule(data=st.data())
    def a_timer_fires(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.driver.timers)))
        self.driver.now = max(self.driver.now, self.driver.timers.pop(name))
        self.say(commands.TimerFired("run_1", name))

    @rule(chance=st.integers(0, 14))
    def the_requirement_changes(self, chance: int) -> None:
        if chance == SELDOM:
            self.say(commands.ChangeRequirement("run_1", "more"))

    @rule(chance=st.integers(0, 30))
    def somebody_cancels(self, chance: int) -> None:
        if chance == SELDOM:
            self.say(commands.Cancel("run_1", "enough"))

    @precondition(lambda self: self.said)
    @rule(data=st.data())
    def something_is_said_again(self, data: st.DataObject) -> None:
        self.say(data.draw(st.sampled_from(self.said)))

    def teardown(self) -> None:
        """At the end of each walk, the run equals the fold of its journal."""
        if self.driver.state is None:
            return
        state = None
        for event in self.driver.journal:
            state = MACHINE.apply(state, event, self.driver.run.created_at)
        assert state is not None
        assert state.run.status is self.driver.run.status
        assert set(state.run.assignments) == set(self.driver.run.assignments)
        assert to_json(state.run.tasks) == to_json(self.driver.run.tasks)

    @invariant()
    def each_move_stands_in_the_table_and_none_follows_the_end(self) -> None:
        new, self.checked = self.driver.journal[self.checked :], len(self.driver.journal)
        for event in new:
            if isinstance(event.data, Transitioned):
                targets = {str(row.target) for row in TABLE.rows_for(State(event.source), Trigger(event.name))}
                assert event.target in targets
            if isinstance(event.data, TaskJudged) and event.data.accepted:
                self.check_acceptance(event.data)
            self.folded = MACHINE.apply(self.folded, event, START)
        if self.driver.state is None:
            return
        if self.ended is not None:
            assert self.driver.run.status is self.ended
        elif self.driver.run.ended:
            self.ended = self.driver.run.status
            assert self.driver.journal[-1].target == self.ended

    def check_acceptance(self, said: TaskJudged) -> None:
        """Work is accepted in its wave only, if it was finished, and on evidence: only a person takes it without claims."""
        assert self.folded is not None
        assert said.task_id in self.folded.run.wave
        task = self.folded.run.tasks[said.task_id]
        assert task.work is not None
        assert task.pipeline_status in (PipelineStatus.COMPLETED, PipelineStatus.COMPLETED_WITH_FAILURES)
        assert task.work.claims or said.judge == "person"
        for claim in task.work.claims:
            assert set(claim.evidence) - {EvidenceKind.NOTE}
        self.accepted += 1

    @invariant()
    def a_live_run_waits_for_somebody_and_has_a_timer(self) -> None:
        if self.driver.state is None or self.driver.run.ended:
            return
        waiting = waiting_for(self.driver.run)
        assert waiting is not None
        named = waiting.kind in (Wait.PERSON, Wait.BUDGET, Wait.PAUSE, Wait.DEPENDENCY)
        assert named or self.driver.timers or self.driver.effects or self.driver.run.assignments

    @invariant()
    def retries_are_bounded(self) -> None:
        if self.driver.state is None:
            return
        for task in self.driver.run.tasks.values():
            assert len(task.rejections) <= MAX_REJECTIONS + 1

    @invariant()
    def limits_hold(self) -> None:
        if self.driver.state is not None:
            assert len(self.driver.run.assignments) <= self.driver.run.budget.fan_out
            offers = sum(event.name == "assigned" for event in self.driver.journal)
            assert offers <= self.driver.run.budget.assignments


WALKS = settings(max_examples=40, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck))
RandomWalk.TestCase.settings = WALKS
TestRandomWalk = RandomWalk.TestCase


def test_a_good_share_of_the_walks_gets_to_review_to_acceptance_and_to_the_end() -> None:
    reached: Counter[str] = Counter()

    class CountedWalk(RandomWalk):
        """Walks whose steps are the same each time, and how far they got."""

        def teardown(self) -> None:
            """Note how far it got."""
            super().teardown()
            states = {event.target for event in self.driver.journal}
            reached.update(["walk", *states & {State.REVIEW_ACCEPT, State.COMPLETE}, *["accepted"][: self.accepted]])

    run_state_machine_as_test(CountedWalk, settings=settings(WALKS, derandomize=True, database=None))
    for place in (State.REVIEW_ACCEPT, "accepted", State.COMPLETE):
        assert reached[place] >= 0.2 * reached["walk"], reached
