"""REVIEW_ACCEPT: rules first, then reviewers, then the verifier, then a person; and what becomes of the wave."""

from collections.abc import Sequence

from pointsman._shared.excerpt import excerpt
from pointsman.services.orchestrator.domain import events, evidence
from pointsman.services.orchestrator.domain.calls.pipelines import author_of
from pointsman.services.orchestrator.domain.calls.report_outcome import ReportOutcome
from pointsman.services.orchestrator.domain.calls.settle_wave import ESCALATE, PASSED, REPLAN, settle
from pointsman.services.orchestrator.domain.commands import (
    Answer,
    ReviewResult,
    TaskFinding,
    VerifyResult,
)
from pointsman.services.orchestrator.domain.decision import DecisionBuilder, because, last_setback
from pointsman.services.orchestrator.domain.enums import (
    Call,
    Capability,
    Grade,
    PipelineStatus,
    Purpose,
    Question,
    Reply,
    Severity,
    Verdict,
)
from pointsman.services.orchestrator.domain.failures import is_same_failure
from pointsman.services.orchestrator.domain.model import Assignment, Failure, Risk, Task
from pointsman.services.orchestrator.domain.run import MAX_REJECTIONS

_WITHOUT_WORDS = {
    Verdict.RETRY: "the reviewer wants it done again and does not say why",
    Verdict.REPLAN: "the reviewer wants it planned anew and does not say why",
}
NAMED_LENGTH = 1500
QUESTIONS_LENGTH = 2000


def judge_wave(builder: DecisionBuilder) -> None:
    """Reject what the rules reject, and let reviewers look at the rest."""
    for task_id, task in builder.run.wave_tasks.items():
        reason = rejected_by_rule(task)
        if reason:
            builder.emit(events.TaskJudged(task_id, "rule", accepted=False, reason=reason))
        for path in evidence.touched_tests(task):
            builder.risk(
                f"tests-{task_id}", f"{task_id} changed {path}, which its criteria name as a test", task_id=task_id
            )
        if outside := evidence.touched_outside(task):
            statement = f"{task_id} changed what the plan does not name for it: {_named(outside)}"
            builder.risk(f"outside-{task_id}", statement, severity=Severity.LOW, task_id=task_id)
    for task_id in _to_be_proven(builder):
        _have_reviewed(builder, task_id)
    go_on(builder)


def _was_reviewed(builder: DecisionBuilder, task_id: str) -> bool:
    """Whether a REVIEW stage passed this very patch, which the verifier will merge and prove: one review is enough."""
    task = builder.run.tasks[task_id]
    patch = task.work.result_commit if task.work else ""
    return builder.run.needs_verifier and bool(patch) and task.reviewed_patch == patch


def _have_reviewed(builder: DecisionBuilder, task_id: str) -> None:
    """Offer the review of a task that no stage has reviewed, if somebody is there who has not written it."""
    if _was_reviewed(builder, task_id):
        builder.emit(events.TaskJudged(task_id, "reviewer", accepted=None))
        return
    if not builder.is_present(Capability.REVIEW):
        return
    author, needed = author_of(builder.run.tasks[task_id]), bool(builder.run.order.repository_id)
    if builder.is_present(Capability.REVIEW, builder.run.excluded_from(Capability.REVIEW, task_id)):
        builder.assign(
            Assignment("", Purpose.REVIEW, Capability.REVIEW, task_id, excluded_agent=author, needs_repository=needed)
        )
        return
    statement = f"only authors of {task_id} were there to review it: nobody did"
    builder.risk(f"no-other-reviewer-{task_id}", statement, severity=Severity.MEDIUM, task_id=task_id)


def rejected_by_rule(task: Task) -> str:
    """Why the work cannot be accepted, whatever a judge decided; empty when it can."""
    if task.pipeline_status in (PipelineStatus.ABORTED, PipelineStatus.CANCELLED):
        return f"the attempt was {str(task.pipeline_status).lower()}: {_last_setback(task)}"
    if task.work is None:
        return f"no work was handed in: {_last_setback(task)}"
    bare = evidence.without_evidence(task.work)
    if bare:
        return f"claims without evidence: {_named(bare)}"
    uncovered = () if evidence.needs_person(task) else evidence.uncovered_criteria(task)
    if uncovered:
        return f"no claim with evidence speaks to: {_named(uncovered)}"
    return ""


