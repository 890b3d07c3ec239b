"""Everything that can be said to a run, and the runs that it is said to: in every state, in several conditions."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import product
from typing import Any

from pointsman.services.orchestrator.domain import commands, events, limit_events
from pointsman.services.orchestrator.domain.calls import CALLS
from pointsman.services.orchestrator.domain.calls.claim_wave import NextWave
from pointsman.services.orchestrator.domain.calls.peer_call import record_answer
from pointsman.services.orchestrator.domain.calls.pipelines import PipelineSeen
from pointsman.services.orchestrator.domain.calls.resolve_debate import DebateResolved
from pointsman.services.orchestrator.domain.enums import (
    TAKES,
    TERMINAL,
    Call,
    Capability,
    DebateVerdict,
    EvidenceKind,
    PipelineStatus,
    Purpose,
    Question,
    Reply,
    Resume,
    State,
    TaskStatus,
    Verdict,
    WorkflowStatus,
)
from pointsman.services.orchestrator.domain.model import (
    Assignment,
    Budget,
    Candidate,
    Delegation,
    Judgement,
    OpenQuestion,
    OpenRemark,
    Order,
    Remark,
    Routing,
    Slot,
    Task,
)
from pointsman.services.orchestrator.domain.run import MAX_ATTEMPTS, Lease, Run, RunState
from tests.unit.orchestrator.driver import ALL, NOBODY, START, outline, plan, work

RUN_ID, CALL_ID, WORK_ID, AGENT = "run_1", "c9", "run_1.a9", "agent"
TIME = Budget().wall_clock_seconds
IN_TIME, TOO_LATE = START + timedelta(seconds=TIME / 2), START + timedelta(seconds=TIME + 1)
LIMIT_NEWS = (
    limit_events.AccountPaused(WORK_ID, AGENT, "a/1", IN_TIME, "QUOTA", "used up"),
    limit_events.WorkTakenUp(WORK_ID, AGENT, "b/2", "a/1"),
)
LIVE = tuple(state for state in State if state not in TERMINAL)


@dataclass(frozen=True, slots=True)
class Saying:
    """A command, with what has to be open in the run for it to be heard."""

    command: Any
    call: Call | None = None
    question: Question | None = None
    purpose: Purpose | None = None

    def to(self, run: Run, present: frozenset[Capability]) -> RunState:
        """The run that waits for just this."""
        asked = OpenQuestion("q9", self.question, "?", ("T1",), START) if self.question else None
        offered = {WORK_ID: _assignment(self.purpose)} if self.purpose else {}
        calls = {CALL_ID: self.call} if self.call else {}
        heard = run.copy().change(question=asked, assignments=offered, calls=calls)
        return RunState(heard, {WORK_ID: Lease(AGENT, 1, MAX_ATTEMPTS, leased=True)}, present)


_CAPABILITIES: Mapping[Purpose, Capability] = {
    Purpose.PLAN: Capability.PLAN,
    Purpose.PATCH: Capability.PLAN,
    Purpose.DEBATE: Capability.DEBATE,
    Purpose.PLAN_ANSWER: Capability.PLAN,
    Purpose.RESEARCH: Capability.RESEARCH,
    Purpose.DESIGN: Capability.DESIGN,
    Purpose.STAGE: Capability.CODE,
    Purpose.REVIEW: Capability.REVIEW,
    Purpose.VERIFY: Capability.VERIFY,
}


def _assignment(purpose: Purpose) -> Assignment:
    return Assignment(WORK_ID, purpose, _CAPABILITIES[purpose], "T1", "DEV", slot="s1", delegation_id="d-DEV")


def _answers() -> Iterator[Saying]:
    for kind, reply in product(Question, Reply):
        for confidence in (None, 0.1) if reply in TAKES[kind] else (None,):
            answer = commands.Answer(RUN_ID, "q9", reply, "so", confidence, Budget(), "T1", "DEV")
            yield Saying(answer, question=kind)


_TOLD_WORKFLOW = (Call.EXECUTE, Call.GET_WORKFLOW, Call.FORWARD_ANSWER, Call.SETTLE_WAVE)
_TOLD_PIPELINE = (Call.START_PIPELINE, Call.COMPLETE_STAGE, Call.FORWARD_STAGE_ANSWER, Call.GET_PIPELINE)


def _any_peer() -> Iterator[Saying]:
    for call in Call:
        yield Saying(commands.CallRefused(RUN_ID, CALL_ID, "refused"), call)
        if CALLS[call].on_answer is record_answer:
            yield Saying(commands.CallAnswered(RUN_ID, events.CallEnded(CALL_ID)), call)


def _workflow() -> Iterator[Saying]:
    for candidates in ((), (Candidate("epic_9", "old", planned=True),)):
        yield Saying(commands.CallAnswered(RUN_ID, events.ResumablesFound(CALL_ID, candidates)), Call.LIST_RESUMABLE)
    for call in (Call.STORE_EPIC, Call.QUEUE_MESSAGE):
        yield Saying(commands.CallAnswered(RUN_ID, events.EpicStored(CALL_ID, "epic_1")), call)
    yield Saying(
        commands.CallAnswered(RUN_ID, events.Resumed(CALL_ID, "epic_1", "old", plan("T1", "T2"), ("T1",))),
        Call.LOAD_EPIC,
    )
    for errors in ((), ("vague",)):
        yield Saying(commands.CallAnswered(RUN_ID, events.PlanStored(CALL_ID, errors)), Call.STORE_PLAN)
    for status, call in product(WorkflowStatus, _TOLD_WORKFLOW):
        yield Saying(commands.CallAnswered(RUN_ID, events.WorkflowSeen(CALL_ID, status, "so")), call)
    for status, tasks in product(WorkflowStatus, ((), ("T2",))):
        yield Saying(commands.CallAnswered(RUN_ID, NextWave(CALL_ID, tasks, status)), Call.CLAIM_WAVE)


def _pipeline_and_router() -> Iterator[Saying]:
    stage = (Delegation("d-1", "REVIEW", "{}", "do it"),)
    for told, call, stages in product(PipelineStatus, _TOLD_PIPELINE, ((), stage)):
        yield Saying(commands.CallAnswered(RUN_ID, PipelineSeen(CALL_ID, "T1", told, stages)), call)
    for verdict, call in product(DebateVerdict, (Call.REPORT_OUTCOME, Call.RESOLVE_DEBATE)):
        yield Saying(commands.CallAnswered(RUN_ID, DebateResolved(CALL_ID, verdict)), call)


def _results() -> Iterator[tuple[Purpose, commands.Result]]:
    for confidence in (0.3, 0.9):
        yield Purpose.PLAN, commands.PlanResult(plan(confidence=confidence))
        yield Purpose.PATCH, commands.PlanResult(plan("T9", confidence=confidence))
        yield Purpose.RESEARCH, commands.ResearchResult(confidence, "{}")
    for remarks in ((), (Remark("k", "no"),), (Remark("k", "no", blocking=True),)):
        yield Purpose.DEBATE, commands.DebateResult(remarks)
    yield Purpose.PLAN_ANSWER, commands.AnswersResult(("k",), "it stands", 0.9)
    yield Purpose.DESIGN, commands.DesignResult("{}")
    for kind in (EvidenceKind.COMMAND, EvidenceKind.NOTE):
        yield Purpose.STAGE, commands.StageResult("PASS", work=work("T1", AGENT, kind))
    yield Purpose.STAGE, commands.StageResult("FAIL", "ABORT")
    for verdict in Verdict:
        yield Purpose.REVIEW, commands.ReviewResult(verdict)
    for accepted in (True, False):
        finding = commands.TaskFinding("T1", accepted, ("K1",), ("T1-C1",))
        yield Purpose.VERIFY, commands.VerifyResult((finding,), "a" * 40, "", "{}")


def _agents() -> Iterator[Saying]:
    for purpose, result in _results():
        yield Saying(commands.CompleteAssignment(RUN_ID, WORK_ID, 1, AGENT, result), purpose=purpose)
    for purpose in Purpose:
        odd = commands.MalformedResult("x", "odd")
        yield Saying(commands.CompleteAssignment(RUN_ID, WORK_ID, 1, AGENT, odd), purpose=purpose)
        yield Saying(commands.FailAssignment(RUN_ID, WORK_ID, 1, AGENT, "cannot", permanent=True), purpose=purpose)
        yield Saying(commands.ExpireAssignment(RUN_ID, WORK_ID, 1), purpose=purpose)
        yield Saying(commands.LoseLease(RUN_ID, WORK_ID, AGENT, 1), purpose=purpose)
        for said in LIMIT_NEWS:
            yield Saying(commands.NoteLimit(RUN_ID, WORK_ID, said), purpose=purpose)


def _others() -> Iterator[Saying]:
    yield Saying(commands.Submit(RUN_ID, "again", Order(Routing("d1", 0.9)), Budget()))
    yield Saying(commands.ChangeRequirement(RUN_ID, "more"))
    for keep in (False, True):
        yield Saying(commands.Cancel(RUN_ID, "parked", resumable=keep))
    for question, name in product((None, *Question), ("queue", "pipelines", "wall_clock")):
        yield Saying(commands.TimerFired(RUN_ID, name), question=question)


SAYINGS: tuple[Saying, ...] = (*_answers(), *_any_peer(), *_workflow(), *_pipeline_and_router(), *_agents(), *_others())


def runs_in(status: State) -> Iterator[tuple[Run, frozenset[Capability]]]:
    """Runs in a state: sure or not, on plan or at the limits, with work open, rejected or accepted, alone or not."""
    for confidence, accepted, resume in product((0.5, 0.9), (None, False, True), (Resume.ASK, Resume.YES)):
        pipeline = PipelineStatus.ACTIVE if accepted is None else PipelineStatus.COMPLETED
        task = Task(
            outline("T1"), TaskStatus.RUNNING, 1, (), "run_1/T1/1", pipeline, work("T1"), Judgement(True, accepted)
        )
        at_limit = accepted is False
        run = Run(
            RUN_ID, status, "do it", Order(Routing("d1", 0.9, debate=True), resume=resume, rival_run_id="run_0"),
            replace(Budget(), transitions=600), START, START, confidence=confidence, epic_id="epic_1",
            candidates=(Candidate("epic_9", "old", planned=True),), tasks={"T1": task, "T2": Task(outline("T2"))},
            slots={"s1": Slot("what?"), "s2": Slot("and?", True, True, 0.9)}, plan_count=1, wave=("T1",),
            remarks={"k": OpenRemark(Remark("k", "no"), 3 if at_limit else 1)}, replans=3 if at_limit else 0,
            executing=True, workflow_status=WorkflowStatus.RUNNING, blocking_rounds=3 if at_limit else 0,
            wave_verdict={None: "", False: "RETRY", True: "PASS"}[accepted],
        )  # fmt: skip
        yield run, ALL if resume is Resume.YES else NOBODY


def everything_said_in(status: State) -> Iterator[tuple[Saying, RunState]]:
    """Each saying to each run in a state."""
    for run, present in runs_in(status):
        for saying in SAYINGS:
            yield saying, saying.to(run, present)
