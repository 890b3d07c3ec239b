"""Runs, their questions and the router's decision."""

from collections import Counter

from google.protobuf.duration_pb2 import Duration

from pointsman._shared.excerpt import excerpt
from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.api.router.v1 import decision_pb2 as decision
from pointsman.services.chassis.core.clock import to_us
from pointsman.services.chassis.rpc.paging import timestamp
from pointsman.services.orchestrator.domain.enums import TAKES, Attention, Grade, TaskStatus
from pointsman.services.orchestrator.domain.model import (
    NO_TERMS,
    NOTHING_SPENT,
    Budget,
    GivenCriterion,
    OpenQuestion,
    ProofTerms,
    Risk,
)
from pointsman.services.orchestrator.domain.origin import Origin
from pointsman.services.orchestrator.domain.run import Run
from pointsman.services.orchestrator.domain.spending import held_by
from pointsman.services.orchestrator.domain.views import RunCounts, RunView
from pointsman.services.orchestrator.domain.waiting import AtWork, attention, waiting_for
from pointsman.services.orchestrator.wire import enums

ABANDONED = "abandoned"
ARCHIVE_TYPE = "application/x-tar"
LINE_LENGTH = 300
MOST_SUBJECTS = 8
_NOT_IN_A_LINE = (
    "tasks", "residual_risks", "acceptance_criteria", "traceparent", "template", "accepted_commit", "decision_id",
)  # fmt: skip


_AT_WORK = frozenset({TaskStatus.RUNNING, TaskStatus.REVIEWING})


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


def run(view: RunView) -> runs.Run:
    """A run as it is now."""
    it = view.run
    message = runs.Run(
        id=it.run_id,
        state=enums.STATE.to_wire(it.status),
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
            unpriced_tokens=it.spent.unpriced_tokens,
        ),
        held=_held(it),
        tasks=_tasks(it),
        residual_risks=[risk(item) for item in it.risks],
        labels=it.order.labels,
        accepted_commit=it.accepted_commit,
        end_reason=it.end_reason,
        replans=it.replans,
        reserved=it.order.reserved,
        best_of=it.order.best_of,
        seq=view.seq,
        traceparent=it.order.traceparent,
        template=it.order.template,
        acceptance_criteria=[criterion(item) for item in it.order.criteria],
        execution_mode=enums.EXECUTION_MODE.to_wire(it.order.execution_mode),
        grade=enums.GRADE.to_wire(it.grade),
        parent_entry=it.order.parent_entry,
        grades=_grades(it),
        proof_terms=_proof_terms(it.order.proof_terms),
        created_at=timestamp(view.created_at_us),
        updated_at=timestamp(view.updated_at_us),
        ended_at=timestamp(to_us(it.since)) if it.ended else None,
    )
    _add_waiting(message, it)
    add_at_work(message, view.at_work, attention(it, view.at_work))
    if it.order.repository_id:
        message.repository.CopyFrom(runs.Repository(id=it.order.repository_id, base_commit=it.order.base_commit))
    if it.order.origin is not None:
        message.origin.CopyFrom(_origin(it.order.origin))
    if it.order.scheduled is not None:
        message.schedule_id = it.order.scheduled.schedule_id
        message.scheduled_at.CopyFrom(timestamp(to_us(it.order.scheduled.nominal_at)))
    return message


def _origin(it: Origin) -> runs.Origin:
    return runs.Origin(
        run_id=it.run_id, first_run_id=it.first_run_id, point=it.point, accepted_commit=it.accepted_commit
    )


def _add_waiting(message: runs.Run, it: Run) -> None:
    waiting = waiting_for(it)
    if it.question is not None:
        message.question.CopyFrom(_question(it.question))
    if waiting is None:
        return
    message.waiting_for.kind = enums.WAIT_KIND.to_wire(waiting.kind)
    message.waiting_for.who = waiting.who
    message.waiting_for.action = waiting.action
    message.waiting_for.since.FromDatetime(waiting.since)
    if waiting.until is not None:
        message.waiting_for.until.FromDatetime(waiting.until)


def add_at_work(message: runs.Run, at_work: AtWork, asks: Attention) -> None:
    """Add who is at work on a run, which changes without a change of the run."""
    message.attention = enums.ATTENTION.to_wire(asks)
    if at_work.holder:
        message.waiting_for.holder = at_work.holder
        message.waiting_for.heard_at.CopyFrom(timestamp(at_work.heard_at_us))
    if at_work.agents_able:
        message.waiting_for.agents_able = at_work.agents_able


def line(whole: runs.Run, at_work: AtWork, asks: Attention, *, cut: bool) -> runs.Run:
    """A run in a list: with who is at work on it; `cut` without what a line has no room for."""
    message = runs.Run()
    message.CopyFrom(whole)
    if cut:
        _cut(message)
    add_at_work(message, at_work, asks)
    return message


