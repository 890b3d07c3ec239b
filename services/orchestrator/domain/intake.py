"""BOOT to EPIC_SYNC: unfinished work, the message, the session's other run, the epic."""

from pointsman.services.chassis.core.errors import invalid_field
from pointsman.services.orchestrator.domain import events, peer_requests
from pointsman.services.orchestrator.domain.commands import Answer, EpicLoaded, EpicStored, ResumablesFound
from pointsman.services.orchestrator.domain.decision import DecisionBuilder
from pointsman.services.orchestrator.domain.enums import Call, Question, Reply, Resume, State, Trigger
from pointsman.services.orchestrator.domain.model import Candidate
from pointsman.services.orchestrator.domain.run import CONFIDENCE_FLOOR

KEPT = "kept"
MERGED = "merged"
GIVEN_UP = 0.0


def probe_unfinished_work(builder: DecisionBuilder) -> None:
    """Ask for resumable epics, unless the caller said no or this run is itself one."""
    order = builder.run.order
    if order.resume is Resume.NO:
        builder.transition(Trigger.NO_RESUMABLE, "not asked for")
    elif order.epic_id:
        builder.emit(events.ResumablesFound("", (Candidate(order.epic_id, builder.run.intent[:200], planned=True),)))
        builder.transition(Trigger.FOUND_RESUMABLE, order.epic_id)
    else:
        builder.call(Call.LIST_RESUMABLE, peer_requests.ListResumable)


def resumables_found(builder: DecisionBuilder, command: ResumablesFound) -> None:
    """Go by what there is."""
    builder.emit(events.ResumablesFound(command.call_id, command.candidates))
    builder.transition(Trigger.FOUND_RESUMABLE if command.candidates else Trigger.NO_RESUMABLE)


def ask_to_resume(builder: DecisionBuilder) -> None:
    """Show the unfinished work and ask."""
    subjects = tuple(f"{item.epic_id}: {item.title}" for item in builder.run.candidates)
    builder.ask(Question.RESUME, "There is unfinished work. Resume it first?", subjects)


def load_resume_queue(builder: DecisionBuilder) -> None:
    """Keep the message as the next epic, then take over the best of the unfinished ones."""
    order = builder.run.order
    if order.epic_id:
        builder.call(Call.LOAD_EPIC, lambda call: peer_requests.Epic(call, order.epic_id))
        return
    builder.call(
        Call.QUEUE_MESSAGE,
        lambda call: peer_requests.StoreEpic(call, "", builder.run.intent, order.priority, False, order.execution_mode),  # noqa: FBT003
    )


def message_queued(builder: DecisionBuilder, command: EpicStored) -> None:
    """The message is safe: load the epic to resume, or start its own run when it has no plan yet."""
    builder.emit(events.EpicStored(command.call_id, command.epic_id, queued=True))
    best = builder.run.candidates[0]
    if best.planned:
        builder.call(Call.LOAD_EPIC, lambda call: peer_requests.Epic(call, best.epic_id))
        return
    builder.send(Call.START_NEXT, peer_requests.StartNext("", best.epic_id))
    builder.transition(Trigger.CANCEL, KEPT)


def epic_loaded(builder: DecisionBuilder, command: EpicLoaded) -> None:
    """Go on with the resumed plan."""
    builder.emit(events.Resumed(command.call_id, command.epic_id, command.intent, command.plan, command.accepted))
    builder.transition(Trigger.RESUME_QUEUE_LOADED)


def take_message(builder: DecisionBuilder) -> None:
    """The submitted message is the user's input."""
    builder.transition(Trigger.USER_INPUT)


def judge_intake(builder: DecisionBuilder) -> None:
    """Confidence first, then the session's other run."""
    run = builder.run
    if run.effective_confidence < CONFIDENCE_FLOOR:
        builder.transition(Trigger.CONFIDENCE_LT_0_6)
    elif run.order.rival_run_id:
        builder.transition(Trigger.CONFLICT_WITH_CURRENT_EPIC, run.order.rival_run_id)
    else:
        builder.transition(Trigger.INTAKE_OK)


def ask_for_clarity(builder: DecisionBuilder) -> None:
    """Ask what is meant; where it was the work that failed, ask what should be different."""
    confidence = builder.run.effective_confidence
    reasons = "; ".join(reason.partition("\n")[0][:200] for reason in builder.run.reasons)
    if reasons and confidence == GIVEN_UP:
        text = f"The work failed too often to be tried again by itself: {reasons}. What should be different?"
    else:
        why = reasons or "the request is not clear enough"
        text = f"Confidence is {confidence:.2f}, below {CONFIDENCE_FLOOR} ({why}). What is meant?"
        _report_clarification(builder)
    builder.ask(Question.LOW_CONFIDENCE, text, builder.run.reasons)


