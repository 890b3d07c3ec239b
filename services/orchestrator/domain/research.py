"""OBSERVE to DETAIL_DESIGN: what has to be found out, by whom, whether it is enough, and the design."""

from collections.abc import Sequence

from pointsman.services.orchestrator.domain import builtin, events
from pointsman.services.orchestrator.domain.commands import CompleteAssignment, DesignResult, ResearchResult
from pointsman.services.orchestrator.domain.decision import DecisionBuilder, because, last_setback
from pointsman.services.orchestrator.domain.enums import Capability, Purpose, Severity, Trigger
from pointsman.services.orchestrator.domain.failures import failed_alike
from pointsman.services.orchestrator.domain.model import Assignment
from pointsman.services.orchestrator.domain.run import CONFIDENCE_FLOOR, MAX_REPLANS, Run


def define_targets(builder: DecisionBuilder) -> None:
    """The plan's slots are the targets."""
    builder.transition(Trigger.OBSERVE_TARGET_DEFINED, ",".join(builder.run.slots))


def fan_out_research(builder: DecisionBuilder) -> None:
    """One assignment per open slot; without a researcher and a repository there is nothing to look at."""
    run = builder.run
    if run.order.repository_id or builder.is_present(Capability.RESEARCH):
        await_open_slots(builder)
        return
    for slot in _open_slots(run):
        confidence = max(run.effective_confidence, CONFIDENCE_FLOOR)
        builder.emit(
            events.Researched(
                slot, "built-in", usable=True, confidence=confidence, document=builtin.empty_survey(run, slot)
            )
        )
    builder.transition(Trigger.RESULT_ARRIVED, "built-in")


def await_open_slots(builder: DecisionBuilder) -> None:
    """Offer the open slots that nobody works on yet."""
    run = builder.run
    offered = {item.slot for item in (*run.assignments.values(), *run.held)}
    for slot in _open_slots(run):
        if slot not in offered and (builder.free_slots or not offered):
            builder.assign(
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


def report(builder: DecisionBuilder, assignment: Assignment, command: CompleteAssignment) -> None:
    """Keep a report: one event says all of it, also that its assignment has ended."""
    result = command.result
    assert isinstance(result, ResearchResult)
    builder.emit(
        events.Researched(
            assignment.slot, command.agent_id, usable=True, confidence=result.confidence, document=result.document,
            assignment_id=assignment.assignment_id, usage=command.usage,
            restarts=builder.restarts(assignment.assignment_id),
        )
    )  # fmt: skip
    if result.is_survey and not builtin.is_survey_slot(assignment.slot):
        question = builder.run.slots[assignment.slot].question
        statement = f"no researcher was there: only a survey of the repository answers: {question}"
        builder.risk(f"survey-{assignment.slot}", statement, severity=Severity.MEDIUM)


def reported(builder: DecisionBuilder, slots: Sequence[str]) -> None:
    """Look at the reports that came together."""
    builder.transition(Trigger.RESULT_ARRIVED, ",".join(slots))


def slot_lost(builder: DecisionBuilder, assignment: Assignment) -> None:
    """Nobody could fill the slot: it is left out, openly."""
    slot, again = assignment.slot, failed_alike(assignment.setbacks)
    builder.emit(events.Researched(slot, "", usable=False, confidence=0.0, document="", again=again))
    statement = f"nobody could find out: {builder.run.slots[slot].question}{because(last_setback(assignment))}"
    builder.risk(f"research-{slot}", statement, severity=Severity.MEDIUM)
    builder.transition(Trigger.RESULT_ARRIVED, slot)


def ingest_result(builder: DecisionBuilder) -> None:
    """The report is in the store already."""
    builder.transition(Trigger.ARTIFACTS_LOADED)


def evaluate_research(builder: DecisionBuilder) -> None:
    """Wait for open slots; plan again when nothing usable or convincing came; else go on."""
    run = builder.run
    usable = [slot.confidence for slot in run.slots.values() if slot.usable]
    if _open_slots(run):
        builder.transition(Trigger.NEED_MORE_RESULTS)
    elif usable and sum(usable) / len(usable) >= CONFIDENCE_FLOOR:
        builder.transition(Trigger.ENOUGH_INFO)
    elif run.replans >= MAX_REPLANS:
        builder.transition(Trigger.REPLAN_LIMIT, "research does not convince")
    elif any(slot.again for slot in run.slots.values()):
        builder.transition(Trigger.REPLAN_LIMIT, "nobody could find out what the plan asks")
    else:
        reason = "research is not sure enough" if usable else "no usable research report"
        builder.transition(Trigger.NEED_REPLAN, reason, is_replan=True)


def make_design(builder: DecisionBuilder) -> None:
    """Have a designer do it, or take the plan's own words."""
    if builder.is_present(Capability.DESIGN):
        builder.assign(Assignment("", Purpose.DESIGN, Capability.DESIGN))
        return
    _built_in_design(builder)


def designed(builder: DecisionBuilder, result: DesignResult) -> None:
    """The designer handed in a design."""
    builder.emit(events.Designed(result.document, built_in=False))
    builder.transition(Trigger.DESIGN_READY)


def designer_lost(builder: DecisionBuilder, assignment: Assignment) -> None:
    """No designer could do it: the plan's own words are the design, and that is a risk."""
    statement = f"no designer finished; the design is the plan's own words{because(last_setback(assignment))}"
    builder.risk("designer-lost", statement, severity=Severity.LOW)
    _built_in_design(builder)


def _built_in_design(builder: DecisionBuilder) -> None:
    builder.emit(events.Designed(builtin.design(builder.run), built_in=True))
    builder.transition(Trigger.DESIGN_READY)
