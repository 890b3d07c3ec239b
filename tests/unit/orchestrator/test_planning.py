"""Plans, their debate, research, and re-planning."""

import json
from typing import Any

import pytest

from pointsman.services.chassis.core.errors import Refusal
from pointsman.services.orchestrator.domain import commands, criteria
from pointsman.services.orchestrator.domain.enums import (
    Capability,
    DebateVerdict,
    Purpose,
    Question,
    Reply,
    Resume,
    Severity,
    State,
)
from pointsman.services.orchestrator.domain.model import Candidate, GivenCriterion, Plan, Remark, TaskOutline
from tests.unit.orchestrator.driver import ALL, MOCKS, NOBODY, Driver, plan

MODIFY = DebateVerdict.MODIFY
DEBATER = MOCKS | {Capability.DEBATE}


def remarks(*keys: str, blocking: bool = False) -> commands.DebateResult:
    return commands.DebateResult(tuple(Remark(key, f"about {key}", blocking=blocking) for key in keys))


def debating(*verdicts: DebateVerdict, present: frozenset[Capability] = DEBATER, high_stakes: bool = False) -> Driver:
    driver = Driver(present, debate=True, high_stakes=high_stakes)
    driver.verdicts = list(verdicts)
    return driver.submit().settle()


def debate(driver: Driver, result: commands.DebateResult) -> None:
    driver.hand_in(driver.open(Purpose.DEBATE)[0], result)


GIVEN = (
    GivenCriterion("V1", "`make test` succeeds", ("make", "test")),
    GivenCriterion("V2", "`make lint` succeeds", ("make", "lint")),
    GivenCriterion("A1", "the old flag still works"),
)


def test_without_a_planner_the_built_in_plan_has_one_task_and_the_given_criteria() -> None:
    driver = Driver(NOBODY, criteria=GIVEN).submit().settle()
    (task,) = driver.run.tasks.values()
    known = [(c.criterion_id, c.has_command, c.required) for c in task.outline.criteria]
    assert known == [("V1", True, True), ("V2", True, True), ("A1", False, True)]


def test_a_planner_may_place_a_given_criterion_but_not_change_or_drop_it() -> None:
    weak = {"id": "V1", "statement": "whatever", "required": False, "verifyCommand": ["true"]}
    tasks: list[dict[str, Any]] = [
        {"id": "T1", "name": "first", "acceptanceCriteria": [weak]},
        {"id": "T2", "name": "second", "depends": ["T1"]},
        {"id": "T3", "name": "third", "acceptanceCriteria": [{"id": "own", "statement": "fine"}]},
        {"id": "T4", "name": "needed by the third", "acceptanceCriteria": []},
    ]
    tasks[2]["depends"] = ["T4"]
    outlines = tuple(TaskOutline(str(task["id"]), str(task["name"]), ()) for task in tasks)
    made = criteria.insist(Plan(outlines, (), 0.9, json.dumps({"tasks": tasks})), GIVEN, ())
    placed = {task.task_id: [c.criterion_id for c in task.criteria] for task in made.tasks}
    assert placed == {"T1": ["V1"], "T2": [], "T3": ["own", "V2", "A1"], "T4": []}
    (first,) = made.tasks[0].criteria
    assert (first.required, first.has_command) == (True, True)
    written = json.loads(made.document)["tasks"][0]["acceptanceCriteria"]
    assert written == [criteria.written(GIVEN[0])]


def test_what_the_planner_left_out_goes_to_a_task_that_is_still_to_be_done() -> None:
    tasks = [{"id": "T1", "name": "new"}, {"id": "T2", "name": "done"}]
    outlines = tuple(TaskOutline(task["id"], task["name"], ()) for task in tasks)
    made = criteria.insist(Plan(outlines, (), 0.9, json.dumps({"tasks": tasks})), GIVEN, ("T2",))
    assert [len(task.criteria) for task in made.tasks] == [3, 0]


def test_a_resumed_epic_is_held_to_the_commands_and_not_to_the_words_of_another_wish() -> None:
    driver = Driver(NOBODY, criteria=GIVEN, resume=Resume.YES)
    driver.candidates = (Candidate("epic_9", "old", planned=True),)
    driver.submit().settle()
    assert [item.criterion_id for item in driver.run.given_criteria] == ["V1", "V2"]


def test_a_plan_below_0_6_asks_for_clarity() -> None:
    driver = Driver(ALL).submit().settle()
    driver.hand_in(driver.open(Purpose.PLAN)[0], commands.PlanResult(plan(confidence=0.59)))
    assert driver.is_in(State.ASK_SWITCH)


