"""PLAN_BASELINE, PLAN_REVIEW and REPLAN_PATCH: the plan, its debate, its patch."""

from pointsman.services.orchestrator.domain import builtin, criteria, events
from pointsman.services.orchestrator.domain.calls.plans import judge_plan, take_plan
from pointsman.services.orchestrator.domain.calls.resolve_debate import ResolveDebate, block, go_by_verdict
from pointsman.services.orchestrator.domain.commands import (
    Answer,
    AnswersResult,
    DebateResult,
    PlanResult,
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
    TaskStatus,
    Trigger,
)
from pointsman.services.orchestrator.domain.model import Assignment, OpenRemark, Plan
from pointsman.services.orchestrator.domain.run import CONFIDENCE_FLOOR, MAX_REPLANS

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


def planned(builder: DecisionBuilder, result: PlanResult, principal: str = "") -> None:
    """The planner handed in a plan."""
    run = builder.run
    accepted = [task_id for task_id, task in run.tasks.items() if task.status is TaskStatus.ACCEPTED]
    plan = criteria.insist(result.plan, run.given_criteria, accepted)
    slots = plan.slots or builtin.survey_slots(run)
    take_plan(builder, Plan(plan.tasks, slots, plan.confidence, plan.document, risks=plan.risks), principal)


def debate_plan(builder: DecisionBuilder) -> None:
    """Let a critic look at the plan; the audit's errors block it without one."""
    if builder.run.audit_errors:
        block(builder, "; ".join(builder.run.audit_errors))
    elif builder.is_present(Capability.DEBATE, builder.run.plan_authors):
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
        lambda call: ResolveDebate(
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


def answer_debate(builder: DecisionBuilder, command: Answer) -> None:
    """Go by a person's verdict."""
    if command.reply is Reply.MODIFY:
        block(builder, command.text or "a person wants the plan changed")
    else:
        go_by_verdict(builder, DebateVerdict(str(command.reply)))


def patch_plan(builder: DecisionBuilder) -> None:
    """Have the plan patched; too many re-plans, or too little confidence, bring a person in."""
    run = builder.run
    if run.replans > MAX_REPLANS:
        builder.emit(events.ConfidenceSet(0.0))
    if builder.run.effective_confidence < CONFIDENCE_FLOOR:
        builder.transition(Trigger.CONFIDENCE_LT_0_6)
    else:
        _ask_for_plan(builder, Purpose.PATCH)
