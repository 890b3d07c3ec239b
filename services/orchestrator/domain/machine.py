"""One command, one decision: who may say what in which state, and the machine that the chassis runs."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from pointsman.services.chassis.core.errors import Reason, Refusal, invalid_field, not_found
from pointsman.services.chassis.core.machine import Decision, Machine
from pointsman.services.orchestrator.domain import acceptance, commands, events, execution, intake, planning
from pointsman.services.orchestrator.domain.apply import apply
from pointsman.services.orchestrator.domain.calls import CALLS, pipelines, workflow_status
from pointsman.services.orchestrator.domain.calls.peer_call import PeerCall
from pointsman.services.orchestrator.domain.commands import ANSWERS, Ack
from pointsman.services.orchestrator.domain.completion import complete, complete_all, expire
from pointsman.services.orchestrator.domain.decision import WALL_CLOCK, DecisionBuilder
from pointsman.services.orchestrator.domain.enums import (
    TAKES,
    TERMINAL,
    Call,
    Question,
    Reply,
    State,
    Trigger,
)
from pointsman.services.orchestrator.domain.event_types import EVENTS
from pointsman.services.orchestrator.domain.model import Budget, OpenQuestion, Plan
from pointsman.services.orchestrator.domain.permission_requests import ask_next, request_permission
from pointsman.services.orchestrator.domain.run import RunState
from pointsman.services.orchestrator.domain.table import TABLE, VERSION

MAX_LABELS = 32


def decide(state: RunState | None, command: Any, now: datetime) -> Decision:
    """What a command leads to, or why it is refused."""
    if isinstance(command, commands.Submit):
        builder, answer = _submitted(state, command, now), None
    elif state is None:
        raise not_found("run", command.entity_id)
    else:
        builder = DecisionBuilder(state, now, TABLE)
        answer = _HANDLERS[type(command)](builder, command)
    builder.run_actions()
    ask_next(builder)
    return builder.decision(answer or Ack(builder.run.run_id, str(builder.run.status)))


def _submitted(state: RunState | None, command: commands.Submit, now: datetime) -> DecisionBuilder:
    """A new run on its way out of BOOT."""
    if state is not None:
        raise Refusal(
            Reason.ALREADY_EXISTS, "there is a run with this id", metadata={"kind": "run", "id": command.entity_id}
        )
    first = events.Submitted(command.entity_id, command.intent, command.order, command.budget, command.plan)
    event = DecisionBuilder.first_event(first)
    builder = DecisionBuilder(apply(None, event, now), now, TABLE)
    builder.events.append(event)
    builder.set_timer(WALL_CLOCK, command.budget.wall_clock_seconds)
    builder.transition(Trigger.AUTO)
    return builder


def _call_answered(builder: DecisionBuilder, command: commands.CallAnswered) -> None:
    call = _waited_for(builder, command.answer.call_id)
    if call is not None:
        call.on_answer(builder, command.answer)


def _call_refused(builder: DecisionBuilder, command: commands.CallRefused) -> None:
    call = _waited_for(builder, command.call_id)
    if call is not None:
        builder.emit(events.CallEnded(command.call_id, command.reason[:500]))
        call.on_refused(builder, command)


def _waited_for(builder: DecisionBuilder, call_id: str) -> PeerCall | None:
    """The call, if the run still waits for it; an answer to any other is out of date and changes nothing."""
    kind = builder.run.calls.get(call_id)
    return None if kind is None or builder.run.ended or builder.stops_at_limit() else CALLS[kind]


def _answer(builder: DecisionBuilder, command: commands.Answer) -> None:
    question = builder.run.question
    if question is None or question.question_id != command.question_id:
        now_open = f"the open one is '{question.question_id}'" if question else "no question is open"
        raise builder.refusal(f"question '{command.question_id}' is closed: {now_open}")
    if command.reply not in TAKES[question.kind]:
        takes = ", ".join(TAKES[question.kind])
        raise builder.refusal(f"'{command.reply}' is no answer to it: it takes {takes}")
    _check_answer(builder, question, command)
    builder.emit(
        events.Answered(
            command.question_id, command.reply, command.text, command.confidence, _raised(builder, command),
            command.task_id, command.stage,
        )
    )  # fmt: skip
    _REPLIES[question.kind](builder, command)
    builder.run_actions()  # what the reply leads to may drop the work that is held back
    if not builder.run.ended:
        builder.offer_held()


def _check_answer(builder: DecisionBuilder, question: OpenQuestion, command: commands.Answer) -> None:
    if command.task_id and command.task_id not in builder.run.tasks:
        raise invalid_field("task_id", "the run has no such task")
    if question.kind is Question.ACCEPTANCE and command.task_id and command.task_id not in question.subjects:
        raise invalid_field("task_id", f"the question is about {', '.join(question.subjects)}")
    if command.reply is Reply.RAISE and command.budget is None:
        raise invalid_field("budget", "say how far it is raised")
    if command.reply in (Reply.RESTART_STAGE, Reply.SKIP_STAGE) and not command.stage:
        raise invalid_field("stage", "name the stage")
    if question.kind is Question.LOW_CONFIDENCE:
        intake.check_switch_text(command)
    if command.plan is not None:
        _check_plan(builder, question, command.reply, command.plan)


def _check_plan(builder: DecisionBuilder, question: OpenQuestion, reply: Reply, plan: Plan) -> None:
    if question.kind is not Question.DEBATE or reply is not Reply.MODIFY:
        raise invalid_field("plan", "goes with MODIFY, where the plan is asked about")
    if found := planning.plan_problems(plan, builder.run):
        raise invalid_field("plan", "; ".join(found))


def _raised(builder: DecisionBuilder, command: commands.Answer) -> Budget | None:
    """The budget with every field that the answer gives."""
    wanted, budget = command.budget, builder.run.budget
    if command.reply is not Reply.RAISE or wanted is None:
        return None
    given = {name: value for name in Budget.__slots__ if (value := getattr(wanted, name))}
    return replace(budget, **given)


def _raise_budget(builder: DecisionBuilder, command: commands.Answer) -> None:  # noqa: ARG001
    builder.set_timer(WALL_CLOCK, max(0.0, (builder.deadline - builder.now).total_seconds()))


def _change_requirement(builder: DecisionBuilder, command: commands.ChangeRequirement) -> None:
    if Call.SETTLE_WAVE in builder.run.calls.values():
        raise Refusal(
            Reason.LOST_RACE,
            "the wave is just being recorded; try again",
            metadata={"kind": "run", "id": builder.run.run_id},
        )
    changing = builder.in_state(State.REVIEW_ACCEPT)
    trigger = Trigger.REQUIREMENT_CHANGED_OR_BLOCKED if changing else Trigger.REQUIREMENT_CHANGED
    builder.emit(events.IntentChanged(f"{builder.run.intent}\n\n{command.text}"))
    builder.transition(trigger, "the requirement changed")


def _label(builder: DecisionBuilder, command: commands.Label) -> None:
    if len({**builder.run.order.labels, **command.labels}) > MAX_LABELS:
        raise invalid_field("labels", f"a run has {MAX_LABELS} labels at the most; take one away with an empty value")
    builder.emit(events.Labelled(dict(command.labels)))


def _cancel(builder: DecisionBuilder, command: commands.Cancel) -> None:
    reason = command.reason if command.resumable else f"cancelled: {command.reason or 'no reason given'}"
    builder.transition(Trigger.CANCEL, reason)


def _timer_fired(builder: DecisionBuilder, command: commands.TimerFired) -> None:
    if builder.run.ended:
        return
    if command.name == workflow_status.QUEUE_TIMER:
        execution.check_workflow(builder)
    elif command.name == execution.PIPELINES_TIMER:
        execution.check_pipelines(builder)
    elif command.name.startswith(pipelines.BARRIER_TIMER):
        execution.check_barrier(builder, command.name.removeprefix(pipelines.BARRIER_TIMER))
    elif command.name == WALL_CLOCK and builder.run.question is None and builder.now >= builder.deadline:
        builder.ask(Question.BUDGET, "The run's time is over. Raise it to go on, or cancel the run.", ("wall_clock",))


def _expire(builder: DecisionBuilder, command: commands.ExpireAssignment) -> None:
    if not builder.run.ended:
        expire(builder, command)


def _lose_lease(builder: DecisionBuilder, command: commands.LoseLease) -> None:
    """Record that a lease is lost; the assignment is in the queue for the next agent."""
    if not builder.run.ended and command.assignment_id in builder.run.assignments:
        builder.emit(events.LeaseLost(command.assignment_id, command.agent_id, command.attempt))


def _note_limit(builder: DecisionBuilder, command: commands.NoteLimit) -> None:
    """Record what the store did with a lease; the queue is as it has to be already."""
    if not builder.run.ended:
        builder.emit(command.said)


_REPLIES: Mapping[Question, Callable[[DecisionBuilder, commands.Answer], None]] = {
    Question.RESUME: intake.answer_resume,
    Question.CONFLICT: intake.answer_switch,
    Question.LOW_CONFIDENCE: intake.answer_switch,
    Question.FEEDBACK_ESCALATED: intake.answer_switch,
    Question.REPLAN_LIMIT: intake.answer_switch,
    Question.DEBATE: planning.answer_debate,
    Question.ACCEPTANCE: acceptance.answer_acceptance,
    Question.BUDGET: _raise_budget,
    Question.PAUSED: execution.answer_workflow,
    Question.BLOCKED: execution.answer_workflow,
    Question.PIPELINE_ESCALATED: execution.answer_pipeline,
    Question.PERMISSION: lambda _builder, _command: None,
}
_HANDLERS: Mapping[type, Callable[[DecisionBuilder, Any], Any]] = {
    commands.CompleteAssignment: complete,
    commands.FailAssignment: complete,
    commands.CompleteAssignments: complete_all,
    commands.RequestPermission: request_permission,
    commands.Answer: _answer,
    commands.ChangeRequirement: _change_requirement,
    commands.Cancel: _cancel,
    commands.Label: _label,
    commands.TimerFired: _timer_fired,
    commands.ExpireAssignment: _expire,
    commands.LoseLease: _lose_lease,
    commands.NoteLimit: _note_limit,
    commands.CallAnswered: _call_answered,
    commands.CallRefused: _call_refused,
}
"""What each command does; one that returns nothing is answered with the run's state."""

MACHINE: Machine[RunState] = Machine(
    kind="run",
    version=VERSION,
    state_type=RunState,
    decide=decide,
    apply=apply,
    status=lambda state: str(state.run.status),
    run_id=lambda state: state.run.run_id,
    events=EVENTS,
    answers=ANSWERS,
    terminal=frozenset(map(str, TERMINAL)),
    failed=frozenset({str(State.FAILED)}),
    genai_operation="invoke_workflow",
)