def _named(ids: Sequence[str]) -> str:
    """As many ids as a reason has room for, and how many more there are."""
    shown, room = 1, NAMED_LENGTH - len(ids[0])
    while shown < len(ids) and len(ids[shown]) + 2 <= room:
        room -= len(ids[shown]) + 2
        shown += 1
    more = f" and {len(ids) - shown} more" if shown < len(ids) else ""
    return f"{', '.join(ids[:shown])}{more}"


def _last_setback(task: Task) -> str:
    return task.setbacks[-1] if task.setbacks else "nobody said why"


def _undecided(builder: DecisionBuilder) -> list[str]:
    return [key for key, task in builder.run.wave_tasks.items() if task.judgement.accepted is None]


def _to_be_proven(builder: DecisionBuilder) -> list[str]:
    tasks = builder.run.tasks
    return [key for key in _undecided(builder) if not evidence.needs_person(tasks[key])]


def go_on(builder: DecisionBuilder) -> None:
    """Once nobody reviews any more: verify what passed, else conclude."""
    if builder.run.assignments or builder.run.held:
        return
    candidates = _to_be_proven(builder)
    if candidates and builder.run.needs_verifier:
        needed = bool(builder.run.order.repository_id)
        builder.assign(Assignment("", Purpose.VERIFY, Capability.VERIFY, needs_repository=needed))
    else:
        conclude(builder)


def reviewed(builder: DecisionBuilder, assignment: Assignment, result: ReviewResult) -> None:
    """A reviewer decided on a task."""
    passed = result.verdict is Verdict.PASS
    reason = "" if passed else "; ".join(result.feedback) or _WITHOUT_WORDS[result.verdict]
    if result.rejected_claims:
        reason = f"{reason} (claims {', '.join(result.rejected_claims)})"
    builder.emit(
        events.TaskJudged(
            assignment.task_id,
            "reviewer",
            accepted=None if passed else False,
            reason=reason,
            replan=result.verdict is Verdict.REPLAN,
        )
    )
    builder.named_risks(result.risks, assignment.task_id)
    go_on(builder)


def reviewer_lost(builder: DecisionBuilder, assignment: Assignment) -> None:
    """No reviewer finished: the verifier or a person decides, and that is a risk."""
    task_id = assignment.task_id
    statement = f"no reviewer finished on {task_id}{because(last_setback(assignment))}"
    builder.risk(f"unreviewed-{task_id}", statement, severity=Severity.HIGH, task_id=task_id)
    go_on(builder)


def verified(builder: DecisionBuilder, result: VerifyResult) -> None:
    """The verifier merged and proved what it could."""
    findings = {finding.task_id: finding for finding in result.findings}
    builder.emit(events.WaveVerified(result.accepted_commit, result.bundle, result.document))
    for task_id in _to_be_proven(builder):
        _judge_finding(builder, task_id, findings.get(task_id))
    conclude(builder)


def _judge_finding(builder: DecisionBuilder, task_id: str, finding: TaskFinding | None) -> None:
    task = builder.run.tasks[task_id]
    if finding is None or not finding.accepted:
        reason = (finding.reason if finding else "") or "the verifier did not accept it"
        failing = finding.failing if finding else ()
        builder.emit(events.TaskJudged(task_id, "verifier", accepted=False, reason=reason, failing=failing))
        return
    left_open = evidence.unsupported_criteria(task, finding.supported_claims, finding.passed_criteria)
    if left_open:
        reason = f"not supported on the accepted tree: {', '.join(left_open)}"
        builder.emit(events.TaskJudged(task_id, "verifier", accepted=False, reason=reason))
        return
    builder.named_risks(finding.risks, task_id)
    if task.judgement.reviewed:  # its reviewer said yes before the proof asked, which is worth knowing
        asked = [
            Risk(f"asked-{task_id}", f"{task_id}: {question}"[:QUESTIONS_LENGTH]) for question in finding.questions
        ]
        builder.named_risks(asked, task_id)
    proven = all(c.has_command for c in task.outline.criteria if c.required) and not finding.questions
    grade = finding.grade or (Grade.ON_WORD if task.judgement.reviewed else None)
    below = _below_required(builder, grade or Grade.ON_WORD)
    accepted = True if (task.judgement.reviewed or proven) and not below else None
    reason = "" if accepted else "; ".join(filter(None, (below, *finding.questions)))[:QUESTIONS_LENGTH]
    builder.emit(
        events.TaskJudged(
            task_id, "verifier", accepted=accepted, reason=reason, grade=grade, proof_reused=finding.reused
        )
    )