def test_a_clarified_plan_is_made_again_and_the_answers_confidence_holds() -> None:
    driver = Driver(ALL).submit().settle()
    driver.hand_in(driver.open(Purpose.PLAN)[0], commands.PlanResult(plan(confidence=0.1)))
    driver.reply(Reply.CLARIFIED, text="so")
    driver.hand_in(driver.open(Purpose.PLAN)[0], commands.PlanResult(plan(confidence=0.1)))
    assert driver.is_in(State.RESEARCH_FANOUT)


def test_the_plan_is_reviewed_only_when_the_router_called_for_a_debate() -> None:
    assert "skip_plan_review" in Driver().submit().settle().moves
    assert "need_plan_review" in debating().moves


def test_proceed_passes_the_plan() -> None:
    driver = debating(DebateVerdict.PROCEED)
    debate(driver, remarks("a"))
    assert "pass_or_feedback_limit_reached" in driver.moves


def test_rounds_one_and_two_stay_and_the_third_releases_the_item_as_a_residual_risk() -> None:
    driver = debating(MODIFY, MODIFY, MODIFY)
    debate(driver, remarks("a"))
    debate(driver, remarks("a"))
    assert driver.is_in(State.PLAN_REVIEW)
    debate(driver, remarks("a"))
    assert driver.is_in(State.RESEARCH_FANOUT)
    assert [risk.key for risk in driver.run.risks] == ["feedback-a"]


def test_rounds_are_counted_per_feedback_item() -> None:
    driver = debating(MODIFY, MODIFY, MODIFY, MODIFY)
    debate(driver, remarks("a"))
    debate(driver, remarks("a"))
    debate(driver, remarks("a", "b"))
    assert driver.is_in(State.PLAN_REVIEW)
    assert list(driver.run.remarks) == ["b"]
    debate(driver, remarks("b"))
    assert driver.is_in(State.PLAN_REVIEW)


def test_blocking_feedback_goes_back_to_the_plan_three_times_then_asks() -> None:
    driver = debating(*[MODIFY] * 4)
    for _ in range(3):
        debate(driver, remarks("a", blocking=True))
        assert driver.is_in(State.PLAN_REVIEW)
    debate(driver, remarks("a", blocking=True))
    assert driver.is_in(State.ASK_SWITCH)
    assert driver.moves.count("blocking_feedback") == 3
    assert "feedback_escalated" in driver.moves


def test_feedback_at_high_stakes_is_blocking_and_never_released() -> None:
    driver = debating(MODIFY, high_stakes=True)
    debate(driver, remarks("a"))
    assert "blocking_feedback" in driver.moves
    assert driver.run.risks == ()


def test_an_escalated_debate_asks_a_person() -> None:
    driver = debating(DebateVerdict.ESCALATE)
    debate(driver, remarks("a"))
    assert driver.run.question is not None
    assert driver.run.question.kind is Question.FEEDBACK_ESCALATED


def test_the_planner_answers_the_open_items_before_the_router_decides() -> None:
    driver = debating(present=ALL).work_until(Purpose.DEBATE)
    debate(driver, remarks("a"))
    assert [item.purpose for item in driver.open()] == [Purpose.PLAN_ANSWER]


def test_without_a_debater_a_person_is_asked() -> None:
    driver = debating(present=MOCKS)
    assert driver.run.question is not None
    assert driver.run.question.kind is Question.DEBATE
    driver.reply(Reply.PROCEED)
    assert driver.is_in(State.RESEARCH_FANOUT)


@pytest.mark.parametrize(
    ("reply", "move"), [(Reply.MODIFY, "blocking_feedback"), (Reply.ESCALATE, "feedback_escalated")]
)
def test_a_person_can_also_send_the_plan_back(reply: Reply, move: str) -> None:
    driver = debating(present=MOCKS).reply(reply, text="smaller")
    assert move in driver.moves


def test_a_lost_debater_leaves_the_debate_to_a_person() -> None:
    driver = debating()
    driver.lose(driver.open(Purpose.DEBATE)[0])
    assert driver.run.question is not None


def test_audit_errors_are_blocking_feedback_with_require_audit() -> None:
    driver = Driver(ALL, require_audit=True)
    driver.audit_errors = ("T1: undecided 'TBD'",)
    driver.submit().settle().work_until(Purpose.DEBATE, Purpose.RESEARCH)
    assert driver.moves.count("blocking_feedback") == 3
    assert driver.is_in(State.ASK_SWITCH)


def test_a_lost_planner_is_replaced_by_the_built_in_one_and_is_a_risk() -> None:
    driver = Driver(ALL).submit().settle()
    driver.lose(driver.open(Purpose.PLAN)[0])
    assert driver.run.plan_built_in
    assert [risk.key for risk in driver.run.risks] == ["planner-lost"]


def test_a_plan_that_cannot_be_stored_is_replaced_by_the_built_in_one() -> None:
    driver = Driver(ALL).submit().settle()
    assignment = driver.open(Purpose.PLAN)[0]
    epoch = driver.lease(assignment.assignment_id)
    result = commands.PlanResult(plan())
    driver.send(commands.CompleteAssignment("run_1", assignment.assignment_id, epoch, "agent", result))
    driver.refuse_next("T1 depends on itself").settle()
    assert driver.run.plan_built_in


