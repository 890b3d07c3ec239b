"""CODER_HANDOFF to CODER_EXEC: room to work, waves of tasks, one pipeline per task, stages as assignments."""

from datetime import datetime

from pointsman.services.orchestrator.domain import events, peer_requests
from pointsman.services.orchestrator.domain.commands import (
    Answer,
    CallRefused,
    PipelineAdvanced,
    StageFailure,
    StageResult,
    WaveClaimed,
    WorkflowSeen,
)
from pointsman.services.orchestrator.domain.decision import DecisionBuilder, because, last_setback
from pointsman.services.orchestrator.domain.enums import (
    PIPELINE_ENDED,
    AssignmentEnd,
    Call,
    Capability,
    PipelineStatus,
    Purpose,
    Question,
    Severity,
    State,
    Trigger,
    WorkflowStatus,
)
from pointsman.services.orchestrator.domain.model import Assignment, Delegation, Task
from pointsman.services.orchestrator.domain.run import CONFIDENCE_FLOOR, Run

QUEUE_TIMER = "queue"
PIPELINES_TIMER = "pipelines"
FIRST_CHECK_SECONDS = 2.0
MAX_CHECK_SECONDS = 30.0
PIPELINES_CHECK_SECONDS = 240.0
BARRIER_TIMER = "barrier/"
"""A timer for each task whose pipeline has a barrier, with the task's id behind it."""
BARRIER_GRACE_SECONDS = 1.0
"""How long after a barrier's time the run looks: the pipeline service has to resolve it first."""
BARRIER_OVERDUE_SECONDS = 10.0
"""How long the run waits before it looks again at a barrier that is still there after its time."""
WITH_REVIEW = "quick-dev"
WITHOUT_REVIEW = "fix"
AGENT_LOST = "agent_lost"
HOW_TO_GO_ON = "RESUME goes on, SKIP leaves a task out, WAIVE lets a hard constraint go; or cancel the run."
HOW_TO_FREE = "UNBLOCK says that what it waits for is there, RETRY or SKIP settle a task; or cancel the run."
_GOING_ON = frozenset({WorkflowStatus.RUNNING, WorkflowStatus.COMPLETED})
_CAPABILITIES = {
    "PLAN": Capability.PLAN,
    "ARCH": Capability.DESIGN,
    "DESIGN": Capability.DESIGN,
    "DEV": Capability.CODE,
    "DOCS": Capability.CODE,
    "TEST:write": Capability.CODE,
}


def capability_of(stage: str) -> Capability:
    """Who can do a stage; whatever is not writing is judging."""
    return _CAPABILITIES.get(stage) or _CAPABILITIES.get(stage.partition(":")[0], Capability.REVIEW)


def build_bundles(builder: DecisionBuilder) -> None:
    """The bundles are put together when an agent takes the work: nothing has to be asked."""
    builder.transition(Trigger.HANDOFF_BUNDLE_READY)


def schedule(builder: DecisionBuilder) -> None:
    """Confidence first; then start the workflow, or see whether it goes on."""
    run = builder.run
    if run.effective_confidence < CONFIDENCE_FLOOR:
        builder.transition(Trigger.CONFIDENCE_LT_0_6)
    elif not run.executing:
        builder.call(Call.EXECUTE, lambda call: peer_requests.Epic(call, run.epic_id))
    elif run.workflow_status in _GOING_ON:
        builder.transition(Trigger.RESOURCE_READY)
    else:
        builder.transition(Trigger.RESOURCE_BUSY, _why_it_waits(run.workflow_status, run.workflow_detail))


def _why_it_waits(status: WorkflowStatus, detail: str) -> str:
    """What the run waits for in the queue: what the workflow says of itself is no reason yet."""
    if status is WorkflowStatus.RUNNING:
        return detail or "no task is ready to be started"
    return f"the workflow is {status}: {detail}" if detail else f"the workflow is {status}"


def workflow_seen(builder: DecisionBuilder, command: WorkflowSeen) -> None:
    """The workflow's state decides where SCHEDULE and QUEUE go."""
    builder.emit(events.WorkflowSeen(command.call_id, command.status, command.detail))
    going_on = command.status in _GOING_ON
    if builder.in_state(State.SCHEDULE):
        if going_on:
            builder.transition(Trigger.RESOURCE_READY)
        else:
            builder.transition(Trigger.RESOURCE_BUSY, _why_it_waits(command.status, command.detail))
    elif builder.in_state(State.QUEUE) and going_on:
        builder.transition(Trigger.RESOURCE_AVAILABLE)
    elif builder.in_state(State.QUEUE):
        wait_for_room(builder)


