"""BOOT to EPIC_SYNC: unfinished work, the message, the session's other run, the epic."""

from pointsman.services.chassis.core.errors import invalid_field
from pointsman.services.orchestrator.domain import events, peer_requests
from pointsman.services.orchestrator.domain.commands import Answer, EpicKept, EpicLoaded, ResumablesListed
from pointsman.services.orchestrator.domain.decision import DecisionBuilder
from pointsman.services.orchestrator.domain.enums import Call, Move, Question, Reply, Resume, State
from pointsman.services.orchestrator.domain.model import Candidate
from pointsman.services.orchestrator.domain.run import CONFIDENCE_FLOOR

KEPT = "kept"
MERGED = "merged"
GIVEN_UP = 0.0


def probe_unfinished_work(turn: DecisionBuilder) -> None:
    """Ask for resumable epics, unless the caller said no or this run is itself one."""
    order = turn.run.order
    if order.resume is Resume.NO:
        turn.move(Move.NO_RESUMABLE, "not asked for")
    elif order.epic_id:
        turn.emit(events.ResumablesFound("", (Candidate(order.epic_id, turn.run.intent[:200], planned=True),)))
        turn.move(Move.FOUND_RESUMABLE, order.epic_id)
    else:
        turn.call(Call.LIST_RESUMABLE, peer_requests.Ask)


def resumables_listed(turn: DecisionBuilder, command: ResumablesListed) -> None:
    """Go by what there is."""
    turn.emit(events.ResumablesFound(command.call_id, command.candidates))
    turn.move(Move.FOUND_RESUMABLE if command.candidates else Move.NO_RESUMABLE)


def ask_to_resume(turn: DecisionBuilder) -> None:
    """Show the unfinished work and ask."""
    subjects = tuple(f"{item.epic_id}: {item.title}" for item in turn.run.candidates)
    turn.ask(Question.RESUME, "There is unfinished work. Resume it first?", subjects)


def load_resume_queue(turn: DecisionBuilder) -> None:
    """Keep the message as the next epic, then take over the best of the unfinished ones."""
    order = turn.run.order
    if order.epic_id:
        turn.call(Call.LOAD_EPIC, lambda call: peer_requests.Epic(call, order.epic_id))
        return
    turn.call(
        Call.QUEUE_MESSAGE,
        lambda call: peer_requests.KeepEpic(call, "", turn.run.intent, order.priority, False, order.execution_mode),  # noqa: FBT003
    )


def message_queued(turn: DecisionBuilder, command: EpicKept) -> None:
    """The message is safe: load the epic to resume, or start its own run when it has no plan yet."""
    turn.emit(events.EpicStored(command.call_id, command.epic_id, queued=True))
    best = turn.run.candidates[0]
    if best.planned:
        turn.call(Call.LOAD_EPIC, lambda call: peer_requests.Epic(call, best.epic_id))
        return
    turn.send(Call.START_NEXT, peer_requests.StartNext("", best.epic_id))
    turn.move(Move.CANCEL, KEPT)


def epic_loaded(turn: DecisionBuilder, command: EpicLoaded) -> None:
    """Go on with the resumed plan."""
    turn.emit(events.Resumed(command.call_id, command.epic_id, command.intent, command.plan, command.accepted))
    turn.move(Move.RESUME_QUEUE_LOADED)


def take_message(turn: DecisionBuilder) -> None:
    """The submitted message is the user's input."""
    turn.move(Move.USER_INPUT)


def judge_intake(turn: DecisionBuilder) -> None:
    """Confidence first, then the session's other run."""
    run = turn.run
    if run.effective_confidence < CONFIDENCE_FLOOR:
        turn.move(Move.CONFIDENCE_LT_0_6)
    elif run.order.rival_run_id:
        turn.move(Move.CONFLICT_WITH_CURRENT_EPIC, run.order.rival_run_id)
    else:
        turn.move(Move.INTAKE_OK)


def ask_for_clarity(turn: DecisionBuilder) -> None:
    """Ask what is meant; where it was the work that failed, ask what should be different."""
    confidence = turn.run.effective_confidence
    reasons = "; ".join(reason.partition("\n")[0][:200] for reason in turn.run.reasons)
    if reasons and confidence == GIVEN_UP:
        text = f"The work failed too often to be tried again by itself: {reasons}. What should be different?"
    else:
        why = reasons or "the request is not clear enough"
        text = f"Confidence is {confidence:.2f}, below {CONFIDENCE_FLOOR} ({why}). What is meant?"
        _report_clarification(turn)
    turn.ask(Question.LOW_CONFIDENCE, text, turn.run.reasons)


