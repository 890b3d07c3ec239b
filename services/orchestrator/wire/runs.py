"""Runs, their questions, their journal and their delivery on the wire."""

import re
import shlex
from collections.abc import Sequence

from google.protobuf.duration_pb2 import Duration

from pointsman.api.handoff.v1 import delivery_pb2 as delivery
from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.api.router.v1 import decision_pb2 as decision
from pointsman.services.chassis.core.errors import invalid_field
from pointsman.services.chassis.engine.journal import Transition
from pointsman.services.chassis.rpc.paging import seconds_of, timestamp
from pointsman.services.orchestrator.domain import commands
from pointsman.services.orchestrator.domain.enums import (
    TAKES,
    TERMINAL,
    ExecutionMode,
    Reply,
    Resume,
    State,
    TaskStatus,
)
from pointsman.services.orchestrator.domain.model import Budget, GivenCriterion, OpenQuestion, Order, Risk, Routing
from pointsman.services.orchestrator.domain.run import Run
from pointsman.services.orchestrator.domain.views import RunView
from pointsman.services.orchestrator.domain.waiting import waiting_for
from pointsman.services.orchestrator.wire.handoffs import revive
from pointsman.services.orchestrator.wire.leases import RunDocuments, criterion

STRONG, WEAK, VAGUE = 0.9, 0.7, 0.5


def order(request: pb.SubmitRequest, routing: Routing, project: str, traceparent: str) -> Order:
    """What was submitted, and on which terms."""
    resumes = {pb.RESUME_ASK: Resume.ASK, pb.RESUME_YES: Resume.YES}
    return Order(
        routing,
        project,
        session_id=request.session_id,
        resume=resumes.get(request.resume, Resume.NO),
        auto_resume=request.auto_resume,
        repository_id=request.repository.id,
        base_commit=request.repository.base_commit,
        criteria=given_criteria(request),
        execution_mode=_MODES.get(request.execution_mode, ExecutionMode.QUALITY_GATE),
        template=request.template,
        require_audit=request.require_audit,
        research_expected=max(1, request.research_expected),
        priority=request.priority,
        labels=dict(request.labels),
        traceparent=traceparent,
        barrier_timeout_seconds=seconds_of(request.barrier_timeout),
    )


_MODES = {runs.ExecutionMode.Value(f"EXECUTION_MODE_{mode}"): mode for mode in ExecutionMode}
_RESERVED = re.compile(r"V[0-9]+")


def given_criteria(request: pb.SubmitRequest) -> tuple[GivenCriterion, ...]:
    """What the user said must hold: each verify command is a criterion of its own, then those in words."""
    commands_given = [tuple(item.arguments) for item in request.verify_commands]
    if request.verify_command and tuple(request.verify_command) not in commands_given[:1]:
        commands_given.insert(0, tuple(request.verify_command))
    proofs = [
        GivenCriterion(f"V{number}", f"`{shlex.join(command)}` succeeds"[:4096], command)
        for number, command in enumerate(commands_given, 1)
    ]
    stated = [
        GivenCriterion(c.id, c.statement, tuple(c.verify_command), c.required, tuple(c.test_files))
        for c in request.acceptance_criteria
    ]
    for place, item in enumerate(stated):
        earlier = {other.criterion_id for other in stated[:place]}
        if item.criterion_id in earlier or _RESERVED.fullmatch(item.criterion_id):
            raise invalid_field(f"acceptance_criteria[{place}].id", "must be unique, and not V1, V2, …")
    return (*proofs, *stated)


def routing(decided: decision.RoutingDecision) -> Routing:
    """The router's decision as the run keeps it: STRONG 0.9, WEAK 0.7, WEAK with vague terms 0.5."""
    strong = decided.confidence == decision.CONFIDENCE_STRONG
    vague = any(r.trigger == decision.PLANNING_TRIGGER_AMBIGUOUS_SCOPE for r in decided.debate_reasons)
    return Routing(
        decided.decision_id,
        STRONG if strong else VAGUE if vague else WEAK,
        debate=decided.debate == decision.DEBATE_PLANNING,
        high_stakes=decided.stakes == decision.STAKES_HIGH,
    )