def _report_clarification(builder: DecisionBuilder) -> None:
    decision_id = builder.run.order.routing.decision_id
    builder.send(Call.REPORT_OUTCOME, peer_requests.ReportOutcome("", decision_id, False, "", "", clarification=True))  # noqa: FBT003


def ask_which_epic(builder: DecisionBuilder) -> None:
    """Ask which of the session's two runs goes on."""
    conflicting_run_id = builder.run.order.rival_run_id
    builder.ask(
        Question.CONFLICT,
        "Another run of this session is live: switch to this one, keep it, or merge?",
        (conflicting_run_id,),
    )


def ask_about_feedback(builder: DecisionBuilder) -> None:
    """Show the critic's open remarks and ask."""
    subjects = tuple(item.remark.statement for item in builder.run.remarks.values()) or builder.run.audit_errors
    builder.ask(Question.FEEDBACK_ESCALATED, "The plan did not pass its review. How should it go on?", subjects)


def ask_about_replans(builder: DecisionBuilder) -> None:
    """Say that planning goes in circles, and ask."""
    builder.ask(
        Question.REPLAN_LIMIT, "The run was re-planned three times. What should be different?", builder.run.reasons
    )


def answer_resume(builder: DecisionBuilder, command: Answer) -> None:
    """Resume, or leave the candidates where they are."""
    builder.transition(Trigger.USER_RESUME_YES if command.reply is Reply.RESUME_YES else Trigger.USER_RESUME_NO)


def answer_switch(builder: DecisionBuilder, command: Answer) -> None:
    """Switch, keep, merge, or take what was clarified; too unsure a clarification is asked about again."""
    triggers = {Reply.SWITCH: Trigger.SWITCH, Reply.KEEP: Trigger.KEEP, Reply.MERGE: Trigger.MERGE}
    if command.reply in triggers:
        builder.emit(events.ConfidenceSet(1.0 if command.confidence is None else command.confidence, asserted=True))
        builder.transition(triggers[command.reply], str(command.reply))
        return
    confidence = 1.0 if command.confidence is None else command.confidence
    if command.text:
        builder.emit(events.IntentChanged(command.text))
    builder.emit(events.ConfidenceSet(confidence, asserted=True))
    if confidence < CONFIDENCE_FLOOR:
        ask_for_clarity(builder)
    else:
        builder.transition(Trigger.CLARIFIED, str(command.reply))


def check_switch_text(command: Answer) -> None:
    """A clarification of an unclear request needs words."""
    if command.reply is Reply.CLARIFIED and not command.text and command.confidence is None:
        raise invalid_field("text", "say what is meant, or give a confidence")


def park_rival(builder: DecisionBuilder) -> None:
    """The session's other run ends, resumable."""
    builder.send(Call.PARK_RUN, peer_requests.OtherRun("", builder.run.order.rival_run_id, "parked"))


def merge_into_rival(builder: DecisionBuilder) -> None:
    """Hand the message to the session's other run, and end."""
    conflicting_run_id = builder.run.order.rival_run_id
    builder.send(Call.MERGE_INTO_RUN, peer_requests.OtherRun("", conflicting_run_id, builder.run.intent))
    builder.transition(Trigger.CANCEL, f"{MERGED} into {conflicting_run_id}")


def store_epic(builder: DecisionBuilder) -> None:
    """Keep the epic in the workflow service."""
    run = builder.run
    owned = run.disposition != str(Reply.KEEP)
    priority, mode = run.order.priority, run.order.execution_mode
    builder.call(
        Call.STORE_EPIC, lambda call: peer_requests.StoreEpic(call, run.epic_id, run.intent, priority, owned, mode)
    )


def epic_stored(builder: DecisionBuilder, command: EpicStored) -> None:
    """The epic is stored: plan it, or leave it there when the other run is kept."""
    if builder.in_state(State.RESUME_PLAN):
        message_queued(builder, command)
        return
    builder.emit(events.EpicStored(command.call_id, command.epic_id))
    if builder.run.disposition == str(Reply.KEEP):
        builder.transition(Trigger.CANCEL, KEPT)
    else:
        builder.transition(Trigger.BD_UPSERT_DONE)
