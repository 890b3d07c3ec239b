"""PLAN_BASELINE, PLAN_REVIEW and REPLAN_PATCH: the plan, its debate, its patch."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter

from pointsman.services.orchestrator.domain import builtin, criteria, events
from pointsman.services.orchestrator.domain.calls.plans import ask_about_plan, judge_plan, take_plan
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
from pointsman.services.orchestrator.domain.run import CONFIDENCE_FLOOR, MAX_REPLANS, Run

_SEVERITIES = tuple(Severity)
_BAD_PATH = re.compile(r"[\x00-\x1f\\]|^/|^~|^[A-Za-z]:|^\s*$")
MOST_PROBLEMS = 40


def make_plan(builder: DecisionBuilder) -> None:
    """Judge the plan that was just patched, or have one made."""
    if builder.run.plan_is_fresh:
        judge_plan(builder)
    else:
        _ask_for_plan(builder, Purpose.PLAN)


def _ask_for_plan(builder: DecisionBuilder, purpose: Purpose) -> None:
    is_brought = builder.run.order.brings_plan and builder.run.plan_count == 0
    if builder.run.earlier_plan is not None:
        _adopt(builder, builder.run.earlier_plan, "")
    elif builder.is_present(Capability.PLAN) and not is_brought:
        builder.assign(Assignment("", purpose, Capability.PLAN))
    else:
        take_plan(builder, builtin.plan(builder.run))


def plan_problems(plan: Plan, run: Run) -> list[str]:
    """Everything that keeps a plan from being carried out; an accepted task of the run may be left out of it."""
    found = [f"the task id {name} is used twice" for name in _repeated(task.task_id for task in plan.tasks)]
    criteria_ids = (criterion.criterion_id for task in plan.tasks for criterion in task.criteria)
    found += [f"the criterion id {name} is used twice" for name in _repeated(criteria_ids)]
    accepted = {task_id for task_id, task in run.tasks.items() if task.status is TaskStatus.ACCEPTED}
    known = accepted | {task.task_id for task in plan.tasks}
    for task in plan.tasks:
        found += [f"{task.task_id} depends on {name}, which is no task" for name in task.depends if name not in known]
        found += [f"{task.task_id}: '{path}' is no path below the repository" for path in task.files if not _safe(path)]
    return [*found, *_circle(plan)][:MOST_PROBLEMS]


def _circle(plan: Plan) -> list[str]:
    order: TopologicalSorter[str] = TopologicalSorter()
    for task in plan.tasks:
        order.add(task.task_id, *task.depends)
    try:
        order.prepare()
    except CycleError as error:
        return [f"tasks wait for each other in a circle: {' → '.join(error.args[1])}"]
    return []


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _safe(path: str) -> bool:
    """Whether a path or glob stays below its folder."""
    return not _BAD_PATH.search(path) and ".." not in path.split("/")


def planned(builder: DecisionBuilder, result: PlanResult, principal: str = "") -> None:
    """The planner handed in a plan."""
    _adopt(builder, result.plan, principal)


def _adopt(builder: DecisionBuilder, made: Plan, principal: str) -> None:
    """Take a plan with the user's own criteria in it, and a survey where it asks nothing."""
    run = builder.run
    accepted = [task_id for task_id, task in run.tasks.items() if task.status is TaskStatus.ACCEPTED]
    plan = criteria.insist(made, run.given_criteria, accepted)
    slots = plan.slots or builtin.survey_slots(run)
    take_plan(builder, replace(plan, slots=slots), principal)


def debate_plan(builder: DecisionBuilder) -> None:
    """Let a critic look at the plan; the audit's errors block it without one."""
    if builder.run.audit_errors:
        block(builder, "; ".join(builder.run.audit_errors))
    elif builder.run.order.review_plan and (builder.run.debated or not builder.run.order.routing.debate):
        ask_about_plan(builder)
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
    """Go by a person's verdict, or with the plan that comes with it."""
    if command.plan is not None:
        _adopt(builder, command.plan, command.principal)
    elif command.reply is Reply.MODIFY:
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
