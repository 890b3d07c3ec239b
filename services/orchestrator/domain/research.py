"""OBSERVE to DETAIL_DESIGN: what has to be found out, by whom, whether it is enough, and the design."""

from collections.abc import Sequence

from pointsman.services.orchestrator.domain import builtin, events
from pointsman.services.orchestrator.domain.commands import CompleteAssignment, DesignResult, ResearchResult
from pointsman.services.orchestrator.domain.decision import DecisionBuilder, because, last_word
from pointsman.services.orchestrator.domain.enums import Capability, Move, Purpose, Severity
from pointsman.services.orchestrator.domain.model import Assignment
from pointsman.services.orchestrator.domain.run import CONFIDENCE_FLOOR, MAX_REPLANS, Run


def define_targets(turn: DecisionBuilder) -> None:
    """The plan's slots are the targets."""
    turn.move(Move.OBSERVE_TARGET_DEFINED, ",".join(turn.run.slots))


def fan_out_research(turn: DecisionBuilder) -> None:
    """One assignment per open slot; without a researcher and a repository there is nothing to look at."""
    run = turn.run
    if run.order.repository_id or turn.is_present(Capability.RESEARCH):
        await_open_slots(turn)
        return
    for slot in _open_slots(run):
        confidence = max(run.effective_confidence, CONFIDENCE_FLOOR)
        turn.emit(
            events.Researched(
                slot, "built-in", usable=True, confidence=confidence, document=builtin.empty_survey(run, slot)
            )
        )
    turn.move(Move.RESULT_ARRIVED, "built-in")


def await_open_slots(turn: DecisionBuilder) -> None:
    """Offer the open slots that nobody works on yet."""
    run = turn.run
    offered = {item.slot for item in (*run.assignments.values(), *run.held)}
    for slot in _open_slots(run):
        if slot not in offered and (turn.free_slots or not offered):
            turn.assign(
                Assignment(
                    "",
                    Purpose.RESEARCH,
                    Capability.RESEARCH,
                    slot=slot,
                    needs_repository=bool(run.order.repository_id),
                )
            )
            offered.add(slot)


def _open_slots(run: Run) -> list[str]:
    return [key for key, slot in run.slots.items() if not slot.settled]


def report(turn: DecisionBuilder, assignment: Assignment, command: CompleteAssignment) -> None:
    """Keep a report: one event says all of it, also that its assignment has ended."""
    result = command.result
    assert isinstance(result, ResearchResult)
    turn.emit(
        events.Researched(
            assignment.slot, command.agent_id, usable=True, confidence=result.confidence, document=result.document,
            assignment_id=assignment.assignment_id, usage=command.usage,
            restarts=turn.restarts(assignment.assignment_id),
        )
    )  # fmt: skip
    if result.is_survey and not builtin.is_survey_slot(assignment.slot):
        question = turn.run.slots[assignment.slot].question
        statement = f"no researcher was there: only a survey of the repository answers: {question}"
        turn.risk(f"survey-{assignment.slot}", statement, severity=Severity.MEDIUM)


def reported(turn: DecisionBuilder, slots: Sequence[str]) -> None:
    """Look at the reports that came together."""
    turn.move(Move.RESULT_ARRIVED, ",".join(slots))


def slot_lost(turn: DecisionBuilder, assignment: Assignment) -> None:
    """Nobody could fill the slot: it is left out, openly."""
    slot = assignment.slot
    turn.emit(events.Researched(slot, "", usable=False, confidence=0.0, document=""))
    statement = f"nobody could find out: {turn.run.slots[slot].question}{because(last_word(assignment))}"
    turn.risk(f"research-{slot}", statement, severity=Severity.MEDIUM)
    turn.move(Move.RESULT_ARRIVED, slot)


def ingest_result(turn: DecisionBuilder) -> None:
    """The report is in the store already."""
    turn.move(Move.ARTIFACTS_LOADED)


def evaluate_research(turn: DecisionBuilder) -> None:
    """Wait for open slots; plan again when nothing usable or convincing came; else go on."""
    run = turn.run
    usable = [slot.confidence for slot in run.slots.values() if slot.usable]
    if _open_slots(run):
        turn.move(Move.NEED_MORE_RESULTS)
    elif usable and sum(usable) / len(usable) >= CONFIDENCE_FLOOR:
        turn.move(Move.ENOUGH_INFO)
    elif run.replans >= MAX_REPLANS:
        turn.move(Move.REPLAN_LIMIT, "research does not convince")
    else:
        reason = "research is not sure enough" if usable else "no usable research report"
        turn.move(Move.NEED_REPLAN, reason, is_replan=True)


def make_design(turn: DecisionBuilder) -> None:
    """Have a designer do it, or take the plan's own words."""
    if turn.is_present(Capability.DESIGN):
        turn.assign(Assignment("", Purpose.DESIGN, Capability.DESIGN))
        return
    _built_in_design(turn)


def designed(turn: DecisionBuilder, result: DesignResult) -> None:
    """The designer handed in a design."""
    turn.emit(events.Designed(result.document, built_in=False))
    turn.move(Move.DESIGN_READY)


def designer_lost(turn: DecisionBuilder, assignment: Assignment) -> None:
    """No designer could do it: the plan's own words are the design, and that is a risk."""
    statement = f"no designer finished; the design is the plan's own words{because(last_word(assignment))}"
    turn.risk("designer-lost", statement, severity=Severity.LOW)
    _built_in_design(turn)


def _built_in_design(turn: DecisionBuilder) -> None:
    turn.emit(events.Designed(builtin.design(turn.run), built_in=True))
    turn.move(Move.DESIGN_READY)
