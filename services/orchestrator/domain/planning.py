"""PLAN_BASELINE, PLAN_REVIEW and REPLAN_PATCH: the plan, its debate, its patch."""

from pointsman.services.orchestrator.domain import builtin, criteria, events, peer_requests
from pointsman.services.orchestrator.domain.commands import (
    Answer,
    AnswersResult,
    DebateResolved,
    DebateResult,
    PlanResult,
    PlanStored,
)
from pointsman.services.orchestrator.domain.decision import DecisionBuilder, because
from pointsman.services.orchestrator.domain.enums import (
    Call,
    Capability,
    DebateVerdict,
    Purpose,
    Question,
    Reply,
    Severity,
    State,
    TaskStatus,
    Trigger,
)
from pointsman.services.orchestrator.domain.model import Assignment, OpenRemark, Plan
from pointsman.services.orchestrator.domain.run import CONFIDENCE_FLOOR, MAX_FEEDBACK_ROUNDS, MAX_REPLANS

MAX_BLOCKING_ROUNDS = 3
_SEVERITIES = tuple(Severity)


def make_plan(builder: DecisionBuilder) -> None:
    """Judge the plan that was just patched, or have one made."""
    if builder.run.plan_is_fresh:
        judge_plan(builder)
    else:
        _ask_for_plan(builder, Purpose.PLAN)


def _ask_for_plan(builder: DecisionBuilder, purpose: Purpose) -> None:
    if builder.is_present(Capability.PLAN):
        builder.assign(Assignment("", purpose, Capability.PLAN))
    else:
        take_plan(builder, builtin.plan(builder.run))


def planned(builder: DecisionBuilder, result: PlanResult) -> None:
    """The planner handed in a plan."""
    run = builder.run
    accepted = [task_id for task_id, task in run.tasks.items() if task.status is TaskStatus.ACCEPTED]
    plan = criteria.insist(result.plan, run.given_criteria, accepted)
    slots = plan.slots or builtin.survey_slots(run)
    take_plan(builder, Plan(plan.tasks, slots, plan.confidence, plan.document, risks=plan.risks))


def planner_lost(builder: DecisionBuilder, why: str = "") -> None:
    """No planner could do it: the built-in one does, and that is a risk."""
    statement = f"no planner finished; the built-in plan of one task was used{because(why)}"
    builder.risk("planner-lost", statement, severity=Severity.MEDIUM)
    take_plan(builder, builtin.plan(builder.run))


def take_plan(builder: DecisionBuilder, plan: Plan) -> None:
    """Store the plan."""
    builder.emit(events.Planned(plan, builder.run.attempts_so_far))
    epic_id, audited = builder.run.epic_id, builder.run.order.require_audit and not plan.built_in
    builder.call(Call.STORE_PLAN, lambda call: peer_requests.StorePlan(call, epic_id, plan.document, audited))


def plan_stored(builder: DecisionBuilder, command: PlanStored) -> None:
    """The plan is stored: judge it, or the patch is applied."""
    builder.emit(events.PlanStored(command.call_id, command.audit_errors))
    if builder.in_state(State.REPLAN_PATCH):
        builder.transition(Trigger.PATCH_APPLIED)
    else:
        judge_plan(builder)


def judge_plan(builder: DecisionBuilder) -> None:
    """Confidence first, then whether the plan has to be debated."""
    run = builder.run
    debate = run.order.routing.debate and not run.debated
    if run.effective_confidence < CONFIDENCE_FLOOR:
        builder.transition(Trigger.CONFIDENCE_LT_0_6)
    elif debate or run.audit_errors:
        builder.transition(Trigger.NEED_PLAN_REVIEW, "; ".join(run.audit_errors))
    else:
        builder.transition(Trigger.SKIP_PLAN_REVIEW)


def debate_plan(builder: DecisionBuilder) -> None:
    """Let a critic look at the plan; the audit's errors block it without one."""
    if builder.run.audit_errors:
        _block(builder, "; ".join(builder.run.audit_errors))
    elif builder.is_present(Capability.DEBATE):
        builder.assign(Assignment("", Purpose.DEBATE, Capability.DEBATE))
    else:
        ask_person_to_debate(builder)


def ask_person_to_debate(builder: DecisionBuilder, why: str = "") -> None:
    """Nobody else can judge the plan."""
    names = tuple(task.outline.name for task in builder.run.tasks.values())
    nobody = f"no critic finished{because(why)}" if why else "no critic is there"
    builder.ask(Question.DEBATE, f"The plan has to be debated and {nobody}. Go on with it?", names)