def wait_for_room(builder: DecisionBuilder) -> None:
    """Ask a person where one can help, and check again by a timer."""
    run = builder.run
    why = run.workflow_detail or "it does not say why"
    if run.question is None and run.workflow_status is WorkflowStatus.PAUSED:
        builder.ask(Question.PAUSED, f"The workflow is paused: {why}. {HOW_TO_GO_ON}", (why,))
    elif run.question is None and run.workflow_status in (WorkflowStatus.BLOCKED, WorkflowStatus.FAILED):
        builder.ask(Question.BLOCKED, f"The workflow is {run.workflow_status}: {why}. {HOW_TO_FREE}", (why,))
    builder.set_timer(QUEUE_TIMER, min(FIRST_CHECK_SECONDS * 2**run.queue_checks, MAX_CHECK_SECONDS))


def check_workflow(builder: DecisionBuilder) -> None:
    """The queue's timer fired."""
    if builder.in_state(State.QUEUE) and Call.GET_WORKFLOW not in builder.run.calls.values():
        builder.call(Call.GET_WORKFLOW, lambda call: peer_requests.Epic(call, builder.run.epic_id))


def answer_workflow(builder: DecisionBuilder, command: Answer) -> None:
    """Pass a person's answer on to the workflow."""
    epic_id = builder.run.epic_id
    builder.call(
        Call.FORWARD_ANSWER,
        lambda call: peer_requests.ForwardAnswer(call, epic_id, command.reply, command.text, command.task_id),
    )


def claim_wave(builder: DecisionBuilder) -> None:
    """Take as many ready tasks as may run at the same time."""
    run = builder.run
    limit = max(1, min(builder.free_slots, 64))
    builder.call(Call.CLAIM_WAVE, lambda call: peer_requests.ClaimWave(call, run.epic_id, limit))


def wave_claimed(builder: DecisionBuilder, command: WaveClaimed) -> None:
    """Start one pipeline per claimed task; nothing claimed means to wait, or that all is done."""
    builder.emit(events.WorkflowSeen(command.call_id, command.status, command.detail))
    if not command.task_ids and command.status is not WorkflowStatus.COMPLETED:
        builder.transition(Trigger.RESOURCE_BUSY, _why_it_waits(command.status, command.detail))
        return
    builder.emit(events.WaveClaimed("", command.task_ids))
    template = _template(builder) if command.task_ids else ""
    for task_id in command.task_ids:
        _start_pipeline(builder, task_id, template)
    advance_wave(builder)


def _template(builder: DecisionBuilder) -> str:
    if builder.run.order.template:
        return builder.run.order.template
    if builder.is_present(Capability.REVIEW):
        return WITH_REVIEW
    builder.risk(
        "no-reviewer", "no reviewer was there: the stages REVIEW and TEST were left out", severity=Severity.MEDIUM
    )
    return WITHOUT_REVIEW


def _start_pipeline(builder: DecisionBuilder, task_id: str, template: str) -> None:
    task = builder.run.tasks[task_id]
    earlier = f"{builder.run.run_id}/{task_id}/{task.attempt - 1}" if task.attempt > 1 else ""
    order = builder.run.order
    builder.call(
        Call.START_PIPELINE,
        lambda call: peer_requests.StartPipeline(
            call, task.pipeline_id, task_id, template, earlier, order.barrier_timeout_seconds, order.lenient
        ),
        subject=task_id,
    )


def pipeline_advanced(builder: DecisionBuilder, command: PipelineAdvanced) -> None:
    """Offer the delegated stages, and go on when every pipeline of the wave has ended."""
    task = builder.run.tasks[command.task_id]
    builder.emit(
        events.PipelineAdvanced(command.call_id, command.task_id, task.pipeline_id, command.status, command.reflections)
    )
    if command.failure is not None:
        _note_failure(builder, command.task_id, command.failure)
    if command.risks:
        builder.emit(events.RisksNoted(command.risks))
    if command.status in PIPELINE_ENDED:
        _withdraw_stages(builder, command.task_id)
    for delegation in command.delegations:
        _offer_stage(builder, command.task_id, delegation)
    if command.status is PipelineStatus.ESCALATED and builder.run.question is None:
        _ask_about_stage(builder, command.task_id)
    if command.barrier_due_at is not None and builder.in_state(State.DISPATCH, State.CODER_EXEC):
        _look_when_due(builder, command.task_id, command.barrier_due_at)
    advance_wave(builder)