def researching(*slots: str) -> Driver:
    driver = Driver(ALL).submit().settle()
    driver.hand_in(driver.open(Purpose.PLAN)[0], commands.PlanResult(plan(slots=slots)))
    return driver


def report(driver: Driver, slot: str, confidence: float = 0.9) -> None:
    assignment = next(item for item in driver.open(Purpose.RESEARCH) if item.slot == slot)
    driver.hand_in(assignment, commands.ResearchResult(confidence, "{}"), f"researcher-{slot}")


def test_research_fans_out_one_assignment_per_slot() -> None:
    assert [item.slot for item in researching("a", "b", "c").open(Purpose.RESEARCH)] == ["a", "b", "c"]


def test_open_slots_need_more_results_and_are_waited_for() -> None:
    driver = researching("a", "b")
    report(driver, "a")
    assert driver.is_in(State.WAIT_OTHERS)
    assert [item.slot for item in driver.open()] == ["b"]


def test_a_result_is_ingested_once_per_slot() -> None:
    driver = researching("a", "b")
    assignment = driver.open(Purpose.RESEARCH)[0]
    report(driver, "a")
    with pytest.raises(Refusal):
        driver.hand_in(assignment, commands.ResearchResult(0.9, "{}"))


@pytest.mark.parametrize(
    ("slot", "is_risk"), [("lexer", True), ("survey-x", True), ("survey", False), ("survey-2", False)]
)
def test_a_question_that_only_a_survey_answers_is_a_residual_risk(slot: str, is_risk: bool) -> None:
    driver = researching(slot)
    (assignment,) = driver.open(Purpose.RESEARCH)
    driver.hand_in(assignment, commands.ResearchResult(0.9, "{}", is_survey=True), "box-surveyor")
    risks = [risk.statement for risk in driver.run.risks if risk.key == f"survey-{slot}"]
    assert bool(risks) == is_risk
    assert all("no researcher was there" in statement for statement in risks)


def test_enough_research_goes_to_the_design() -> None:
    driver = researching("a", "b")
    report(driver, "a", 0.5)
    report(driver, "b", 0.7)
    assert "enough_info" in driver.moves


def test_research_whose_mean_confidence_is_below_0_6_needs_a_new_plan() -> None:
    driver = researching("a", "b")
    report(driver, "a", 0.5)
    report(driver, "b", 0.69)
    assert driver.moves[-1] == "need_replan"
    assert driver.is_in(State.PLAN_BASELINE)


def test_a_lost_slot_is_left_out_and_becomes_a_residual_risk() -> None:
    driver = researching("a", "b")
    driver.lose(driver.open(Purpose.RESEARCH)[0])
    report(driver, "b")
    assert "enough_info" in driver.moves
    assert [risk.key for risk in driver.run.risks] == ["research-a"]


def test_no_usable_report_needs_a_new_plan() -> None:
    driver = researching("a")
    driver.lose(driver.open(Purpose.RESEARCH)[0])
    assert driver.moves[-1] == "need_replan"


def test_the_fourth_re_plan_from_research_asks_a_person_and_the_answer_resets_the_count() -> None:
    driver = researching("a")
    for _ in range(3):
        report(driver, "a", 0.1)
        driver.hand_in(driver.open(Purpose.PLAN)[0], commands.PlanResult(plan(slots=("a",))))
    report(driver, "a", 0.1)
    assert driver.moves[-1] == "replan_limit"
    assert driver.run.question is not None
    driver.reply(Reply.CLARIFIED, text="look elsewhere")
    assert driver.run.replans == 0


def test_a_lost_designer_leaves_the_plans_own_words_and_a_risk() -> None:
    driver = researching("a")
    report(driver, "a")
    driver.lose(driver.open(Purpose.DESIGN)[0])
    assert [(risk.key, risk.severity) for risk in driver.run.risks] == [("designer-lost", Severity.LOW)]
    assert "design_ready" in driver.moves


def test_without_researcher_and_repository_there_is_nothing_to_survey() -> None:
    driver = Driver(NOBODY).submit().settle()
    assert driver.open(Purpose.RESEARCH) == []
    assert "enough_info" in driver.moves


def test_with_a_repository_the_survey_waits_for_a_worker() -> None:
    driver = Driver(NOBODY, repository_id="r").submit().settle()
    (assignment,) = driver.open()
    assert assignment.purpose is Purpose.RESEARCH
    assert assignment.needs_repository


def test_as_many_reports_are_asked_for_as_the_caller_expects() -> None:
    assert len(Driver(research_expected=3).submit().settle().open(Purpose.RESEARCH)) == 3
