"""CODER_HANDOFF to CODER_EXEC: room to work, waves of tasks, one pipeline per task, stages as assignments."""

from datetime import datetime

from pointsman.services.orchestrator.domain import events, peer_requests
from pointsman.services.orchestrator.domain.commands import (
    Answer,
    CallRefused,
    PipelineTold,
    StageFailure,
    StageResult,
    TasksHandedOut,
    WorkflowTold,
)
from pointsman.services.orchestrator.domain.decision import DecisionBuilder, because, last_word
from pointsman.services.orchestrator.domain.enums import (
    PIPELINE_ENDED,
    AssignmentEnd,
    Call,
    Capability,
    Move,
    PipelineStatus,
    Purpose,
    Question,
    Severity,
    State,
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


def build_bundles(turn: DecisionBuilder) -> None:
    """The bundles are put together when an agent takes the work: nothing has to be asked."""
    turn.move(Move.HANDOFF_BUNDLE_READY)


def schedule(turn: DecisionBuilder) -> None:
    """Confidence first; then start the workflow, or see whether it goes on."""
    run = turn.run
    if run.effective_confidence < CONFIDENCE_FLOOR:
        turn.move(Move.CONFIDENCE_LT_0_6)
    elif not run.executing:
        turn.call(Call.EXECUTE, lambda call: peer_requests.Epic(call, run.epic_id))
    elif run.workflow_status in _GOING_ON:
        turn.move(Move.RESOURCE_READY)
    else:
        turn.move(Move.RESOURCE_BUSY, _why_it_waits(run.workflow_status, run.workflow_detail))


def _why_it_waits(status: WorkflowStatus, detail: str) -> str:
    """What the run waits for in the queue: what the workflow says of itself is no reason yet."""
    if status is WorkflowStatus.RUNNING:
        return detail or "no task is ready to be started"
    return f"the workflow is {status}: {detail}" if detail else f"the workflow is {status}"


def workflow_told(turn: DecisionBuilder, command: WorkflowTold) -> None:
    """The workflow's state decides where SCHEDULE and QUEUE go."""
    turn.emit(events.WorkflowSeen(command.call_id, command.status, command.detail))
    going_on = command.status in _GOING_ON
    if turn.in_state(State.SCHEDULE):
        if going_on:
            turn.move(Move.RESOURCE_READY)
        else:
            turn.move(Move.RESOURCE_BUSY, _why_it_waits(command.status, command.detail))
    elif turn.in_state(State.QUEUE) and going_on:
        turn.move(Move.RESOURCE_AVAILABLE)
    elif turn.in_state(State.QUEUE):
        wait_for_room(turn)


def wait_for_room(turn: DecisionBuilder) -> None:
    """Ask whoever can help, and look again by a timer."""
    run = turn.run
    why = run.workflow_detail or "it does not say why"
    if run.question is None and run.workflow_status is WorkflowStatus.PAUSED:
        turn.ask(Question.PAUSED, f"The workflow is paused: {why}. {HOW_TO_GO_ON}", (why,))
    elif run.question is None and run.workflow_status in (WorkflowStatus.BLOCKED, WorkflowStatus.FAILED):
        turn.ask(Question.BLOCKED, f"The workflow is {run.workflow_status}: {why}. {HOW_TO_FREE}", (why,))
    turn.set_timer(QUEUE_TIMER, min(FIRST_CHECK_SECONDS * 2**run.queue_checks, MAX_CHECK_SECONDS))


def look_at_workflow(turn: DecisionBuilder) -> None:
    """The queue's timer fired."""
    if turn.in_state(State.QUEUE) and Call.SEE_WORKFLOW not in turn.run.calls.values():
        turn.call(Call.SEE_WORKFLOW, lambda call: peer_requests.Epic(call, turn.run.epic_id))


def answer_workflow(turn: DecisionBuilder, command: Answer) -> None:
    """Pass a person's answer on to the workflow."""
    epic_id = turn.run.epic_id
    turn.call(
        Call.TELL_WORKFLOW,
        lambda call: peer_requests.TellWorkflow(call, epic_id, command.reply, command.text, command.task_id),
    )


def claim_wave(turn: DecisionBuilder) -> None:
    """Take as many ready tasks as may run at the same time."""
    run = turn.run
    limit = max(1, min(turn.free_slots, 64))
    turn.call(Call.CLAIM_WAVE, lambda call: peer_requests.ClaimWave(call, run.epic_id, limit))


def tasks_handed_out(turn: DecisionBuilder, command: TasksHandedOut) -> None:
    """Start one pipeline per claimed task; nothing claimed means to wait, or that all is done."""
    turn.emit(events.WorkflowSeen(command.call_id, command.status, command.detail))
    if not command.task_ids and command.status is not WorkflowStatus.COMPLETED:
        turn.move(Move.RESOURCE_BUSY, _why_it_waits(command.status, command.detail))
        return
    turn.emit(events.WaveClaimed("", command.task_ids))
    template = _template(turn) if command.task_ids else ""
    for task_id in command.task_ids:
        _start_pipeline(turn, task_id, template)
    advance_wave(turn)


def _template(turn: DecisionBuilder) -> str:
    if turn.run.order.template:
        return turn.run.order.template
    if turn.is_present(Capability.REVIEW):
        return WITH_REVIEW
    turn.risk(
        "no-reviewer", "no reviewer was there: the stages REVIEW and TEST were left out", severity=Severity.MEDIUM
    )
    return WITHOUT_REVIEW


def _start_pipeline(turn: DecisionBuilder, task_id: str, template: str) -> None:
    task = turn.run.tasks[task_id]
    earlier = f"{turn.run.run_id}/{task_id}/{task.attempt - 1}" if task.attempt > 1 else ""
    timeout = turn.run.order.barrier_timeout_seconds
    turn.call(
        Call.START_PIPELINE,
        lambda call: peer_requests.StartPipeline(call, task.pipeline_id, task_id, template, earlier, timeout),
        subject=task_id,
    )


def pipeline_told(turn: DecisionBuilder, command: PipelineTold) -> None:
    """Offer the delegated stages, and go on when every pipeline of the wave has ended."""
    task = turn.run.tasks[command.task_id]
    turn.emit(
        events.PipelineAdvanced(command.call_id, command.task_id, task.pipeline_id, command.status, command.reflections)
    )
    if command.failure is not None:
        _note_failure(turn, command.task_id, command.failure)
    if command.risks:
        turn.emit(events.RisksNoted(command.risks))
    if command.status in PIPELINE_ENDED:
        _withdraw_stages(turn, command.task_id)
    for delegation in command.delegations:
        _offer_stage(turn, command.task_id, delegation)
    if command.status is PipelineStatus.ESCALATED and turn.run.question is None:
        _ask_about_stage(turn, command.task_id)
    if command.barrier_due_at is not None and turn.in_state(State.DISPATCH, State.CODER_EXEC):
        _look_when_due(turn, command.task_id, command.barrier_due_at)
    advance_wave(turn)


def _look_when_due(turn: DecisionBuilder, task_id: str, due_at: datetime) -> None:
    left_seconds = (due_at - turn.now).total_seconds()
    turn.set_timer(
        f"{BARRIER_TIMER}{task_id}",
        left_seconds + BARRIER_GRACE_SECONDS if left_seconds > 0 else BARRIER_OVERDUE_SECONDS,
    )


def _note_failure(turn: DecisionBuilder, task_id: str, failure: StageFailure) -> None:
    turn.emit(events.StageFailed(task_id, failure.stage, failure.agent_id, failure.reason[:2000]))


def _ask_about_stage(turn: DecisionBuilder, task_id: str) -> None:
    said = turn.run.tasks[task_id].setbacks[-1:]
    reason = said[0] if said else "its barrier or its retries ran out"
    text = f"A stage of {task_id} cannot go on by itself ({reason}). Restart a stage, or skip it."
    turn.ask(Question.PIPELINE_ESCALATED, text, (task_id,))


def _withdraw_stages(turn: DecisionBuilder, task_id: str) -> None:
    """The pipeline has ended without waiting for these."""
    for item in (*turn.run.assignments.values(), *turn.run.held):
        if item.purpose is Purpose.STAGE and item.task_id == task_id:
            turn.end_assignment(item.assignment_id, AssignmentEnd.CANCELLED)


def _offer_stage(turn: DecisionBuilder, task_id: str, delegation: Delegation) -> None:
    run = turn.run
    offered = {(item.task_id, item.delegation_id) for item in (*run.assignments.values(), *run.held)}
    if (task_id, delegation.delegation_id) in offered:
        return
    capability = capability_of(delegation.stage)
    turn.assign(
        Assignment(
            "",
            Purpose.STAGE,
            capability,
            task_id,
            delegation.stage,
            delegation_id=delegation.delegation_id,
            node_context=delegation.node_context,
            directive=delegation.directive,
            excluded_agent=author_of(run.tasks[task_id]) if capability is Capability.REVIEW else "",
            needs_repository=bool(run.order.repository_id),
        )
    )


def author_of(task: Task) -> str:
    """Who wrote the work; that agent never judges it."""
    return task.work.author if task.work else ""


def advance_wave(turn: DecisionBuilder) -> None:
    """All started: into execution. All ended: into review."""
    wave = turn.run.wave_tasks.values()
    if turn.in_state(State.DISPATCH) and all(task.pipeline_status for task in wave):
        turn.move(Move.DISPATCH_SUCCESS)
    elif turn.in_state(State.CODER_EXEC) and all(task.pipeline_status in PIPELINE_ENDED for task in wave):
        turn.move(Move.CLAIMS_EVIDENCE_ARRIVED, "; ".join(map(_how_it_ended, wave)))


def _how_it_ended(task: Task) -> str:
    """What came of an attempt: claims with work, or none and why."""
    task_id, failed = task.outline.task_id, task.pipeline_status in (PipelineStatus.ABORTED, PipelineStatus.CANCELLED)
    if task.work is not None and not failed:
        claims = len(task.work.claims)
        return f"{task_id} handed in {claims} claim{'' if claims == 1 else 's'}"
    why = f": {task.setbacks[-1]}" if task.setbacks else ""
    return f"{task_id} was {str(task.pipeline_status).lower()}{why}" if failed else f"{task_id} handed in no work{why}"


def follow_pipelines(turn: DecisionBuilder) -> None:
    """Watch the pipelines by a timer too, in case one goes on without an agent's answer."""
    turn.set_timer(PIPELINES_TIMER, PIPELINES_CHECK_SECONDS)
    advance_wave(turn)


def look_at_pipelines(turn: DecisionBuilder) -> None:
    """The safety pass over live pipelines."""
    if not turn.in_state(State.DISPATCH, State.CODER_EXEC):
        return
    live = [key for key, task in turn.run.wave_tasks.items() if task.pipeline_status not in PIPELINE_ENDED]
    for task_id in live:
        see_pipeline(turn, task_id)
    if live:
        turn.set_timer(PIPELINES_TIMER, PIPELINES_CHECK_SECONDS)


def look_at_barrier(turn: DecisionBuilder, task_id: str) -> None:
    """A barrier of the task's pipeline should have stopped waiting by now."""
    task = turn.run.wave_tasks.get(task_id)
    if turn.in_state(State.DISPATCH, State.CODER_EXEC) and task and task.pipeline_status not in PIPELINE_ENDED:
        see_pipeline(turn, task_id)


def see_pipeline(turn: DecisionBuilder, task_id: str) -> None:
    """Ask how a task's pipeline is."""
    pipeline_id = turn.run.tasks[task_id].pipeline_id
    turn.call(Call.SEE_PIPELINE, lambda call: peer_requests.Pipeline(call, pipeline_id, task_id), subject=task_id)


def pipeline_gone(turn: DecisionBuilder, task_id: str) -> None:
    """The pipeline service does not know it any more: the attempt has failed."""
    pipeline_id = turn.run.tasks[task_id].pipeline_id
    turn.emit(events.PipelineAdvanced("", task_id, pipeline_id, PipelineStatus.ABORTED))
    _withdraw_stages(turn, task_id)
    advance_wave(turn)


def answer_pipeline(turn: DecisionBuilder, command: Answer) -> None:
    """Pass a person's answer on to the escalated pipeline."""
    task_id = command.task_id or escalated_task(turn.run)
    pipeline_id = turn.run.tasks[task_id].pipeline_id
    turn.call(
        Call.TELL_PIPELINE,
        lambda call: peer_requests.TellPipeline(call, pipeline_id, task_id, command.reply, command.stage, command.text),
        subject=task_id,
    )


def answer_refused(turn: DecisionBuilder, command: CallRefused) -> None:
    """A person's answer was passed on in vain: wait on, or ask again how the stage goes on."""
    if turn.in_state(State.QUEUE):
        wait_for_room(turn)
    elif turn.in_state(State.CODER_EXEC):
        text = f"That was not possible ({command.reason}). How should the stage go on?"
        turn.ask(Question.PIPELINE_ESCALATED, text, turn.run.wave)


def escalated_task(run: Run) -> str:
    """The task whose pipeline waits for a person."""
    escalated = (key for key, task in run.wave_tasks.items() if task.pipeline_status is PipelineStatus.ESCALATED)
    return next(escalated, "")


def stage_done(turn: DecisionBuilder, assignment: Assignment, agent_id: str, result: StageResult) -> None:
    """Keep the work, and hand the stage's word to the pipeline."""
    if result.work is not None and assignment.capability is Capability.CODE:
        turn.emit(events.WorkHandedIn(assignment.task_id, result.work))
    _complete_stage(turn, assignment, agent_id, result, lost=False)


def stage_lost(turn: DecisionBuilder, assignment: Assignment) -> None:
    """A lost writer aborts the attempt; a lost judge counts as a crash. A dead agent never passes."""
    said = f"no agent finished{because(last_word(assignment))}"
    _note_failure(turn, assignment.task_id, StageFailure(assignment.stage, "", said))
    result = StageResult()
    if assignment.capability is not Capability.REVIEW:
        result = StageResult("FAIL", "ABORT", Severity.HIGH, f"{AGENT_LOST}: {said}")
    _complete_stage(turn, assignment, "", result, lost=True)


def _complete_stage(
    turn: DecisionBuilder, assignment: Assignment, agent_id: str, result: StageResult, *, lost: bool
) -> None:
    pipeline_id = turn.run.tasks[assignment.task_id].pipeline_id
    turn.call(
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
        ),
        subject=assignment.task_id,
    )