def remarked(builder: DecisionBuilder, result: DebateResult) -> None:
    """The critic's remarks: the planner answers them first, if it is there."""
    builder.emit(events.FeedbackGiven(result.remarks))
    builder.named_risks(result.risks)
    if builder.run.remarks and builder.is_present(Capability.PLAN):
        builder.assign(Assignment("", Purpose.PLAN_ANSWER, Capability.PLAN))
    else:
        resolve_debate(builder, "")


def answered_remarks(builder: DecisionBuilder, result: AnswersResult) -> None:
    """The planner's answers go to the router with the critic's remarks."""
    if result.settled_keys:
        builder.emit(events.FeedbackSettled(result.settled_keys))
    resolve_debate(builder, result.statement)


def resolve_debate(builder: DecisionBuilder, proposal: str) -> None:
    """The router weighs the worst remark against the plan."""
    run = builder.run
    worst = _worst(tuple(run.remarks.values()))
    remark = worst.remark if worst else None
    builder.call(
        Call.RESOLVE_DEBATE,
        lambda call: peer_requests.ResolveDebate(
            call,
            run.order.routing.decision_id,
            proposal or run.intent[:2000],
            run.effective_confidence,
            remark.statement if remark else "",
            remark.counter if remark else "",
            remark.severity if remark else None,
        ),
    )


def _worst(remarks: tuple[OpenRemark, ...]) -> OpenRemark | None:
    return max(remarks, key=lambda item: _SEVERITIES.index(item.remark.severity), default=None)


def debate_resolved(builder: DecisionBuilder, command: DebateResolved) -> None:
    """Go by the router's verdict."""
    builder.emit(events.CallEnded(command.call_id))
    go_by_verdict(builder, command.verdict)


def answer_debate(builder: DecisionBuilder, command: Answer) -> None:
    """Go by a person's verdict."""
    if command.reply is Reply.MODIFY:
        _block(builder, command.text or "a person wants the plan changed")
    else:
        go_by_verdict(builder, DebateVerdict(str(command.reply)))


def go_by_verdict(builder: DecisionBuilder, verdict: DebateVerdict) -> None:
    """PROCEED passes, ESCALATE asks a person, MODIFY stays, blocks or releases."""
    if verdict is DebateVerdict.PROCEED:
        builder.transition(Trigger.PASS_OR_FEEDBACK_LIMIT_REACHED, "passed")
    elif verdict is DebateVerdict.ESCALATE:
        builder.transition(Trigger.FEEDBACK_ESCALATED, "the debate was escalated")
    else:
        _modify(builder)


def _modify(builder: DecisionBuilder) -> None:
    run = builder.run
    blocking = [i.remark.statement for i in run.remarks.values() if i.remark.blocking or run.order.routing.high_stakes]
    if blocking:
        _block(builder, "; ".join(blocking))
        return
    released = {key: item for key, item in run.remarks.items() if item.rounds >= MAX_FEEDBACK_ROUNDS}
    for key, item in released.items():
        builder.risk(f"feedback-{key}", item.remark.statement, severity=item.remark.severity)
    if released:
        builder.emit(events.FeedbackSettled(tuple(released)))
    if builder.run.remarks:
        builder.transition(Trigger.NON_BLOCKING_FEEDBACK)
    else:
        builder.transition(
            Trigger.PASS_OR_FEEDBACK_LIMIT_REACHED, "feedback limit reached" if released else "no remark is open"
        )


def _block(builder: DecisionBuilder, reason: str) -> None:
    if builder.run.blocking_rounds >= MAX_BLOCKING_ROUNDS:
        builder.transition(Trigger.FEEDBACK_ESCALATED, reason)
    else:
        builder.transition(Trigger.BLOCKING_FEEDBACK, reason)


def patch_plan(builder: DecisionBuilder) -> None:
    """Have the plan patched; too many re-plans, or too little confidence, bring a person in."""
    run = builder.run
    if run.replans > MAX_REPLANS:
        builder.emit(events.ConfidenceSet(0.0))
    if builder.run.effective_confidence < CONFIDENCE_FLOOR:
        builder.transition(Trigger.CONFIDENCE_LT_0_6)
    else:
        _ask_for_plan(builder, Purpose.PATCH)
