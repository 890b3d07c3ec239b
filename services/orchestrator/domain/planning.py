"""PLAN_BASELINE, PLAN_REVIEW and REPLAN_PATCH: the plan, its debate, its patch."""

from pointsman.services.orchestrator.domain import builtin, criteria, events, peer_requests
from pointsman.services.orchestrator.domain.commands import (
    Answer,
    AnswersResult,
    DebateEnded,
    DebateResult,
    PlanKept,
    PlanResult,
)
from pointsman.services.orchestrator.domain.decision import DecisionBuilder, because
from pointsman.services.orchestrator.domain.enums import (
    Call,
    Capability,
    DebateVerdict,
    Move,
    Purpose,
    Question,
    Reply,
    Severity,
    State,
    TaskStatus,
)
from pointsman.services.orchestrator.domain.model import Assignment, OpenRemark, Plan
from pointsman.services.orchestrator.domain.run import CONFIDENCE_FLOOR, MAX_FEEDBACK_ROUNDS, MAX_REPLANS

MAX_BLOCKING_ROUNDS = 3
_SEVERITIES = tuple(Severity)


def make_plan(turn: DecisionBuilder) -> None:
    """Judge the plan that was just patched, or have one made."""
    if turn.run.plan_is_fresh:
        judge_plan(turn)
    else:
        _ask_for_plan(turn, Purpose.PLAN)


def _ask_for_plan(turn: DecisionBuilder, purpose: Purpose) -> None:
    if turn.is_present(Capability.PLAN):
        turn.assign(Assignment("", purpose, Capability.PLAN))
    else:
        take_plan(turn, builtin.plan(turn.run))


def planned(turn: DecisionBuilder, result: PlanResult) -> None:
    """The planner handed in a plan."""
    run = turn.run
    accepted = [task_id for task_id, task in run.tasks.items() if task.status is TaskStatus.ACCEPTED]
    plan = criteria.insist(result.plan, run.given_criteria, accepted)
    slots = plan.slots or builtin.survey_slots(run)
    take_plan(turn, Plan(plan.tasks, slots, plan.confidence, plan.document, risks=plan.risks))


def planner_lost(turn: DecisionBuilder, why: str = "") -> None:
    """No planner could do it: the built-in one does, and that is a risk."""
    statement = f"no planner finished; the built-in plan of one task was used{because(why)}"
    turn.risk("planner-lost", statement, severity=Severity.MEDIUM)
    take_plan(turn, builtin.plan(turn.run))


def take_plan(turn: DecisionBuilder, plan: Plan) -> None:
    """Store the plan."""
    turn.emit(events.Planned(plan, turn.run.attempts_so_far))
    epic_id, audited = turn.run.epic_id, turn.run.order.require_audit and not plan.built_in
    turn.call(Call.STORE_PLAN, lambda call: peer_requests.KeepPlan(call, epic_id, plan.document, audited))


def plan_kept(turn: DecisionBuilder, command: PlanKept) -> None:
    """The plan is stored: judge it, or the patch is applied."""
    turn.emit(events.PlanStored(command.call_id, command.audit_errors))
    if turn.in_state(State.REPLAN_PATCH):
        turn.move(Move.PATCH_APPLIED)
    else:
        judge_plan(turn)


def judge_plan(turn: DecisionBuilder) -> None:
    """Confidence first, then whether the plan has to be debated."""
    run = turn.run
    debate = run.order.routing.debate and not run.debated
    if run.effective_confidence < CONFIDENCE_FLOOR:
        turn.move(Move.CONFIDENCE_LT_0_6)
    elif debate or run.audit_errors:
        turn.move(Move.NEED_PLAN_REVIEW, "; ".join(run.audit_errors))
    else:
        turn.move(Move.SKIP_PLAN_REVIEW)


def debate_plan(turn: DecisionBuilder) -> None:
    """Let a critic look at the plan; the audit's errors block it without one."""
    if turn.run.audit_errors:
        _block(turn, "; ".join(turn.run.audit_errors))
    elif turn.is_present(Capability.DEBATE):
        turn.assign(Assignment("", Purpose.DEBATE, Capability.DEBATE))
    else:
        ask_person_to_debate(turn)