def _look_when_due(builder: DecisionBuilder, task_id: str, due_at: datetime) -> None:
    left_seconds = (due_at - builder.now).total_seconds()
    builder.set_timer(
        f"{BARRIER_TIMER}{task_id}",
        left_seconds + BARRIER_GRACE_SECONDS if left_seconds > 0 else BARRIER_OVERDUE_SECONDS,
    )


def _note_failure(builder: DecisionBuilder, task_id: str, failure: StageFailure) -> None:
    builder.emit(events.StageFailed(task_id, failure.stage, failure.agent_id, failure.reason[:2000]))


def _ask_about_stage(builder: DecisionBuilder, task_id: str) -> None:
    said = builder.run.tasks[task_id].setbacks[-1:]
    reason = said[0] if said else "its barrier or its retries ran out"
    text = f"A stage of {task_id} cannot go on by itself ({reason}). Restart a stage, or skip it."
    builder.ask(Question.PIPELINE_ESCALATED, text, (task_id,))


def _withdraw_stages(builder: DecisionBuilder, task_id: str) -> None:
    """The pipeline has ended without waiting for these."""
    for item in (*builder.run.assignments.values(), *builder.run.held):
        if item.purpose is Purpose.STAGE and item.task_id == task_id:
            builder.end_assignment(item.assignment_id, AssignmentEnd.CANCELLED)


def _offer_stage(builder: DecisionBuilder, task_id: str, delegation: Delegation) -> None:
    run = builder.run
    offered = {(item.task_id, item.delegation_id) for item in (*run.assignments.values(), *run.held)}
    if (task_id, delegation.delegation_id) in offered:
        return
    capability = capability_of(delegation.stage)
    builder.assign(
        Assignment(
            "",
            Purpose.STAGE,
            capability,
            task_id,
            delegation.stage,
            delegation_id=delegation.delegation_id,
            node_context=delegation.node_context,
            directive=delegation.directive,
            nonce=delegation.nonce,
            excluded_agent=author_of(run.tasks[task_id]) if capability is Capability.REVIEW else "",
            needs_repository=bool(run.order.repository_id),
        )
    )


def author_of(task: Task) -> str:
    """Who wrote the work; that agent never judges it."""
    return task.work.author if task.work else ""


def advance_wave(builder: DecisionBuilder) -> None:
    """All started: into execution. All ended: into review."""
    wave = builder.run.wave_tasks.values()
    if builder.in_state(State.DISPATCH) and all(task.pipeline_status for task in wave):
        builder.transition(Trigger.DISPATCH_SUCCESS)
    elif builder.in_state(State.CODER_EXEC) and all(task.pipeline_status in PIPELINE_ENDED for task in wave):
        builder.transition(Trigger.CLAIMS_EVIDENCE_ARRIVED, "; ".join(map(_how_it_ended, wave)))


def _how_it_ended(task: Task) -> str:
    """What came of an attempt: claims with work, or none and why."""
    task_id, failed = task.outline.task_id, task.pipeline_status in (PipelineStatus.ABORTED, PipelineStatus.CANCELLED)
    if task.work is not None and not failed:
        claims = len(task.work.claims)
        return f"{task_id} handed in {claims} claim{'' if claims == 1 else 's'}"
    why = f": {task.setbacks[-1]}" if task.setbacks else ""
    return f"{task_id} was {str(task.pipeline_status).lower()}{why}" if failed else f"{task_id} handed in no work{why}"


def follow_pipelines(builder: DecisionBuilder) -> None:
    """Watch the pipelines by a timer too, in case one goes on without an agent's answer."""
    builder.set_timer(PIPELINES_TIMER, PIPELINES_CHECK_SECONDS)
    advance_wave(builder)


