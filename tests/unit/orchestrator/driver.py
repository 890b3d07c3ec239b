"""Drives one run of the pure machine: folds every decision, hands out leases, and plays the other services."""

from copy import copy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pointsman.services.chassis.core.codec import from_json, to_json
from pointsman.services.chassis.core.machine import Decision, Effect, Event
from pointsman.services.orchestrator.domain import commands, events
from pointsman.services.orchestrator.domain.calls.claim_wave import ClaimWave, NextWave
from pointsman.services.orchestrator.domain.calls.epics import Epic, StoreEpic
from pointsman.services.orchestrator.domain.calls.pipelines import (
    ForwardStageAnswer,
    Pipeline,
    PipelineSeen,
    StartPipeline,
)
from pointsman.services.orchestrator.domain.calls.plans import StorePlan
from pointsman.services.orchestrator.domain.calls.report_outcome import ReportOutcome
from pointsman.services.orchestrator.domain.calls.resolve_debate import DebateResolved, ResolveDebate
from pointsman.services.orchestrator.domain.calls.resumables import ListResumable
from pointsman.services.orchestrator.domain.calls.settle_wave import SettleWave
from pointsman.services.orchestrator.domain.calls.stage_completion import CompleteStage
from pointsman.services.orchestrator.domain.calls.workflow_status import ForwardAnswer
from pointsman.services.orchestrator.domain.enums import (
    WRITING,
    Call,
    Capability,
    DebateVerdict,
    EvidenceKind,
    PipelineStatus,
    Purpose,
    Reply,
    State,
    Verdict,
    WorkflowStatus,
)
from pointsman.services.orchestrator.domain.machine import MACHINE
from pointsman.services.orchestrator.domain.model import (
    Assignment,
    Budget,
    Candidate,
    ClaimOutline,
    Criterion,
    Delegation,
    Order,
    Plan,
    Routing,
    SlotOutline,
    TaskOutline,
    Work,
)
from pointsman.services.orchestrator.domain.run import Crew, Lease, Run, RunState

START = datetime(2026, 1, 1, tzinfo=UTC)
ALL = frozenset(Capability)
MOCKS = frozenset({Capability.RESEARCH, Capability.CODE, Capability.REVIEW})
NOBODY: frozenset[Capability] = frozenset()


def outline(task_id: str, *, required: bool = True, command: bool = False) -> TaskOutline:
    criterion = Criterion(f"{task_id}-C1", required, command, ("tests/test_it.py",))
    return TaskOutline(task_id, f"task {task_id}", (criterion,))


def plan(*task_ids: str, confidence: float = 0.9, slots: tuple[str, ...] = ("s1",), command: bool = False) -> Plan:
    tasks = tuple(outline(task_id, command=command) for task_id in task_ids or ("T1",))
    return Plan(tasks, tuple(SlotOutline(slot, "what?") for slot in slots), confidence, "{}")


def work(task_id: str, author: str = "coder", *evidence: EvidenceKind, files: tuple[str, ...] = ()) -> Work:
    kinds = evidence or (EvidenceKind.COMMAND,)
    return Work(author, (ClaimOutline("K1", (f"{task_id}-C1",), kinds),), files, "{}")