def ask_person_to_debate(turn: DecisionBuilder, why: str = "") -> None:
    """Nobody else can judge the plan."""
    names = tuple(task.outline.name for task in turn.run.tasks.values())
    nobody = f"no critic finished{because(why)}" if why else "no critic is there"
    turn.ask(Question.DEBATE, f"The plan has to be debated and {nobody}. Go on with it?", names)


def remarked(turn: DecisionBuilder, result: DebateResult) -> None:
    """The critic's remarks: the planner answers them first, if it is there."""
    turn.emit(events.FeedbackGiven(result.remarks))
    turn.named_risks(result.risks)
    if turn.run.remarks and turn.is_present(Capability.PLAN):
        turn.assign(Assignment("", Purpose.PLAN_ANSWER, Capability.PLAN))
    else:
        resolve_debate(turn, "")


def answered_remarks(turn: DecisionBuilder, result: AnswersResult) -> None:
    """The planner's answers go to the router with the critic's remarks."""
    if result.settled_keys:
        turn.emit(events.FeedbackSettled(result.settled_keys))
    resolve_debate(turn, result.statement)


def resolve_debate(turn: DecisionBuilder, proposal: str) -> None:
    """The router weighs the worst remark against the plan."""
    run = turn.run
    worst = _worst(tuple(run.remarks.values()))
    remark = worst.remark if worst else None
    turn.call(
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


def debate_resolved(turn: DecisionBuilder, command: DebateEnded) -> None:
    """Go by the router's verdict."""
    turn.emit(events.CallEnded(command.call_id))
    go_by_verdict(turn, command.verdict)


def answer_debate(turn: DecisionBuilder, command: Answer) -> None:
    """Go by a person's verdict."""
    if command.reply is Reply.MODIFY:
        _block(turn, command.text or "a person wants the plan changed")
    else:
        go_by_verdict(turn, DebateVerdict(str(command.reply)))


def go_by_verdict(turn: DecisionBuilder, verdict: DebateVerdict) -> None:
    """PROCEED passes, ESCALATE asks a person, MODIFY stays, blocks or releases."""
    if verdict is DebateVerdict.PROCEED:
        turn.move(Move.PASS_OR_FEEDBACK_LIMIT_REACHED, "passed")
    elif verdict is DebateVerdict.ESCALATE:
        turn.move(Move.FEEDBACK_ESCALATED, "the debate was escalated")
    else:
        _modify(turn)


def _modify(turn: DecisionBuilder) -> None:
    run = turn.run
    blocking = [i.remark.statement for i in run.remarks.values() if i.remark.blocking or run.order.routing.high_stakes]
    if blocking:
        _block(turn, "; ".join(blocking))
        return
    released = {key: item for key, item in run.remarks.items() if item.rounds >= MAX_FEEDBACK_ROUNDS}
    for key, item in released.items():
        turn.risk(f"feedback-{key}", item.remark.statement, severity=item.remark.severity)
    if released:
        turn.emit(events.FeedbackSettled(tuple(released)))
    if turn.run.remarks:
        turn.move(Move.NON_BLOCKING_FEEDBACK)
    else:
        turn.move(Move.PASS_OR_FEEDBACK_LIMIT_REACHED, "feedback limit reached" if released else "no remark is open")


def _block(turn: DecisionBuilder, reason: str) -> None:
    if turn.run.blocking_rounds >= MAX_BLOCKING_ROUNDS:
        turn.move(Move.FEEDBACK_ESCALATED, reason)
    else:
        turn.move(Move.BLOCKING_FEEDBACK, reason)


def patch_plan(turn: DecisionBuilder) -> None:
    """Have the plan patched; too many re-plans, or too little confidence, bring a person in."""
    run = turn.run
    if run.replans > MAX_REPLANS:
        turn.emit(events.ConfidenceSet(0.0))
    if turn.run.effective_confidence < CONFIDENCE_FLOOR:
        turn.move(Move.CONFIDENCE_LT_0_6)
    else:
        _ask_for_plan(turn, Purpose.PATCH)