def _cut(message: runs.Run) -> None:
    for name in _NOT_IN_A_LINE:
        message.ClearField(name)  # type: ignore[arg-type]
    message.intent = message.intent[:LINE_LENGTH]
    message.end_reason = message.end_reason[:LINE_LENGTH]
    if message.HasField("waiting_for"):
        message.waiting_for.action = message.waiting_for.action[:LINE_LENGTH]
    if message.HasField("question"):
        message.question.text = excerpt(message.question.text, LINE_LENGTH)
        del message.question.subjects[MOST_SUBJECTS:]


def counts(counted: RunCounts, newest_position: int) -> pb.CountRunsResponse:
    """How many runs ask what."""
    return pb.CountRunsResponse(
        needs_you=counted.needs_you,
        stuck=counted.stuck,
        working=counted.working,
        failed=counted.failed,
        done=counted.done,
        cancelled=counted.cancelled,
        newest_position=newest_position,
    )


def project(name: str, counted: RunCounts) -> pb.ProjectSummary:
    """A project with how many of its runs ask what."""
    return pb.ProjectSummary(
        name=name,
        needs_you=counted.needs_you,
        stuck=counted.stuck,
        working=counted.working,
        failed=counted.failed,
        done=counted.done,
        cancelled=counted.cancelled,
    )


def _grades(it: Run) -> runs.GradeCounts:
    """What the tasks are worth, counted."""
    tasks = list(it.tasks.values())
    accepted = [task for task in tasks if task.status is TaskStatus.ACCEPTED]
    worth = Counter(task.grade for task in accepted)
    caught = [task for task in tasks if task.rejections]
    return runs.GradeCounts(
        tasks=len(tasks),
        accepted=len(accepted),
        proven=worth[Grade.PROVEN],
        unbroken=worth[Grade.UNBROKEN],
        on_word=worth[Grade.ON_WORD],
        forced=worth[Grade.FORCED],
        caught=len(caught),
        caught_then_proven=sum(1 for task in caught if task.grade is Grade.PROVEN),
    )


def _held(it: Run) -> runs.Usage | None:
    """What the work that runs holds of the budget; None where it holds nothing."""
    held = held_by(it)
    return runs.Usage(tokens=held.tokens, cost_micros=held.cost_micros) if held != NOTHING_SPENT else None


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


def _tasks(it: Run) -> list[runs.TaskProgress]:
    return [
        runs.TaskProgress(
            task_id=task_id,
            name=task.outline.name,
            status=ABANDONED if it.ended and task.status in _AT_WORK else str(task.status),
            attempt=task.attempt,
            pipeline_id=task.pipeline_id,
            rejection=task.rejections[-1] if task.rejections else "",
            usage=runs.Usage(
                tokens=task.spent.tokens,
                cost_micros=task.spent.cost_micros,
                unpriced_tokens=task.spent.unpriced_tokens,
            ),
            grade=enums.GRADE.to_wire(task.grade),
        )
        for task_id, task in it.tasks.items()
    ]


def _proof_terms(terms: ProofTerms) -> runs.ProofTerms | None:
    """What the proof has to show besides the commands; nothing where that is all."""
    if terms == NO_TERMS:
        return None
    return runs.ProofTerms(
        fixes=terms.fixes,
        held_out=held_out_ref(terms),
        require_grade=enums.GRADE.to_wire(terms.require_grade),
        tests_may_change=terms.tests_may_change,
    )


def held_out_ref(terms: ProofTerms) -> handoff.ArtifactRef | None:
    """The archive of held-out checks; None where there is none."""
    return handoff.ArtifactRef(sha256=terms.held_out, media_type=ARCHIVE_TYPE) if terms.held_out else None


def _question(it: OpenQuestion) -> runs.Question:
    message = runs.Question(
        id=it.question_id,
        kind=enums.QUESTION_KIND.to_wire(it.kind),
        text=it.text,
        takes=[enums.ANSWER_KIND.to_wire(reply) for reply in TAKES[it.kind]],
        subjects=it.subjects,
    )
    message.asked_at.FromDatetime(it.asked_at)
    return message


def risk(item: Risk) -> handoff.ResidualRisk:
    """A risk on the wire."""
    return handoff.ResidualRisk(
        key=item.key,
        statement=item.statement,
        severity=enums.SEVERITY.to_wire(item.severity),
        task_id=item.task_id,
    )


def criterion(item: GivenCriterion) -> handoff.AcceptanceCriterion:
    """A given criterion on the wire."""
    return handoff.AcceptanceCriterion(
        id=item.criterion_id,
        statement=item.statement,
        verify_command=item.command,
        required=item.required,
        test_files=item.test_files,
    )