class Driver:
    """A run with a patient world around it: peers answer well unless a test says otherwise."""

    def __init__(self, present: frozenset[Capability] = MOCKS, **order: Any) -> None:
        routing = Routing(
            "d1",
            order.pop("confidence", 0.9),
            debate=order.pop("debate", False),
            high_stakes=order.pop("high_stakes", False),
        )
        self.order = Order(routing, **order)
        self.budget = Budget()
        self.present = present
        self.crews: tuple[Crew, ...] = ()
        self.now = START
        self.state: RunState | None = None
        self.journal: list[Event] = []
        self.effects: list[Effect] = []
        self.told: list[Effect] = []
        self.timers: dict[str, datetime] = {}
        self.leases: dict[str, Lease] = {}
        self.candidates: tuple[Candidate, ...] = ()
        self.pending: list[str] = []
        self.workflow = WorkflowStatus.RUNNING
        self.verdicts: list[DebateVerdict] = []
        self.audit_errors: tuple[str, ...] = ()
        self.pipelines: dict[str, set[str]] = {}
        self.stage_verdicts: dict[str, str] = {}

    @property
    def run(self) -> Run:
        """The run."""
        assert self.state is not None
        return self.state.run

    def is_in(self, state: State) -> bool:
        """Whether the run is in the state now."""
        return self.run.status is state

    @property
    def moves(self) -> list[str]:
        """The names of the events that changed the state."""
        return [event.name for event in self.journal if event.source != event.target]

    def send(self, command: Any) -> Any:
        """Decide a command, fold its events, and keep its effects for later."""
        if self.state is not None:
            self.state = RunState(copy(self.state.run), dict(self.leases), self.present, self.crews)
        before = to_json(self.state.run) if self.state else ""
        decision: Decision = MACHINE.decide(self.state, command, self.now)
        assert before == (to_json(self.state.run) if self.state else ""), "decide must not change the state"
        for event in decision.events:
            revived = Event(event.name, event.source, event.target, self._through_json(event))
            self.state = MACHINE.apply(self.state, revived, self.now)
            self.journal.append(revived)
        if decision.events and self.state is not None:
            assert decision.state.run == self.state.run, "what was folded while deciding is what the journal says"
        assert decision.events or not (decision.effects or decision.timers), "effects and timers need an event"
        if decision.drop_effects:
            self.effects.clear()
            self.timers.clear()
        self.effects += decision.effects
        for timer in decision.timers:
            self.timers[timer.name] = getattr(timer, "due_at", START)
        assert self.state is None or from_json(to_json(self.state.run), Run) == self.state.run
        return decision.answer

    def _through_json(self, event: Event) -> Any:
        return from_json(to_json(event.data), MACHINE.events[event.name])

    def submit(self, intent: str = "add a flag") -> "Driver":
        """Start the run."""
        self.send(commands.Submit("run_1", intent, self.order, self.budget))
        return self

    def settle(self) -> "Driver":
        """Let the other services answer until the run waits for an agent, a person or a timer."""
        while self.effects:
            self._deliver(self.effects.pop(0))
        return self

    def _deliver(self, effect: Effect) -> None:
        call = Call(effect.kind)
        answer = getattr(self, f"_on_{call.name.lower()}", None)
        if effect.data.call_id and answer is not None:
            self.send(answer(effect.data))
        else:
            self.told.append(effect)

    def refuse_next(self, reason: str = "refused") -> "Driver":
        """The first waiting effect is refused for good."""
        effect = self.effects.pop(0)
        self.send(commands.CallRefused("run_1", effect.data.call_id, reason))
        return self

    def _on_list_resumable(self, data: ListResumable) -> Any:
        return commands.CallAnswered("run_1", events.ResumablesFound(data.call_id, self.candidates))

    def _on_store_epic(self, data: StoreEpic) -> Any:
        return commands.CallAnswered("run_1", events.EpicStored(data.call_id, data.epic_id or "epic_1"))

    def _on_queue_message(self, data: StoreEpic) -> Any:
        return commands.CallAnswered("run_1", events.EpicStored(data.call_id, "epic_queued"))

    def _on_load_epic(self, data: Epic) -> Any:
        self.pending = ["T2"]
        return commands.CallAnswered(
            "run_1", events.Resumed(data.call_id, data.epic_id, "the old wish", plan("T1", "T2"), ("T1",))
        )

    def _on_store_plan(self, data: StorePlan) -> Any:
        self.pending = [key for key, task in self.run.tasks.items() if task.status != "accepted"]
        return commands.CallAnswered("run_1", events.PlanStored(data.call_id, self.audit_errors))

    def _told_workflow(self, call_id: str) -> Any:
        return commands.CallAnswered("run_1", events.WorkflowSeen(call_id, self.workflow))

    def _on_execute(self, data: Epic) -> Any:
        return self._told_workflow(data.call_id)

    def _on_get_workflow(self, data: Epic) -> Any:
        return self._told_workflow(data.call_id)

    def _on_forward_answer(self, data: ForwardAnswer) -> Any:
        self.workflow = WorkflowStatus.RUNNING
        return self._told_workflow(data.call_id)

    def _on_claim_wave(self, data: ClaimWave) -> Any:
        claimed, self.pending = self.pending[: data.limit], self.pending[data.limit :]
        return commands.CallAnswered("run_1", NextWave(data.call_id, tuple(claimed), self.workflow))

    def _on_settle_wave(self, data: SettleWave) -> Any:
        self.pending = [item.task_id for item in data.rejected] + self.pending
        if not self.pending and self.workflow is WorkflowStatus.RUNNING:
            self.workflow = WorkflowStatus.COMPLETED
        return self._told_workflow(data.call_id)

    def _on_start_pipeline(self, data: StartPipeline) -> Any:
        if data.pipeline_id in self.pipelines:
            return commands.CallRefused("run_1", data.call_id, f"pipeline '{data.pipeline_id}' exists already")
        self.pipelines[data.pipeline_id] = {"DEV"} if data.template == "fix" else {"DEV", "REVIEW", "TEST"}
        return self._pipeline(data.call_id, data.pipeline_id, data.task_id, ("DEV",))

    def _on_complete_stage(self, data: CompleteStage) -> Any:
        left = self.pipelines[data.pipeline_id]
        left.discard(data.stage)
        if data.route == "ABORT":
            return commands.CallAnswered("run_1", PipelineSeen(data.call_id, data.task_id, PipelineStatus.ABORTED))
        if not left:
            return commands.CallAnswered("run_1", PipelineSeen(data.call_id, data.task_id, PipelineStatus.COMPLETED))
        stages = ("REVIEW", "TEST") if data.stage == "DEV" else ()
        return self._pipeline(data.call_id, data.pipeline_id, data.task_id, stages)

    def _on_get_pipeline(self, data: Pipeline) -> Any:
        if not self.pipelines.get(data.pipeline_id, {"DEV"}):
            return commands.CallAnswered("run_1", PipelineSeen(data.call_id, data.task_id, PipelineStatus.COMPLETED))
        return self._pipeline(data.call_id, data.pipeline_id, data.task_id, ())

    def _on_forward_stage_answer(self, data: ForwardStageAnswer) -> Any:
        return self._pipeline(data.call_id, data.pipeline_id, data.task_id, (data.stage,))

    def _pipeline(self, call_id: str, pipeline_id: str, task_id: str, stages: tuple[str, ...]) -> Any:
        delegations = tuple(Delegation(f"d-{stage}", stage, "{}", "do it") for stage in stages)
        return commands.CallAnswered("run_1", PipelineSeen(call_id, task_id, PipelineStatus.ACTIVE, delegations))

    def _verdict(self, usual: DebateVerdict) -> DebateVerdict:
        return self.verdicts.pop(0) if self.verdicts else usual

    def _on_report_outcome(self, data: ReportOutcome) -> Any:
        return commands.CallAnswered("run_1", DebateResolved(data.call_id, self._verdict(DebateVerdict.RETRY)))

    def _on_resolve_debate(self, data: ResolveDebate) -> Any:
        return commands.CallAnswered("run_1", DebateResolved(data.call_id, self._verdict(DebateVerdict.PROCEED)))

    def lease(self, assignment_id: str, agent_id: str = "agent") -> int:
        """Take an assignment; the epoch that answers must carry."""
        lease = self.leases.get(assignment_id, Lease("", 0, 0, leased=False))
        self.leases[assignment_id] = Lease(agent_id, lease.epoch + 1, lease.attempt + 1, leased=True)
        return lease.epoch + 1

    def open(self, purpose: Purpose | None = None) -> list[Assignment]:
        """The assignments that wait for an agent."""
        return [item for item in self.run.assignments.values() if purpose in (None, item.purpose)]

    def hand_in(self, assignment: Assignment, result: Any, agent_id: str = "agent", **who: Any) -> Any:
        """Lease an assignment, complete it, and let the other services answer."""
        epoch = self.lease(assignment.assignment_id, agent_id)
        done = commands.CompleteAssignment("run_1", assignment.assignment_id, epoch, agent_id, result, **who)
        answer = self.send(done)
        self.settle()
        return answer

    def lose(self, assignment: Assignment) -> None:
        """Every agent that takes the assignment is lost."""
        for _ in range(3):
            epoch = self.lease(assignment.assignment_id)
        self.send(commands.ExpireAssignment("run_1", assignment.assignment_id, epoch))
        self.settle()

    def good_result(self, assignment: Assignment) -> Any:
        """What an able agent hands in."""
        task_id = assignment.task_id
        results: dict[Purpose, Any] = {
            Purpose.PLAN: commands.PlanResult(plan()),
            Purpose.PATCH: commands.PlanResult(plan("T9")),
            Purpose.DEBATE: commands.DebateResult(()),
            Purpose.PLAN_ANSWER: commands.AnswersResult((), "it stands", 0.9),
            Purpose.RESEARCH: commands.ResearchResult(0.9, "{}"),
            Purpose.DESIGN: commands.DesignResult("{}"),
            Purpose.REVIEW: commands.ReviewResult(Verdict.PASS),
            Purpose.VERIFY: self.good_verification(),
        }
        if assignment.purpose is not Purpose.STAGE:
            return results[assignment.purpose]
        made = work(task_id) if assignment.capability in WRITING else None
        verdict = self.stage_verdicts.get(assignment.stage, "PASS")
        if assignment.capability is Capability.VERIFY:
            found = commands.TaskFinding(task_id, verdict == "PASS", ("K1",), (f"{task_id}-C1",))
            return commands.StageResult(verdict, proof=found, document="{}")
        return commands.StageResult(verdict, work=made)

    def good_verification(self) -> commands.VerifyResult:
        """Everything of the wave is merged and proven."""
        findings = tuple(commands.TaskFinding(task_id, True, ("K1",), (f"{task_id}-C1",)) for task_id in self.run.wave)
        return commands.VerifyResult(findings, "a" * 40, "", "{}")

    def work_until(self, *purposes: Purpose) -> "Driver":
        """Able agents do everything, until an assignment for one of the purposes is open or nothing is left."""
        while True:
            waiting = self.open()
            if not waiting or any(item.purpose in purposes for item in waiting):
                return self
            agent_id = "coder" if waiting[0].capability is Capability.CODE else "agent"
            self.hand_in(waiting[0], self.good_result(waiting[0]), agent_id)

    def reply(self, reply: Reply, **details: Any) -> "Driver":
        """Answer the open question."""
        assert self.run.question is not None
        self.send(commands.Answer("run_1", self.run.question.question_id, reply, **details))
        return self.settle()

    def fire(self, name: str) -> "Driver":
        """The timer comes due."""
        self.now = max(self.now, self.timers.pop(name)) + timedelta(seconds=1)
        self.send(commands.TimerFired("run_1", name))
        return self.settle()

    def with_budget(self, **limits: Any) -> "Driver":
        """Limit what the run may spend."""
        self.budget = replace(self.budget, **limits)
        return self
