"""BOOT to EPIC_SYNC: unfinished work, the message, the session's other run, the epic."""

from pointsman._shared.excerpt import excerpt
from pointsman.services.chassis.core.errors import invalid_field
from pointsman.services.orchestrator.domain import events
from pointsman.services.orchestrator.domain.calls.epics import Epic, StoreEpic
from pointsman.services.orchestrator.domain.calls.other_runs import OtherRun
from pointsman.services.orchestrator.domain.calls.report_outcome import ReportOutcome
from pointsman.services.orchestrator.domain.calls.resumables import ListResumable
from pointsman.services.orchestrator.domain.commands import Answer
from pointsman.services.orchestrator.domain.decision import DecisionBuilder, because
from pointsman.services.orchestrator.domain.enums import Call, Question, Reply, Resume, Trigger
from pointsman.services.orchestrator.domain.model import Candidate
from pointsman.services.orchestrator.domain.run import CONFIDENCE_FLOOR

MERGED = "merged"
GIVEN_UP = 0.0
CAUSE_LENGTH = 2000


def probe_unfinished_work(builder: DecisionBuilder) -> None:
    """Ask for resumable epics, unless the caller said no or this run is itself one."""
    order = builder.run.order
    if order.resume is Resume.NO:
        builder.transition(Trigger.NO_RESUMABLE, "not asked for")
    elif order.epic_id:
        builder.emit(events.ResumablesFound("", (Candidate(order.epic_id, builder.run.intent[:200], planned=True),)))
        builder.transition(Trigger.FOUND_RESUMABLE, order.epic_id)
    else:
        builder.call(Call.LIST_RESUMABLE, ListResumable)


def ask_to_resume(builder: DecisionBuilder) -> None:
    """Show the unfinished work and ask."""
    subjects = tuple(f"{item.epic_id}: {item.title}" for item in builder.run.candidates)
    builder.ask(Question.RESUME, "There is unfinished work. Resume it first?", subjects)


def load_resume_queue(builder: DecisionBuilder) -> None:
    """Keep the message as the next epic, then take over the best of the unfinished ones."""
    order = builder.run.order
    if order.epic_id:
        builder.call(Call.LOAD_EPIC, lambda call: Epic(call, order.epic_id))
        return
    builder.call(
        Call.QUEUE_MESSAGE,
        lambda call: StoreEpic(call, "", builder.run.intent, order.priority, False, order.execution_mode),  # noqa: FBT003
    )


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
    reasons = excerpt("; ".join(builder.run.reasons), CAUSE_LENGTH)
    if reasons and confidence == GIVEN_UP:
        text = f"The work failed too often to be tried again by itself: {reasons}. What should be different?"
    else:
        why = reasons or "the request is not clear enough"
        text = f"Confidence is {confidence:.2f}, below {CONFIDENCE_FLOOR} ({why}). What is meant?"
        _report_clarification(builder)
    builder.ask(Question.LOW_CONFIDENCE, text, builder.run.reasons)


def _report_clarification(builder: DecisionBuilder) -> None:
    decision_id = builder.run.order.routing.decision_id
    builder.send(Call.REPORT_OUTCOME, ReportOutcome("", decision_id, False, "", "", clarification=True))  # noqa: FBT003


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
    """Say why planning goes in circles, or that nobody can find out what the plan asks, and ask."""
    run = builder.run
    lost = [f"research-{name}" for name, slot in run.slots.items() if slot.again]
    unknown = tuple(risk.statement for risk in run.risks if risk.key in lost)
    if unknown:
        text = f"{excerpt('; '.join(unknown), CAUSE_LENGTH)}. What should be different?"
    else:
        why = because("; ".join(run.reasons))
        text = f"The run was re-planned three times{why}. What should be different?"
    builder.ask(Question.REPLAN_LIMIT, text, unknown or run.reasons)


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
    builder.send(Call.PARK_RUN, OtherRun("", builder.run.order.rival_run_id, "parked"))


def merge_into_rival(builder: DecisionBuilder) -> None:
    """Hand the message to the session's other run, and end."""
    conflicting_run_id = builder.run.order.rival_run_id
    builder.send(Call.MERGE_INTO_RUN, OtherRun("", conflicting_run_id, builder.run.intent))
    builder.transition(Trigger.CANCEL, f"{MERGED} into {conflicting_run_id}")


def store_epic(builder: DecisionBuilder) -> None:
    """Keep the epic in the workflow service."""
    run = builder.run
    owned = run.disposition != str(Reply.KEEP)
    priority, mode = run.order.priority, run.order.execution_mode
    builder.call(Call.STORE_EPIC, lambda call: StoreEpic(call, run.epic_id, run.intent, priority, owned, mode))