def shown_routing(decided: decision.RoutingDecision) -> pb.Routing:
    """The router's decision for the caller."""
    return pb.Routing(
        decision_id=decided.decision_id,
        mode=decision.Mode.Name(decided.mode).removeprefix("MODE_"),
        confidence=decision.Confidence.Name(decided.confidence).removeprefix("CONFIDENCE_"),
        fast_path=decided.fast_path,
        route=decision.RouteTarget.Name(decided.route).removeprefix("ROUTE_TARGET_"),
        explanation=", ".join(decided.rules)[:500],
        debate=decided.debate == decision.DEBATE_PLANNING,
    )


def budget(message: runs.Budget, default: Budget) -> Budget:
    """What the run may spend, with the server's defaults for what is not said."""
    wall_clock = seconds_of(message.wall_clock)
    return Budget(
        message.assignments or default.assignments,
        message.transitions or default.transitions,
        message.fan_out or default.fan_out,
        message.tokens or default.tokens,
        message.cost_micros or default.cost_micros,
        wall_clock or default.wall_clock_seconds,
    )


def answer(request: pb.AnswerRequest) -> commands.Answer:
    """A person's answer."""
    raised = budget(request.budget, Budget(0, 0, 0, 0, 0, 0.0)) if request.HasField("budget") else None
    return commands.Answer(
        request.run_id,
        request.question_id,
        Reply(runs.AnswerKind.Name(request.answer).removeprefix("ANSWER_KIND_")),
        request.text,
        request.confidence if request.HasField("confidence") else None,
        raised,
        request.task_id,
        request.stage,
    )


def run(view: RunView) -> runs.Run:
    """A run as it is now."""
    it = view.run
    message = runs.Run(
        id=it.run_id,
        state=state(it.status),
        intent=it.intent,
        session_id=it.order.session_id,
        epic_id=it.epic_id,
        queued_epic_id=it.queued_epic_id,
        decision_id=it.order.routing.decision_id,
        confidence=it.effective_confidence,
        budget=_budget(it.budget),
        usage=runs.Usage(
            assignments=max(it.spent.assignments, view.starts),
            transitions=it.spent.transitions,
            tokens=it.spent.tokens,
            cost_micros=it.spent.cost_micros,
        ),
        tasks=_tasks(it),
        residual_risks=[risk(item) for item in it.risks],
        labels=it.order.labels,
        accepted_commit=it.accepted_commit,
        end_reason=it.end_reason,
        replans=it.replans,
        seq=view.seq,
        traceparent=it.order.traceparent,
        template=it.order.template,
        acceptance_criteria=[criterion(item) for item in it.order.criteria],
        execution_mode=runs.ExecutionMode.Value(f"EXECUTION_MODE_{it.order.execution_mode}"),
        created_at=timestamp(view.created_at_us),
        updated_at=timestamp(view.updated_at_us),
    )
    _add_waiting(message, it)
    if it.order.repository_id:
        message.repository.CopyFrom(runs.Repository(id=it.order.repository_id, base_commit=it.order.base_commit))
    return message


def _add_waiting(message: runs.Run, it: Run) -> None:
    waiting = waiting_for(it)
    if it.question is not None:
        message.question.CopyFrom(_question(it.question))
    if waiting is None:
        return
    message.waiting_for.kind = runs.WaitKind.Value(f"WAIT_KIND_{waiting.kind}")
    message.waiting_for.who = waiting.who
    message.waiting_for.action = waiting.action
    message.waiting_for.since.FromDatetime(waiting.since)
    if waiting.until is not None:
        message.waiting_for.until.FromDatetime(waiting.until)


def state(value: State) -> runs.RunState.ValueType:
    """A state on the wire."""
    return runs.RunState.Value(f"RUN_STATE_{value}")


def state_names(values: Sequence[runs.RunState.ValueType]) -> frozenset[str]:
    """States of a filter by their names."""
    return frozenset(runs.RunState.Name(value).removeprefix("RUN_STATE_") for value in values if value)


