"""What stops live work, and how a run lets go of what it held."""

from pointsman.services.orchestrator.domain.calls.epics import OTHER_RUN_WINS, Epic
from pointsman.services.orchestrator.domain.calls.other_runs import StartNext, TellEntry, TellSchedule
from pointsman.services.orchestrator.domain.calls.pipelines import Pipeline
from pointsman.services.orchestrator.domain.calls.release import ReleaseEpic
from pointsman.services.orchestrator.domain.calls.report_outcome import ReportOutcome
from pointsman.services.orchestrator.domain.decision import WALL_CLOCK, DecisionBuilder
from pointsman.services.orchestrator.domain.enums import (
    PIPELINE_ENDED,
    AssignmentEnd,
    Call,
    State,
    TaskStatus,
)
from pointsman.services.orchestrator.domain.intake import MERGED
from pointsman.services.orchestrator.domain.run import Run

PARKED = "parked"


def stop_work(builder: DecisionBuilder) -> None:
    """Cancel live assignments and pipelines, and give tasks in progress back."""
    run = builder.run
    builder.drop_effects = True
    for assignment_id in run.assignments:
        builder.end_assignment(assignment_id, AssignmentEnd.CANCELLED)
    for task_id, task in run.wave_tasks.items():
        if task.pipeline_id and task.status is TaskStatus.RUNNING and task.pipeline_status not in PIPELINE_ENDED:
            builder.send(Call.CANCEL_PIPELINE, Pipeline("", task.pipeline_id, task_id))
    if not run.ended:
        _release(builder, disown=False)
        builder.set_timer(WALL_CLOCK, max(0.0, (builder.deadline - builder.now).total_seconds()))


def release_or_cancel_workflow(builder: DecisionBuilder) -> None:
    """Cancels the workflow of a cancelled run; that of a parked, stored, merged or failed run stays resumable."""
    if not builder.run.epic_id:
        return
    if leaves_epic_resumable(builder.run):
        _release(builder, disown=True)
    else:
        builder.send(Call.CANCEL_PLAN, Epic("", builder.run.epic_id))


def leaves_epic_resumable(run: Run) -> bool:
    """Whether the ended run leaves its epic for another one."""
    return run.status is State.FAILED or run.end_reason in (PARKED, OTHER_RUN_WINS) or run.end_reason.startswith(MERGED)


def _release(builder: DecisionBuilder, *, disown: bool) -> None:
    run = builder.run
    unsettled = run.wave_verdict != "RETRY"
    tasks = run.wave_tasks.items() if unsettled else ()
    task_ids = tuple(key for key, task in tasks if task.status is not TaskStatus.ACCEPTED)
    if task_ids or disown:
        builder.send(Call.RELEASE, ReleaseEpic("", run.epic_id, task_ids, disown))


def deliver(builder: DecisionBuilder) -> None:
    """The run is done: nothing wakes it any more, the router forgets its failures, and the next epic may start."""
    builder.drop_effects = True
    run = builder.run
    decision_id = run.order.routing.decision_id
    builder.send(Call.REPORT_OUTCOME, ReportOutcome("", decision_id, failed=False, error="", difference=""))
    if run.queued_epic_id or run.order.auto_resume:
        builder.send(Call.START_NEXT, StartNext("", run.queued_epic_id))


def tell_starter(builder: DecisionBuilder) -> None:
    """The entry or the schedule that started the run learns that it has ended."""
    order = builder.run.order
    if order.parent_entry:
        builder.send(Call.TELL_ENTRY, TellEntry("", order.parent_entry))
    if order.scheduled is not None:
        builder.send(Call.TELL_SCHEDULE, TellSchedule(""))