def check_pipelines(builder: DecisionBuilder) -> None:
    """The safety pass over live pipelines."""
    if not builder.in_state(State.DISPATCH, State.CODER_EXEC):
        return
    live = [key for key, task in builder.run.wave_tasks.items() if task.pipeline_status not in PIPELINE_ENDED]
    for task_id in live:
        get_pipeline(builder, task_id)
    if live:
        builder.set_timer(PIPELINES_TIMER, PIPELINES_CHECK_SECONDS)


def check_barrier(builder: DecisionBuilder, task_id: str) -> None:
    """A barrier of the task's pipeline should have stopped waiting by now."""
    task = builder.run.wave_tasks.get(task_id)
    if builder.in_state(State.DISPATCH, State.CODER_EXEC) and task and task.pipeline_status not in PIPELINE_ENDED:
        get_pipeline(builder, task_id)


def get_pipeline(builder: DecisionBuilder, task_id: str) -> None:
    """Ask how a task's pipeline is."""
    pipeline_id = builder.run.tasks[task_id].pipeline_id
    builder.call(Call.GET_PIPELINE, lambda call: peer_requests.Pipeline(call, pipeline_id, task_id), subject=task_id)


def pipeline_gone(builder: DecisionBuilder, task_id: str) -> None:
    """The pipeline service does not know it any more: the attempt has failed."""
    pipeline_id = builder.run.tasks[task_id].pipeline_id
    builder.emit(events.PipelineAdvanced("", task_id, pipeline_id, PipelineStatus.ABORTED))
    _withdraw_stages(builder, task_id)
    advance_wave(builder)


def answer_pipeline(builder: DecisionBuilder, command: Answer) -> None:
    """Pass a person's answer on to the escalated pipeline."""
    task_id = command.task_id or escalated_task(builder.run)
    pipeline_id = builder.run.tasks[task_id].pipeline_id
    builder.call(
        Call.FORWARD_STAGE_ANSWER,
        lambda call: peer_requests.ForwardStageAnswer(
            call, pipeline_id, task_id, command.reply, command.stage, command.text
        ),
        subject=task_id,
    )


def answer_refused(builder: DecisionBuilder, command: CallRefused) -> None:
    """A person's answer was passed on in vain: wait on, or ask again how the stage goes on."""
    if builder.in_state(State.QUEUE):
        wait_for_room(builder)
    elif builder.in_state(State.CODER_EXEC):
        text = f"That was not possible ({command.reason}). How should the stage go on?"
        builder.ask(Question.PIPELINE_ESCALATED, text, builder.run.wave)


def escalated_task(run: Run) -> str:
    """The task whose pipeline waits for a person."""
    escalated = (key for key, task in run.wave_tasks.items() if task.pipeline_status is PipelineStatus.ESCALATED)
    return next(escalated, "")


def stage_done(builder: DecisionBuilder, assignment: Assignment, agent_id: str, result: StageResult) -> None:
    """Keep the work, and hand the stage's word to the pipeline."""
    if result.work is not None and assignment.capability is Capability.CODE:
        builder.emit(events.WorkHandedIn(assignment.task_id, result.work))
    _complete_stage(builder, assignment, agent_id, result, lost=False)


def stage_lost(builder: DecisionBuilder, assignment: Assignment) -> None:
    """A lost writer aborts the attempt; a lost judge counts as a crash. A dead agent never passes."""
    said = f"no agent finished{because(last_setback(assignment))}"
    _note_failure(builder, assignment.task_id, StageFailure(assignment.stage, "", said))
    result = StageResult()
    if assignment.capability is not Capability.REVIEW:
        result = StageResult("FAIL", "ABORT", Severity.HIGH, f"{AGENT_LOST}: {said}")
    _complete_stage(builder, assignment, "", result, lost=True)


def _complete_stage(
    builder: DecisionBuilder, assignment: Assignment, agent_id: str, result: StageResult, *, lost: bool
) -> None:
    pipeline_id = builder.run.tasks[assignment.task_id].pipeline_id
    builder.call(
        Call.COMPLETE_STAGE,
        lambda call: peer_requests.CompleteStage(
            call,
            pipeline_id,
            assignment.task_id,
            assignment.stage,
            assignment.delegation_id,
            agent_id,
            result.verdict,
            result.route,
            result.severity,
            result.hint,
            result.transcript,
            result.report,
            lost,
            assignment.nonce,
        ),
        subject=assignment.task_id,
    )
