"""CODER_HANDOFF to CODER_EXEC: room to work, waves of tasks, one pipeline per task, stages as assignments."""

from dataclasses import replace

from pointsman.services.orchestrator.domain import events
from pointsman.services.orchestrator.domain.calls.claim_wave import ClaimWave
from pointsman.services.orchestrator.domain.calls.contest import contender_done, contender_lost
from pointsman.services.orchestrator.domain.calls.epics import Epic
from pointsman.services.orchestrator.domain.calls.pipelines import (
    NOT_JUDGED,
    ForwardStageAnswer,
    advance_wave,
    end_attempt,
    get_pipeline,
    offer_stages,
)
from pointsman.services.orchestrator.domain.calls.stage_completion import StageFailure, complete_stage, note_failure
from pointsman.services.orchestrator.domain.calls.workflow_status import GOING_ON, ForwardAnswer, why_it_waits
from pointsman.services.orchestrator.domain.commands import (
    Answer,
    CompleteAssignment,
    StageResult,
)
from pointsman.services.orchestrator.domain.decision import DecisionBuilder, because, last_setback
from pointsman.services.orchestrator.domain.enums import (
    PIPELINE_ENDED,
    WRITING,
    Call,
    Capability,
    PipelineStatus,
    Severity,
    State,
    Trigger,
)
from pointsman.services.orchestrator.domain.failures import TWICE_ALIKE, failed_alike, is_same_failure
from pointsman.services.orchestrator.domain.model import Assignment, Failure
from pointsman.services.orchestrator.domain.run import CONFIDENCE_FLOOR, Run

PIPELINES_TIMER = "pipelines"
PIPELINES_CHECK_SECONDS = 240.0
AGENT_LOST = "agent_lost"
REVIEW_STAGE = "REVIEW"
MOST_PARALLEL = 64


def build_bundles(builder: DecisionBuilder) -> None:
    """The bundles are put together when an agent takes the work: nothing has to be asked."""
    builder.transition(Trigger.HANDOFF_BUNDLE_READY)


def schedule(builder: DecisionBuilder) -> None:
    """Confidence first; then start the workflow, or see whether it goes on."""
    run = builder.run
    if run.effective_confidence < CONFIDENCE_FLOOR:
        builder.transition(Trigger.CONFIDENCE_LT_0_6)
    elif not run.executing:
        builder.call(Call.EXECUTE, lambda call: Epic(call, run.epic_id))
    elif run.workflow_status in GOING_ON:
        builder.transition(Trigger.RESOURCE_READY)
    else:
        builder.transition(Trigger.RESOURCE_BUSY, why_it_waits(run.workflow_status, run.workflow_detail))


def check_workflow(builder: DecisionBuilder) -> None:
    """The queue's timer fired."""
    if builder.in_state(State.QUEUE) and Call.GET_WORKFLOW not in builder.run.calls.values():
        builder.call(Call.GET_WORKFLOW, lambda call: Epic(call, builder.run.epic_id))


def answer_workflow(builder: DecisionBuilder, command: Answer) -> None:
    """Pass a person's answer on to the workflow."""
    epic_id = builder.run.epic_id
    builder.call(
        Call.FORWARD_ANSWER,
        lambda call: ForwardAnswer(call, epic_id, command.reply, command.text, command.task_id),
    )