def _budget(it: Budget) -> runs.Budget:
    whole, rest = divmod(it.wall_clock_seconds, 1)
    return runs.Budget(
        assignments=it.assignments,
        transitions=it.transitions,
        fan_out=it.fan_out,
        tokens=it.tokens,
        cost_micros=it.cost_micros,
        wall_clock=Duration(seconds=int(whole), nanos=int(rest * 1e9)),
    )


ABANDONED = "abandoned"
_AT_WORK = frozenset({TaskStatus.RUNNING, TaskStatus.REVIEWING})


def _tasks(it: Run) -> list[runs.TaskProgress]:
    return [
        runs.TaskProgress(
            task_id=task_id,
            name=task.outline.name,
            status=ABANDONED if it.ended and task.status in _AT_WORK else str(task.status),
            attempt=task.attempt,
            pipeline_id=task.pipeline_id,
            rejection=task.rejections[-1] if task.rejections else "",
            usage=runs.Usage(tokens=task.spent.tokens, cost_micros=task.spent.cost_micros),
        )
        for task_id, task in it.tasks.items()
    ]


def _question(it: OpenQuestion) -> runs.Question:
    message = runs.Question(
        id=it.question_id,
        kind=runs.QuestionKind.Value(f"QUESTION_KIND_{it.kind}"),
        text=it.text,
        takes=[runs.AnswerKind.Value(f"ANSWER_KIND_{reply}") for reply in TAKES[it.kind]],
        subjects=it.subjects,
    )
    message.asked_at.FromDatetime(it.asked_at)
    return message


def risk(item: Risk) -> handoff.ResidualRisk:
    """A risk on the wire."""
    return handoff.ResidualRisk(
        key=item.key,
        statement=item.statement,
        severity=handoff.Severity.Value(f"SEVERITY_{item.severity}"),
        task_id=item.task_id,
    )


def ends(row: Transition) -> bool:
    """Whether a run's journal ends with this row."""
    return row.target in _TERMINAL_NAMES and row.source != row.target


_TERMINAL_NAMES = frozenset(str(item) for item in TERMINAL)


def deliver(documents: RunDocuments, rows: Sequence[Transition]) -> delivery.Delivery:
    """What the user gets: how each state went, what was accepted, what is open, what to do next."""
    it = documents.run
    message = delivery.Delivery(
        run_id=it.run_id,
        outcome=str(it.status),
        stage_results=[_stage_result(row) for row in rows if row.source != row.target and row.source],
        deliverables=[_deliverable(documents, task_id) for task_id in _accepted(it)],
        open_risks=[risk(item) for item in it.risks],
        next_steps=_next_steps(it),
        accepted_commit=it.accepted_commit,
    )
    if it.accepted_bundle:
        message.bundle.CopyFrom(revive(it.accepted_bundle, handoff.ArtifactRef()))
    return message


def _stage_result(row: Transition) -> delivery.StageResultSummary:
    return delivery.StageResultSummary(
        name=row.source, outcome=row.event, detail=f"{row.source} to {row.target}", ended_at=timestamp(row.at_us)
    )


def _accepted(it: Run) -> list[str]:
    return [task_id for task_id, task in it.tasks.items() if task.status is TaskStatus.ACCEPTED]


def _deliverable(documents: RunDocuments, task_id: str) -> delivery.Deliverable:
    made = documents.coder_result(task_id)
    return delivery.Deliverable(
        task_id=task_id,
        statement=documents.run.tasks[task_id].outline.name,
        claims=made.claims,
        changed_files=made.changed_files,
        commit=made.result_commit,
    )


def _next_steps(it: Run) -> list[str]:
    steps = [f"look at the risk '{item.key}'" for item in it.risks]
    if it.accepted_commit:
        steps.append(f"merge {it.accepted_commit}")
    if it.status is not State.COMPLETE and it.epic_id:
        steps.append(f"the epic {it.epic_id} keeps the tasks that are left")
    return steps
