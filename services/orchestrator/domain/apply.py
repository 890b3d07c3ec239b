"""How each event of the journal changes the run."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from pointsman.services.chassis.core.machine import Event
from pointsman.services.orchestrator.domain import (
    contender_events,
    contenders,
    events,
    limit_events,
    permission_events,
    permissions,
    provider_limits,
    spending,
)
from pointsman.services.orchestrator.domain.enums import (
    Call,
    Grade,
    InternalEvent,
    Question,
    Reply,
    State,
    TaskStatus,
    Trigger,
    WorkflowStatus,
)
from pointsman.services.orchestrator.domain.model import (
    Failure,
    Judgement,
    OpenRemark,
    Remark,
    Slot,
    StageProof,
    Task,
    Usage,
)
from pointsman.services.orchestrator.domain.run import Run, RunState

KEPT_SETBACKS = 8
_TRIGGERS = {str(trigger): trigger for trigger in Trigger}
_STATES = {str(state): state for state in State}


def apply(state: RunState | None, event: Event, at: datetime) -> RunState:
    """Apply one event to the run."""
    if state is None:
        return RunState(_submitted(event.data, at))
    run = _forget_call(state.run, event.data)
    is_internal = event.name in _INTERNAL_NAMES
    run = _APPLY[type(event.data)](run, event.data) if is_internal else _transitioned(run, event, at)
    spent = run.spent
    run.spent = replace(spent, transitions=spent.transitions + 1)
    return RunState(run, state.leases, state.present, state.crews, state.asked)


def _submitted(data: events.Submitted, at: datetime) -> Run:
    origin = data.order.origin
    return Run(
        data.run_id, State.BOOT, data.intent, data.order, data.budget, at, at,
        confidence=data.order.routing.confidence, epic_id=data.order.epic_id, spent=Usage(transitions=1),
        earlier_plan=data.plan, accepted_commit=origin.accepted_commit if origin else "",
        accepted_bundle=origin.accepted_bundle if origin else "",
    )  # fmt: skip


def _forget_call(run: Run, data: Any) -> Run:
    call_id = getattr(data, "call_id", "")
    if call_id not in run.calls:
        return run
    return run.change(calls={key: call for key, call in run.calls.items() if key != call_id})


def _transitioned(run: Run, event: Event, at: datetime) -> Run:
    trigger, data = _TRIGGERS[event.name], event.data
    run.status, run.since = _STATES[event.target], at
    if trigger not in _WORK_GOES_ON:
        run.question, run.held = None, ()
    if data.is_replan:
        run = run.change(replans=run.replans + 1)
    change = _TRIGGER_APPLY.get(trigger)
    return change(run, data) if change else run


_WORK_GOES_ON = frozenset(
    {Trigger.DISPATCH_SUCCESS, Trigger.RESULT_ARRIVED, Trigger.ARTIFACTS_LOADED, Trigger.NEED_MORE_RESULTS}
)
"""Transitions after which held assignments, and the question about them, remain."""


def _replanning(run: Run, data: events.Transitioned) -> Run:
    return run.change(asserted=None, plan_is_fresh=False, reasons=(*run.reasons, data.reason), calls={})


def _doubted(run: Run, data: events.Transitioned) -> Run:
    return run.change(reasons=(*run.reasons, data.reason)) if data.reason else run


def _judged_plan(run: Run, data: events.Transitioned) -> Run:  # noqa: ARG001
    return run.change(plan_is_fresh=False)


def _blocked_plan(run: Run, data: events.Transitioned) -> Run:
    return run.change(blocking_rounds=run.blocking_rounds + 1, reasons=(*run.reasons, data.reason))


def _passed_plan(run: Run, data: events.Transitioned) -> Run:  # noqa: ARG001
    return run.change(debated=True, remarks={}, blocking_rounds=0)


def _directed(run: Run, data: events.Transitioned) -> Run:
    return run.change(disposition=data.reason, replans=0, blocking_rounds=0, plan_is_fresh=False)


def _ended(run: Run, data: events.Transitioned) -> Run:
    return run.change(end_reason=data.reason, calls={}, assignments={}, permissions={})


_TRIGGER_APPLY: Mapping[Trigger, Callable[[Run, events.Transitioned], Run]] = {
    Trigger.NEED_REPLAN: _replanning,
    Trigger.DISPATCH_FAILED: _replanning,
    Trigger.REQUIREMENT_CHANGED: _replanning,
    Trigger.REQUIREMENT_CHANGED_OR_BLOCKED: _replanning,
    Trigger.CONFIDENCE_LT_0_6: _doubted,
    Trigger.NEED_PLAN_REVIEW: _judged_plan,
    Trigger.SKIP_PLAN_REVIEW: _judged_plan,
    Trigger.BLOCKING_FEEDBACK: _blocked_plan,
    Trigger.PASS_OR_FEEDBACK_LIMIT_REACHED: _passed_plan,
    Trigger.SWITCH: _directed,
    Trigger.KEEP: _directed,
    Trigger.MERGE: _directed,
    Trigger.CLARIFIED: _directed,
    Trigger.CANCEL: _ended,
    Trigger.FATAL_ERROR: _ended,
}


def _called(run: Run, data: events.Called) -> Run:
    calls = {**run.calls, data.call_id: data.call}
    checks = run.queue_checks + (data.call is Call.GET_WORKFLOW)
    return run.change(calls=calls, call_count=run.call_count + 1, queue_checks=checks)


def _resumables_found(run: Run, data: events.ResumablesFound) -> Run:
    return run.change(candidates=data.candidates)


def _epic_stored(run: Run, data: events.EpicStored) -> Run:
    return run.change(queued_epic_id=data.epic_id) if data.queued else run.change(epic_id=data.epic_id)


def _resumed(run: Run, data: events.Resumed) -> Run:
    run = _planned(run.change(epic_id=data.epic_id, intent=data.intent), events.Planned(data.plan))
    tasks = dict(run.tasks)
    for task_id in data.accepted:
        tasks[task_id] = replace(tasks[task_id], status=TaskStatus.ACCEPTED)
    return run.change(tasks=tasks, plan_is_fresh=False)


def _with(known: tuple[str, ...], name: str) -> tuple[str, ...]:
    """The names with one more, each once."""
    return known if not name or name in known else (*known, name)


def _was_approved(run: Run) -> bool:
    """Whether the plan that comes now was approved in the run that this one does again."""
    return run.earlier_plan is not None and run.order.origin is not None and run.order.origin.plan_approved


def _planned(run: Run, data: events.Planned) -> Run:
    plan = data.plan
    accepted_before = {task_id: task for task_id, task in run.tasks.items() if task.status is TaskStatus.ACCEPTED}
    new = {outline.task_id: Task(outline, attempt=data.attempts.get(outline.task_id, 0)) for outline in plan.tasks}
    tasks = {**accepted_before, **{task_id: accepted_before.get(task_id, task) for task_id, task in new.items()}}
    slots = {slot.slot_id: Slot(slot.question) for slot in plan.slots}
    return run.change(tasks=tasks, slots=slots, confidence=plan.confidence, plan_count=run.plan_count + 1, audit_errors=(),
        plan_built_in=plan.built_in, plan_is_fresh=True, reasons=(), risks=(*run.risks, *plan.risks), wave=(), attempts=data.attempts,
        plan_authors=_with(run.plan_authors, data.principal), plan_approved=_was_approved(run), earlier_plan=None,
    )  # fmt: skip


def _plan_stored(run: Run, data: events.PlanStored) -> Run:
    return run.change(audit_errors=data.audit_errors)


def _feedback_given(run: Run, data: events.FeedbackGiven) -> Run:
    def rounds(remark: Remark) -> int:
        earlier = run.remarks.get(remark.key)
        return earlier.rounds + 1 if earlier else 1

    return run.change(remarks={remark.key: OpenRemark(remark, rounds(remark)) for remark in data.remarks})


def _feedback_settled(run: Run, data: events.FeedbackSettled) -> Run:
    return run.change(remarks={key: item for key, item in run.remarks.items() if key not in data.keys})


def _researched(run: Run, data: events.Researched) -> Run:
    if data.assignment_id:
        run = _end(run, data)
    question = run.slots[data.slot].question
    slot = Slot(question, settled=True, usable=data.usable, confidence=data.confidence, again=data.again)
    return run.change(slots={**run.slots, data.slot: slot})


def _unchanged(run: Run, data: Any) -> Run:  # noqa: ARG001
    return run


def _workflow_seen(run: Run, data: events.WorkflowSeen) -> Run:
    executing = data.status not in (WorkflowStatus.UNKNOWN, WorkflowStatus.IDLE, WorkflowStatus.PLANNED)
    return run.change(workflow_status=data.status, workflow_detail=data.detail, executing=executing)


def _wave_claimed(run: Run, data: events.WaveClaimed) -> Run:
    tasks = dict(run.tasks)
    for task_id in data.task_ids:
        task = tasks[task_id]
        attempt = task.attempt + 1
        tasks[task_id] = Task(
            task.outline, TaskStatus.RUNNING, attempt, task.rejections, f"{run.run_id}/{task_id}/{attempt}",
            spent=task.spent, failed=task.failed,
        )  # fmt: skip
    return run.change(tasks=tasks, wave=data.task_ids, wave_verdict="", queue_checks=0)


def _pipeline_advanced(run: Run, data: events.PipelineAdvanced) -> Run:
    reflections = data.reflections or run.tasks[data.task_id].reflections
    return run.change_task(data.task_id, pipeline_status=data.status, reflections=reflections)


def _stage_failed(run: Run, data: events.StageFailed) -> Run:
    said = (*run.tasks[data.task_id].setbacks, f"{data.stage}: {data.reason}")
    is_stuck = run.tasks[data.task_id].is_stuck or data.again
    return run.change_task(data.task_id, setbacks=said[-KEPT_SETBACKS:], is_stuck=is_stuck)


def _stage_reviewed(run: Run, data: events.StageReviewed) -> Run:
    return run.change_task(data.task_id, reviewed_patch=data.patch)


def _stage_proven(run: Run, data: events.StageProven) -> Run:
    proof = StageProof(data.patch, None if data.passed else Failure(data.reason, data.failing), data.again)
    return run.change_task(data.task_id, proof=proof, deferred=())


def _stage_deferred(run: Run, data: events.StageDeferred) -> Run:
    others = (item for item in run.tasks[data.task_id].deferred if item.stage != data.stage)
    return run.change_task(data.task_id, deferred=(*others, data.delegation))


def _work_handed_in(run: Run, data: events.WorkHandedIn) -> Run:
    authors = _with(run.authors.get(data.task_id, ()), data.principal)
    task = run.tasks[data.task_id]
    first = task.start_of(data.work.stage) if data.work.stage else task.first
    return run.change_task(data.task_id, work=data.work, first=first).change(
        authors={**run.authors, data.task_id: authors}
    )


def _task_judged(run: Run, data: events.TaskJudged) -> Run:
    said = run.tasks[data.task_id].judgement
    judgement = Judgement(
        said.reviewed or data.judge == "reviewer", data.accepted, data.reason or said.reason, data.replan or said.replan,
        data.grade or said.grade, data.failing or said.failing, data.proof_reused or said.proof_reused,
    )  # fmt: skip
    return run.change_task(data.task_id, judgement=judgement, status=TaskStatus.REVIEWING)


def _wave_verified(run: Run, data: events.WaveVerified) -> Run:
    return run.change(accepted_commit=data.accepted_commit or run.accepted_commit, accepted_bundle=data.bundle)


def _wave_concluded(run: Run, data: events.WaveConcluded) -> Run:
    tasks = dict(run.tasks)
    for task_id, task in run.wave_tasks.items():
        accepted = bool(task.judgement.accepted)
        rejections = task.rejections if accepted else (*task.rejections, task.judgement.reason)
        status = TaskStatus.ACCEPTED if accepted else TaskStatus.REJECTED
        forced = any(risk.forced and risk.task_id == task_id for risk in run.risks)
        grade = (Grade.FORCED if forced else task.judgement.grade) if accepted else None
        failed = None if accepted else Failure(task.judgement.reason, task.judgement.failing)
        tasks[task_id] = replace(task, status=status, rejections=rejections, grade=grade, failed=failed)
    return run.change(tasks=tasks, wave_verdict=data.verdict)


def _assigned(run: Run, data: events.Assigned) -> Run:
    spent = replace(run.spent, assignments=run.spent.assignments + (not data.is_free))
    key, task = data.assignment.assignment_id, run.tasks.get(data.assignment.task_id)
    if (run.held or run.named) and not data.is_free:
        run = spending.count_named(run, key)
    held = tuple(held for held in run.held if held.assignment_id != key)
    if task is not None and task.deferred:
        left = tuple(item for item in task.deferred if item.delegation_id != data.assignment.delegation_id)
        run = run.change_task(data.assignment.task_id, deferred=left)
    return run.change(assignments={**run.assignments, key: data.assignment}, spent=spent, held=held)


def _assignment_retried(run: Run, data: events.AssignmentRetried) -> Run:
    run = spending.spend(run, data)
    tried = run.assignments[data.assignment_id]
    tried = replace(tried, setbacks=(*tried.setbacks, data.error), restarts=tried.restarts + data.restarts)
    return run.change(assignments={**run.assignments, data.assignment_id: tried})


def _end(run: Run, data: events.AssignmentEnded | events.Researched) -> Run:
    run = spending.spend(run, data)
    left = dict(run.assignments)
    left.pop(data.assignment_id, None)
    held = tuple(item for item in run.held if item.assignment_id != data.assignment_id) if run.held else ()
    run = provider_limits.without(run.change(assignments=left, held=held), data.assignment_id)
    return permissions.apply_assignment_ended(run, data.assignment_id)


def _asked(run: Run, data: events.Asked) -> Run:
    return run.change(question=data.question, question_count=run.question_count + 1)


def _answered(run: Run, data: events.Answered) -> Run:
    is_about_plan = run.question is not None and run.question.kind is Question.DEBATE
    approved = run.plan_approved or (is_about_plan and data.reply is Reply.PROCEED)
    run = permissions.apply_answered(run, data.reply)
    return run.change(question=None, budget=data.budget or run.budget, plan_approved=approved)


def _budget_held(run: Run, data: events.BudgetHeld) -> Run:
    run = spending.count_named(run, data.assignment.assignment_id)
    others = (held for held in run.held if held.assignment_id != data.assignment.assignment_id)
    return run.change(held=(*others, data.assignment))


def _intent_changed(run: Run, data: events.IntentChanged) -> Run:
    return run.change(intent=data.intent)


def _labelled(run: Run, data: events.Labelled) -> Run:
    labels = {key: value for key, value in {**run.order.labels, **data.labels}.items() if value}
    return run.change(order=replace(run.order, labels=labels))


def _confidence_set(run: Run, data: events.ConfidenceSet) -> Run:
    if data.asserted:
        return run.change(asserted=data.confidence)
    return run.change(confidence=data.confidence, asserted=None)


def _risks_noted(run: Run, data: events.RisksNoted) -> Run:
    known = {risk.key for risk in run.risks}
    return run.change(risks=(*run.risks, *(risk for risk in data.risks if risk.key not in known)))


_INTERNAL_NAMES = frozenset(str(name) for name in InternalEvent)
_APPLY: Mapping[type, Callable[[Run, Any], Run]] = {
    events.Called: _called,
    events.Labelled: _labelled,
    events.CallEnded: _unchanged,
    events.ResumablesFound: _resumables_found,
    events.EpicStored: _epic_stored,
    events.Resumed: _resumed,
    events.Planned: _planned,
    events.PlanStored: _plan_stored,
    events.FeedbackGiven: _feedback_given,
    events.FeedbackSettled: _feedback_settled,
    events.Researched: _researched,
    events.Designed: _unchanged,
    events.WorkflowSeen: _workflow_seen,
    events.WaveClaimed: _wave_claimed,
    events.PipelineAdvanced: _pipeline_advanced,
    events.StageFailed: _stage_failed,
    events.StageReviewed: _stage_reviewed,
    events.StageProven: _stage_proven,
    events.StageDeferred: _stage_deferred,
    events.WorkHandedIn: _work_handed_in,
    contender_events.ContenderHandedIn: contenders.apply_handed_in,
    contender_events.ContenderProven: contenders.apply_proven,
    contender_events.ContenderChosen: contenders.apply_chosen,
    permission_events.PermissionRequested: permissions.apply_requested,
    limit_events.AccountPaused: provider_limits.apply_paused,
    limit_events.WorkTakenUp: provider_limits.apply_taken_up,
    events.TaskJudged: _task_judged,
    events.WaveVerified: _wave_verified,
    events.WaveConcluded: _wave_concluded,
    events.Assigned: _assigned,
    events.AssignmentRetried: _assignment_retried,
    events.AssignmentEnded: _end,
    events.LeaseLost: lambda run, _: run,
    events.Asked: _asked,
    events.Answered: _answered,
    events.BudgetHeld: _budget_held,
    events.IntentChanged: _intent_changed,
    events.ConfidenceSet: _confidence_set,
    events.RisksNoted: _risks_noted,
}