def claim_wave(builder: DecisionBuilder) -> None:
    """Take as many ready tasks as may run at the same time."""
    run = builder.run
    side_by_side = max(1, run.order.best_of)
    limit = max(1, min(builder.free_slots // side_by_side, run.order.parallel or MOST_PARALLEL))
    builder.call(Call.CLAIM_WAVE, lambda call: ClaimWave(call, run.epic_id, limit))


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


def answer_pipeline(builder: DecisionBuilder, command: Answer) -> None:
    """Pass a person's answer on to the escalated pipeline."""
    task_id = command.task_id or escalated_task(builder.run)
    pipeline_id = builder.run.tasks[task_id].pipeline_id
    builder.call(
        Call.FORWARD_STAGE_ANSWER,
        lambda call: ForwardStageAnswer(call, pipeline_id, task_id, command.reply, command.stage, command.text),
        subject=task_id,
    )


def escalated_task(run: Run) -> str:
    """The task whose pipeline waits for a person."""
    escalated = (key for key, task in run.wave_tasks.items() if task.pipeline_status is PipelineStatus.ESCALATED)
    return next(escalated, "")


def stage_done(builder: DecisionBuilder, assignment: Assignment, result: StageResult, done: CompleteAssignment) -> None:
    """Keep the work and whose it is, or the review, and hand the stage's word to the pipeline."""
    if result.work is not None:
        result = replace(result, work=replace(result.work, stage=assignment.stage, principal=done.principal))
    if assignment.contender:
        contender_done(builder, assignment, result, done)
        return
    if result.work is not None and assignment.capability in WRITING:
        builder.emit(events.WorkHandedIn(assignment.task_id, result.work, done.principal))
    elif assignment.capability is Capability.REVIEW:
        _keep_review(builder, assignment, done.agent_id, result)
    elif assignment.capability is Capability.VERIFY:
        _stage_proven(builder, assignment, done.agent_id, result)
        return
    complete_stage(builder, assignment, done.agent_id, result, lost=False)


def _stage_proven(builder: DecisionBuilder, assignment: Assignment, agent_id: str, result: StageResult) -> None:
    """Keep what the verifier found, and let the judges begin; what failed needs no judge, and twice alike no third try."""
    task, found = builder.run.tasks[assignment.task_id], result.proof
    assert found is not None
    failure = Failure(found.reason, found.failing)
    earlier = [item for item in (task.proof.failure if task.proof else None, task.failed) if item]
    again = not found.accepted and any(is_same_failure(failure, item) for item in earlier[:1])
    builder.emit(
        events.StageProven(
            assignment.task_id, agent_id, assignment.patch, found.accepted, result.document,
            found.reason, found.failing, again,
        )
    )  # fmt: skip
    if found.accepted:
        complete_stage(builder, assignment, agent_id, result, lost=False)
        offer_stages(builder, assignment.task_id, task.deferred)
    elif again:
        note_failure(builder, assignment.task_id, StageFailure(assignment.stage, agent_id, found.reason))
        end_attempt(builder, assignment.task_id)
    else:
        for delegation in task.deferred:
            unjudged = replace(
                assignment,
                stage=delegation.stage,
                delegation_id=delegation.delegation_id,
                nonce=delegation.nonce,
            )
            complete_stage(builder, unjudged, "", replace(result, hint=NOT_JUDGED, report=""), lost=False)
        complete_stage(builder, assignment, agent_id, result, lost=False)


def _keep_review(builder: DecisionBuilder, assignment: Assignment, agent_id: str, result: StageResult) -> None:
    """The risks that a judge named; and which patch a REVIEW stage passed, since nobody has to review it again."""
    if assignment.patch and result.verdict == "PASS" and assignment.stage == REVIEW_STAGE:
        builder.emit(events.StageReviewed(assignment.task_id, agent_id, assignment.patch))
    builder.named_risks(result.risks, assignment.task_id)


def stage_lost(builder: DecisionBuilder, assignment: Assignment) -> None:
    """A lost writer aborts the attempt; a lost judge counts as a crash. A dead agent never passes."""
    if assignment.contender:
        contender_lost(builder, assignment)
        return
    again = failed_alike(assignment.setbacks)
    said = f"no agent finished{TWICE_ALIKE if again else ''}{because(last_setback(assignment))}"
    note_failure(builder, assignment.task_id, StageFailure(assignment.stage, "", said, again))
    result = StageResult()
    if assignment.capability not in (Capability.REVIEW, Capability.VERIFY):
        result = StageResult("FAIL", "ABORT", Severity.HIGH, f"{AGENT_LOST}: {said}")
    complete_stage(builder, assignment, "", result, lost=True)
    if assignment.capability is Capability.VERIFY:
        offer_stages(builder, assignment.task_id, builder.run.tasks[assignment.task_id].deferred)
