"""EXECUTE, GET_WORKFLOW and FORWARD_ANSWER: the workflow service starts, and says whether there is work to do."""

from dataclasses import dataclass

from pointsman.services.orchestrator.domain.calls.epics import Epic
from pointsman.services.orchestrator.domain.calls.peer_call import PeerCall
from pointsman.services.orchestrator.domain.commands import CallRefused
from pointsman.services.orchestrator.domain.decision import DecisionBuilder
from pointsman.services.orchestrator.domain.enums import Call, Question, Reply, State, Trigger, WorkflowStatus
from pointsman.services.orchestrator.domain.events import WorkflowSeen

QUEUE_TIMER = "queue"
FIRST_CHECK_SECONDS = 2.0
MAX_CHECK_SECONDS = 30.0
HOW_TO_GO_ON = "RESUME goes on, SKIP leaves a task out, WAIVE lets a hard constraint go; or cancel the run."
HOW_TO_FREE = "UNBLOCK says that what it waits for is there, RETRY or SKIP settle a task; or cancel the run."
GOING_ON = frozenset({WorkflowStatus.RUNNING, WorkflowStatus.COMPLETED})


@dataclass(frozen=True, slots=True)
class ForwardAnswer:
    """Pass a person's answer on."""

    call_id: str
    epic_id: str
    reply: Reply
    text: str
    task_id: str


def workflow_seen(builder: DecisionBuilder, answer: WorkflowSeen) -> None:
    """The workflow's state decides where SCHEDULE and QUEUE go."""
    builder.emit(answer)
    going_on = answer.status in GOING_ON
    if builder.in_state(State.SCHEDULE):
        if going_on:
            builder.transition(Trigger.RESOURCE_READY)
        else:
            builder.transition(Trigger.RESOURCE_BUSY, why_it_waits(answer.status, answer.detail))
    elif builder.in_state(State.QUEUE) and going_on:
        builder.transition(Trigger.RESOURCE_AVAILABLE)
    elif builder.in_state(State.QUEUE):
        wait_for_room(builder)


def why_it_waits(status: WorkflowStatus, detail: str) -> str:
    """What the run waits for in the queue: what the workflow says of itself is no reason yet."""
    if status is WorkflowStatus.RUNNING:
        return detail or "no task is ready to be started"
    return f"the workflow is {status}: {detail}" if detail else f"the workflow is {status}"


def wait_for_room(builder: DecisionBuilder) -> None:
    """Ask a person where one can help, and check again by a timer."""
    run = builder.run
    why = run.workflow_detail or "it does not say why"
    if run.question is None and run.workflow_status is WorkflowStatus.PAUSED:
        builder.ask(Question.PAUSED, f"The workflow is paused: {why}. {HOW_TO_GO_ON}", (why,))
    elif run.question is None and run.workflow_status in (WorkflowStatus.BLOCKED, WorkflowStatus.FAILED):
        builder.ask(Question.BLOCKED, f"The workflow is {run.workflow_status}: {why}. {HOW_TO_FREE}", (why,))
    builder.set_timer(QUEUE_TIMER, min(FIRST_CHECK_SECONDS * 2**run.queue_checks, MAX_CHECK_SECONDS))


def answer_refused(builder: DecisionBuilder, command: CallRefused) -> None:
    """A person's answer was passed on in vain: wait on, or ask again how the stage goes on."""
    if builder.in_state(State.QUEUE):
        wait_for_room(builder)
    elif builder.in_state(State.CODER_EXEC):
        text = f"That was not possible ({command.reason}). How should the stage go on?"
        builder.ask(Question.PIPELINE_ESCALATED, text, builder.run.wave)


CALLS = (
    PeerCall(Call.EXECUTE, Epic, workflow_seen),
    PeerCall(Call.GET_WORKFLOW, Epic, workflow_seen),
    PeerCall(Call.FORWARD_ANSWER, ForwardAnswer, workflow_seen, answer_refused),
)
