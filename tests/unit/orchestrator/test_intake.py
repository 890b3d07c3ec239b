"""Resume, conflict, confidence: from BOOT to PLAN_BASELINE."""

import pytest

from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.orchestrator.domain import commands
from pointsman.services.orchestrator.domain.enums import Call, Question, Reply, Resume, State
from pointsman.services.orchestrator.domain.model import Candidate
from tests.unit.orchestrator.driver import Driver

PLANNED = (Candidate("epic_9", "the old wish", planned=True),)
IDLE = (Candidate("epic_8", "an idle wish", planned=False),)


def asked(driver: Driver, kind: Question) -> bool:
    return driver.run.question is not None and driver.run.question.kind is kind


def found(resume: Resume, candidates: tuple[Candidate, ...]) -> Driver:
    driver = Driver(resume=resume)
    driver.candidates = candidates
    return driver.submit("new wish").settle()


def test_resume_asks_when_there_is_unfinished_work() -> None:
    driver = found(Resume.ASK, PLANNED)
    assert driver.is_in(State.RESUME_ASK)
    assert asked(driver, Question.RESUME)


def test_resume_no_goes_on_with_the_message_and_keeps_the_candidates() -> None:
    driver = found(Resume.ASK, PLANNED).reply(Reply.RESUME_NO)
    assert driver.is_in(State.RESEARCH_FANOUT)
    assert driver.run.intent == "new wish"
    assert driver.run.candidates == PLANNED


def test_resume_yes_keeps_the_message_as_the_next_epic_and_goes_to_observe() -> None:
    driver = found(Resume.ASK, PLANNED).reply(Reply.RESUME_YES)
    assert "resume_queue_loaded" in driver.moves
    assert driver.run.epic_id == "epic_9"
    assert driver.run.intent == "the old wish"
    assert driver.run.queued_epic_id == "epic_queued"


def test_auto_resume_asks_nobody() -> None:
    driver = found(Resume.YES, PLANNED)
    assert driver.run.question is None
    assert driver.moves[2:5] == ["found_resumable", "resume_queue_loaded", "observe_target_defined"]


def test_nothing_to_resume_goes_on_with_the_message() -> None:
    assert "no_resumable" in found(Resume.ASK, ()).moves


def test_a_resumed_run_does_only_the_tasks_that_are_left_and_starts_the_kept_message_after_complete() -> None:
    driver = found(Resume.YES, PLANNED).work_until()
    assert driver.is_in(State.COMPLETE)
    assert driver.run.wave == ("T2",)
    assert driver.told[-1].kind == Call.START_NEXT
    assert driver.told[-1].data.epic_id == "epic_queued"


def test_an_idle_epic_resumes_as_a_run_of_its_own() -> None:
    driver = found(Resume.YES, IDLE)
    assert driver.is_in(State.CANCELLED)
    assert driver.run.end_reason == "kept"
    assert [effect.data.epic_id for effect in driver.told if effect.kind == Call.START_NEXT] == ["epic_8"]


def test_confidence_below_0_6_at_intake_asks_for_clarity() -> None:
    driver = Driver(confidence=0.59).submit().settle()
    assert driver.is_in(State.ASK_SWITCH)
    assert asked(driver, Question.LOW_CONFIDENCE)


def test_a_question_about_an_unclear_request_is_reported_to_the_router_as_a_clarification() -> None:
    driver = Driver(confidence=0.59).submit().settle()
    reported = [effect.data for effect in driver.told if effect.kind == Call.REPORT_OUTCOME]
    assert [(data.clarification, data.failed) for data in reported] == [(True, False)]


def test_confidence_0_6_passes() -> None:
    assert Driver(confidence=0.6).submit().settle().run.status is State.RESEARCH_FANOUT


def test_confidence_is_checked_before_the_conflict() -> None:
    driver = Driver(confidence=0.5, rival_run_id="run_0").submit().settle()
    assert asked(driver, Question.LOW_CONFIDENCE)