def _report_clarification(turn: DecisionBuilder) -> None:
    decision_id = turn.run.order.routing.decision_id
    turn.send(Call.REPORT_OUTCOME, peer_requests.ReportOutcome("", decision_id, False, "", "", clarification=True))  # noqa: FBT003


def ask_which_epic(turn: DecisionBuilder) -> None:
    """Ask which of the session's two runs goes on."""
    rival = turn.run.order.rival_run_id
    turn.ask(Question.CONFLICT, "Another run of this session is live: switch to this one, keep it, or merge?", (rival,))


def ask_about_feedback(turn: DecisionBuilder) -> None:
    """Show the critic's open remarks and ask."""
    subjects = tuple(item.remark.statement for item in turn.run.remarks.values()) or turn.run.audit_errors
    turn.ask(Question.FEEDBACK_ESCALATED, "The plan did not pass its review. How should it go on?", subjects)


def ask_about_replans(turn: DecisionBuilder) -> None:
    """Say that planning goes in circles, and ask."""
    turn.ask(Question.REPLAN_LIMIT, "The run was re-planned three times. What should be different?", turn.run.reasons)


def answer_resume(turn: DecisionBuilder, command: Answer) -> None:
    """Resume, or leave the candidates where they are."""
    turn.move(Move.USER_RESUME_YES if command.reply is Reply.RESUME_YES else Move.USER_RESUME_NO)


def answer_switch(turn: DecisionBuilder, command: Answer) -> None:
    """Switch, keep, merge, or take what was clarified; too unsure a clarification is asked about again."""
    moves = {Reply.SWITCH: Move.SWITCH, Reply.KEEP: Move.KEEP, Reply.MERGE: Move.MERGE}
    if command.reply in moves:
        turn.emit(events.ConfidenceSet(1.0 if command.confidence is None else command.confidence, asserted=True))
        turn.move(moves[command.reply], str(command.reply))
        return
    confidence = 1.0 if command.confidence is None else command.confidence
    if command.text:
        turn.emit(events.IntentChanged(command.text))
    turn.emit(events.ConfidenceSet(confidence, asserted=True))
    if confidence < CONFIDENCE_FLOOR:
        ask_for_clarity(turn)
    else:
        turn.move(Move.CLARIFIED, str(command.reply))


def check_switch_text(command: Answer) -> None:
    """A clarification of an unclear request needs words."""
    if command.reply is Reply.CLARIFIED and not command.text and command.confidence is None:
        raise invalid_field("text", "say what is meant, or give a confidence")


def park_rival(turn: DecisionBuilder) -> None:
    """The session's other run ends, resumable."""
    turn.send(Call.PARK_RUN, peer_requests.OtherRun("", turn.run.order.rival_run_id, "parked"))


def merge_into_rival(turn: DecisionBuilder) -> None:
    """Hand the message to the session's other run, and end."""
    rival = turn.run.order.rival_run_id
    turn.send(Call.MERGE_INTO_RUN, peer_requests.OtherRun("", rival, turn.run.intent))
    turn.move(Move.CANCEL, f"{MERGED} into {rival}")


def store_epic(turn: DecisionBuilder) -> None:
    """Keep the epic in the workflow service."""
    run = turn.run
    owned = run.disposition != str(Reply.KEEP)
    priority, mode = run.order.priority, run.order.execution_mode
    turn.call(
        Call.STORE_EPIC, lambda call: peer_requests.KeepEpic(call, run.epic_id, run.intent, priority, owned, mode)
    )


def epic_kept(turn: DecisionBuilder, command: EpicKept) -> None:
    """The epic is stored: plan it, or leave it there when the other run is kept."""
    if turn.in_state(State.RESUME_PLAN):
        message_queued(turn, command)
        return
    turn.emit(events.EpicStored(command.call_id, command.epic_id))
    if turn.run.disposition == str(Reply.KEEP):
        turn.move(Move.CANCEL, KEPT)
    else:
        turn.move(Move.BD_UPSERT_DONE)
