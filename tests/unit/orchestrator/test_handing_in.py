"""Results that come together: each has its own outcome, and reports pass through the machine once."""

from typing import Any

from pointsman.services.chassis.core.errors import Reason
from pointsman.services.chassis.core.machine import Event
from pointsman.services.orchestrator.domain import commands, events
from pointsman.services.orchestrator.domain.enums import AssignmentEnd, InternalEvent, Purpose, State
from pointsman.services.orchestrator.domain.machine import MACHINE
from pointsman.services.orchestrator.domain.model import Assignment, Usage
from pointsman.services.orchestrator.domain.run import RunState
from tests.unit.orchestrator.driver import START, Driver

GOOD = commands.ResearchResult(0.9, "{}")
BAD = commands.MalformedResult("research.summary_md", "is required")
ROUND = ["result_arrived", "artifacts_loaded"]


def researching(slots: int = 4) -> Driver:
    driver = Driver(research_expected=slots).submit().settle()
    assert len(driver.open(Purpose.RESEARCH)) == slots
    return driver


def item(driver: Driver, assignment: Assignment, result: Any = GOOD) -> commands.CompleteAssignment:
    epoch = driver.lease(assignment.assignment_id)
    return commands.CompleteAssignment("run_1", assignment.assignment_id, epoch, "agent", result, Usage(tokens=5))


def together(driver: Driver, *items: commands.CompleteAssignment) -> list[commands.CompletionOutcome]:
    driver.journal.clear()
    return list(driver.send(commands.CompleteAssignments("run_1", items)).outcomes)


def test_reports_that_come_together_are_looked_at_once() -> None:
    driver = researching()
    outcomes = together(driver, *(item(driver, each) for each in driver.open()[:3]))
    assert [outcome.accepted for outcome in outcomes] == [True] * 3
    assert [event.name for event in driver.journal] == ["researched"] * 3 + [*ROUND, "need_more_results"]
    assert driver.is_in(State.WAIT_OTHERS)
    assert len(driver.open()) == 1
    assert driver.run.spent.tokens == 15


def test_the_last_reports_end_the_research() -> None:
    driver = researching()
    together(driver, *(item(driver, each) for each in driver.open()))
    assert driver.moves[:3] == [*ROUND, "enough_info"]
    assert not driver.open(Purpose.RESEARCH)


def test_one_report_is_told_by_one_event_that_also_ends_its_assignment() -> None:
    driver = researching()
    first = driver.open()[0]
    driver.journal.clear()
    driver.hand_in(first, GOOD)
    assert [event.name for event in driver.journal] == ["researched", *ROUND, "need_more_results"]
    told = driver.journal[0].data
    assert told.ended == events.AssignmentEnded(first.assignment_id, AssignmentEnd.DONE, "agent")
    assert first.assignment_id not in driver.run.assignments


def test_who_lost_its_lease_is_refused_and_the_others_are_taken() -> None:
    driver = researching()
    late, good = (item(driver, each) for each in driver.open()[:2])
    driver.lease(late.assignment_id, "another")
    outcomes = together(driver, late, good)
    assert [outcome.accepted for outcome in outcomes] == [False, True]
    assert outcomes[0].refusal == Reason.LEASE_LOST
    assert "another agent holds it" in outcomes[0].problem
    assert len(driver.open()) == 3


def test_a_report_that_does_not_fit_is_a_failed_attempt_of_its_own() -> None:
    driver = researching()
    first, second, *_ = driver.open()
    outcomes = together(driver, item(driver, first, BAD), item(driver, second))
    assert (outcomes[0].field, outcomes[0].refusal) == ("research.summary_md", "")
    assert [event.name for event in driver.journal][:2] == ["assignment_retried", "researched"]
    assert first.assignment_id in driver.run.assignments


def test_a_slot_that_is_lost_with_the_last_reports_does_not_make_them_late() -> None:
    driver = researching(3)
    lost, *others = driver.open()
    for _ in range(2):
        driver.lease(lost.assignment_id)
    outcomes = together(driver, *(item(driver, each) for each in others), item(driver, lost, BAD))
    assert [outcome.accepted for outcome in outcomes] == [True, True, False]
    assert driver.moves[:6] == [*ROUND, "need_more_results", *ROUND, "enough_info"]
    assert [risk.key for risk in driver.run.risks] == [f"research-{lost.slot}"]


def test_the_limit_of_transitions_ends_the_run_in_the_middle_of_what_came_together() -> None:
    so_far = researching().run.spent.transitions
    driver = Driver(research_expected=4).with_budget(transitions=so_far + 2).submit().settle()
    outcomes = together(driver, *(item(driver, each) for each in driver.open()))
    assert driver.is_in(State.FAILED)
    assert [outcome.accepted for outcome in outcomes] == [True, True, True, False]
    assert outcomes[3].refusal == Reason.LEASE_LOST


def test_after_the_end_everything_that_comes_together_is_refused() -> None:
    driver = researching()
    items = [item(driver, each) for each in driver.open()[:2]]
    driver.send(commands.Cancel("run_1", "enough"))
    assert [outcome.refusal for outcome in together(driver, *items)] == [Reason.LEASE_LOST] * 2
    assert driver.journal == []


def test_a_journal_in_which_the_end_of_an_assignment_is_an_event_of_its_own_folds_to_the_same_run() -> None:
    driver = researching(2)
    first = driver.open()[0]
    before = RunState(driver.run.copy())
    driver.hand_in(first, GOOD)
    state = before
    for name, data in (
        (InternalEvent.ASSIGNMENT_ENDED, events.AssignmentEnded(first.assignment_id, AssignmentEnd.DONE, "agent")),
        (InternalEvent.RESEARCHED, events.Researched(first.slot, "agent", True, 0.9, "{}")),
    ):
        state = MACHINE.apply(state, Event(str(name), "RESEARCH_FANOUT", "RESEARCH_FANOUT", data), START)
    assert state.run.assignments == driver.run.assignments
    assert state.run.slots == driver.run.slots