def _below_required(builder: DecisionBuilder, grade: Grade) -> str:
    """Why a person has to see work of this grade; empty where it is worth what the user requires."""
    required, grades = builder.run.proof_terms.require_grade, list(Grade)
    if required is None or grades.index(grade) >= grades.index(required):
        return ""
    return f"it is worth {_words(grade)}, and {_words(required)} is required"


def _words(grade: Grade) -> str:
    return str(grade).replace("_", " ")


def verifier_lost(builder: DecisionBuilder, assignment: Assignment) -> None:
    """No verifier finished: a person decides."""
    ask_person(
        builder, _undecided(builder), f"No verifier finished{because(last_setback(assignment))}. Is the work accepted?"
    )


def conclude(builder: DecisionBuilder) -> None:
    """What reviewers passed is accepted where nothing needs a verifier; a person decides the rest."""
    for task_id in _to_be_proven(builder):
        if builder.run.tasks[task_id].judgement.reviewed and not builder.run.needs_verifier:
            below = _below_required(builder, Grade.ON_WORD)
            accepted = None if below else True
            builder.emit(events.TaskJudged(task_id, "reviewer", accepted, below, grade=Grade.ON_WORD))
    left = _undecided(builder)
    if left:
        why = "; ".join(f"{task_id}: {_why_a_person(builder.run.tasks[task_id])}" for task_id in left)
        ask_person(builder, left, f"Only a person can accept this work ({why}). Is it accepted?"[:4000])
    else:
        finish(builder)


def _why_a_person(task: Task) -> str:
    if task.judgement.reason:
        return task.judgement.reason
    by_word = [c.criterion_id for c in task.outline.criteria if c.required and not c.has_command]
    return evidence.needs_person(task) or f"no command proves {', '.join(by_word)} and no reviewer said yes"


def ask_person(builder: DecisionBuilder, task_ids: list[str], text: str) -> None:
    """Show the tasks and ask."""
    builder.ask(Question.ACCEPTANCE, text, tuple(task_ids))


def answer_acceptance(builder: DecisionBuilder, command: Answer) -> None:
    """A person accepted or rejected one task, or all that were asked about."""
    accepted = command.reply is Reply.ACCEPT
    for task_id in [command.task_id] if command.task_id else _undecided(builder):
        reason = "" if accepted else command.text or "a person rejected it"
        grade = builder.run.tasks[task_id].judgement.grade or Grade.ON_WORD
        builder.emit(
            events.TaskJudged(task_id, "person", accepted=accepted, reason=reason, grade=grade if accepted else None)
        )
    left = _undecided(builder)
    if left:
        ask_person(builder, left, "Is this work accepted too?")
    else:
        finish(builder)


def finish(builder: DecisionBuilder) -> None:
    """Everything is judged: ask the router about failures, then record the wave."""
    rejected = {key: task for key, task in builder.run.wave_tasks.items() if not task.judgement.accepted}
    if any(task.judgement.replan for task in rejected.values()):
        settle(builder, REPLAN)
    elif any(_goes_in_circles(task) for task in rejected.values()):
        settle(builder, ESCALATE)
    elif rejected:
        _report_failure(builder, rejected)
    else:
        _report_success(builder)
        settle(builder, PASSED)


def _goes_in_circles(task: Task) -> bool:
    """Whether another try is in vain: it failed too often, or twice in the same way, in its TEST stage or in all."""
    if len(task.rejections) >= MAX_REJECTIONS or task.is_stuck or (task.proof is not None and task.proof.again):
        return True
    now, earlier = Failure(task.judgement.reason, task.judgement.failing), task.rejections[-1:]
    return any(is_same_failure(now, task.failed or Failure(reason)) for reason in earlier)


def _report_failure(builder: DecisionBuilder, rejected: dict[str, Task]) -> None:
    decision_id = builder.run.order.routing.decision_id
    error = excerpt("; ".join(f"{key}: {task.judgement.reason}" for key, task in rejected.items()), 4000)
    difference = "the next attempt gets the reasons and the reflections of this one"
    builder.call(
        Call.REPORT_OUTCOME,
        lambda call: ReportOutcome(call, decision_id, True, error, difference),  # noqa: FBT003
    )


def _report_success(builder: DecisionBuilder) -> None:
    """Failures are counted from zero after a success; the end of the run is reported anyway."""
    if any(task.rejections for task in builder.run.wave_tasks.values()):
        decision_id = builder.run.order.routing.decision_id
        builder.send(Call.REPORT_OUTCOME, ReportOutcome("", decision_id, False, "", ""))  # noqa: FBT003