def test_clarified_replaces_the_intake_text_with_confidence_one() -> None:
    driver = Driver(confidence=0.5).submit().settle().reply(Reply.CLARIFIED, text="I mean this")
    assert driver.run.intent == "I mean this"
    assert driver.run.effective_confidence == 1.0
    assert driver.is_in(State.RESEARCH_FANOUT)


def test_a_clarification_that_is_still_unsure_is_asked_about_again() -> None:
    driver = Driver(confidence=0.5).submit().settle().reply(Reply.CLARIFIED, text="perhaps", confidence=0.59)
    assert driver.is_in(State.ASK_SWITCH)
    assert driver.run.question is not None
    assert driver.run.question.question_id == "q2"


def test_a_clarification_without_words_is_refused_with_the_field() -> None:
    driver = Driver(confidence=0.5).submit().settle()
    with pytest.raises(Refusal) as caught:
        driver.reply(Reply.CLARIFIED)
    assert caught.value.metadata["field"] == "text"


def test_another_live_run_of_the_session_is_a_conflict() -> None:
    driver = Driver(rival_run_id="run_0").submit().settle()
    assert driver.is_in(State.ASK_SWITCH)
    assert asked(driver, Question.CONFLICT)


def test_switch_parks_the_other_run_and_goes_on() -> None:
    driver = Driver(rival_run_id="run_0").submit().settle().reply(Reply.SWITCH)
    assert [(e.kind, e.data.run_id) for e in driver.told] == [(Call.PARK_RUN, "run_0")]
    assert driver.is_in(State.RESEARCH_FANOUT)


def test_keep_stores_this_epic_and_ends_kept() -> None:
    driver = Driver(rival_run_id="run_0").submit().settle().reply(Reply.KEEP)
    assert (driver.run.status, driver.run.end_reason) == (State.CANCELLED, "kept")
    assert driver.run.epic_id == "epic_1"
    assert [effect.kind for effect in driver.told] == [Call.RELEASE]


def test_merge_hands_the_text_to_the_other_run_and_ends_naming_it() -> None:
    driver = Driver(rival_run_id="run_0").submit("more of it").settle().reply(Reply.MERGE)
    assert (driver.run.status, driver.run.end_reason) == (State.CANCELLED, "merged into run_0")
    assert driver.told[0].kind == Call.MERGE_INTO_RUN
    assert driver.told[0].data.text == "more of it"


def test_a_run_parked_by_another_keeps_its_epic_resumable() -> None:
    driver = Driver().submit().settle()
    driver.send(commands.Cancel("run_1", "parked", resumable=True))
    driver.settle()
    assert driver.run.end_reason == "parked"
    assert driver.told[-1].kind == Call.RELEASE
    assert driver.told[-1].data.disown


def test_an_answer_that_the_question_does_not_take_is_refused() -> None:
    driver = Driver(rival_run_id="run_0").submit().settle()
    with pytest.raises(Refusal) as caught:
        driver.reply(Reply.CLARIFIED, text="x")
    assert caught.value.reason is Reason.STATE_FORBIDS


def test_an_answer_to_an_older_question_is_refused() -> None:
    driver = Driver(confidence=0.5).submit().settle()
    with pytest.raises(Refusal):
        driver.send(commands.Answer("run_1", "q0", Reply.CLARIFIED, "x"))


def test_an_answer_when_nothing_is_asked_is_refused() -> None:
    driver = Driver().submit().settle()
    with pytest.raises(Refusal):
        driver.send(commands.Answer("run_1", "q1", Reply.CLARIFIED, "x"))


def test_a_second_run_with_the_same_id_is_refused() -> None:
    driver = Driver().submit()
    with pytest.raises(Refusal) as caught:
        driver.submit()
    assert caught.value.reason is Reason.ALREADY_EXISTS
