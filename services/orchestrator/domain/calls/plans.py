"""STORE_PLAN: the workflow service keeps the plan and audits it."""

from dataclasses import dataclass

from pointsman.services.orchestrator.domain import builtin
from pointsman.services.orchestrator.domain.calls.peer_call import PeerCall, fail_run
from pointsman.services.orchestrator.domain.commands import CallRefused
from pointsman.services.orchestrator.domain.decision import DecisionBuilder, because, last_setback
from pointsman.services.orchestrator.domain.enums import Call, Question, Severity, State, Trigger
from pointsman.services.orchestrator.domain.events import ConfidenceSet, Planned, PlanStored
from pointsman.services.orchestrator.domain.failures import TWICE_ALIKE, failed_alike
from pointsman.services.orchestrator.domain.model import Assignment, Plan
from pointsman.services.orchestrator.domain.run import CONFIDENCE_FLOOR


@dataclass(frozen=True, slots=True)
class StorePlan:
    """Store the plan in the epic."""

    call_id: str
    epic_id: str
    document: str
    audited: bool


def take_plan(builder: DecisionBuilder, plan: Plan, principal: str = "") -> None:
    """Store the plan."""
    builder.emit(Planned(plan, builder.run.attempts_so_far, principal))
    epic_id, audited = builder.run.epic_id, builder.run.order.require_audit and not plan.built_in
    builder.call(Call.STORE_PLAN, lambda call: StorePlan(call, epic_id, plan.document, audited))


def planner_lost(builder: DecisionBuilder, assignment: Assignment) -> None:
    """No planner could do it: the built-in one does; where two failed in the same way, a person is asked first."""
    if failed_alike(assignment.setbacks):
        builder.emit(ConfidenceSet(0.0))
        reason = f"no planner finished{TWICE_ALIKE}{because(last_setback(assignment))}"
        builder.transition(Trigger.CONFIDENCE_LT_0_6, reason)
    else:
        plan_without_planner(builder, because(last_setback(assignment)))


def plan_without_planner(builder: DecisionBuilder, why: str = "") -> None:
    """Take the built-in plan of one task, and note that as a risk."""
    statement = f"no planner finished; the built-in plan of one task was used{why}"
    builder.risk("planner-lost", statement, severity=Severity.MEDIUM)
    take_plan(builder, builtin.plan(builder.run))


def plan_stored(builder: DecisionBuilder, answer: PlanStored) -> None:
    """The plan is stored: judge it, or the patch is applied."""
    builder.emit(answer)
    if builder.in_state(State.REPLAN_PATCH):
        builder.transition(Trigger.PATCH_APPLIED)
    elif builder.in_state(State.PLAN_REVIEW):
        ask_about_plan(builder)
    else:
        judge_plan(builder)


def judge_plan(builder: DecisionBuilder) -> None:
    """Confidence first, then whether the plan has to be debated."""
    run = builder.run
    debate = (run.order.routing.debate and not run.debated) or (run.order.review_plan and not run.plan_approved)
    if run.effective_confidence < CONFIDENCE_FLOOR:
        builder.transition(Trigger.CONFIDENCE_LT_0_6)
    elif debate or run.audit_errors:
        builder.transition(Trigger.NEED_PLAN_REVIEW, "; ".join(run.audit_errors))
    else:
        builder.transition(Trigger.SKIP_PLAN_REVIEW)


def ask_about_plan(builder: DecisionBuilder) -> None:
    """Show the plan to a person before the work begins."""
    tasks = tuple(f"{task.outline.task_id}: {task.outline.name}" for task in builder.run.tasks.values())
    text = "The plan waits for you. PROCEED begins the work; MODIFY says what is to change, or brings another plan."
    builder.ask(Question.DEBATE, text, tasks)


def _plan_refused(builder: DecisionBuilder, command: CallRefused) -> None:
    """A plan that the workflow service cannot take is replaced by the built-in one, once."""
    if builder.run.plan_built_in:
        fail_run(builder, command)
    else:
        builder.risk("plan-refused", f"the planner's plan could not be stored: {command.reason}"[:1000])
        plan_without_planner(builder)


CALLS = (PeerCall(Call.STORE_PLAN, StorePlan, plan_stored, _plan_refused),)
