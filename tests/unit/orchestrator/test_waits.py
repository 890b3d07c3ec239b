"""No run waits for nothing: wherever it stops, a person is asked, or a durable timer will ask one."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from pointsman.services.chassis.core.errors import Refusal
from pointsman.services.chassis.core.machine import Decision, SetTimer
from pointsman.services.orchestrator.domain import commands
from pointsman.services.orchestrator.domain.calls.pipelines import PipelineSeen
from pointsman.services.orchestrator.domain.enums import (
    TAKES,
    Call,
    Capability,
    PipelineStatus,
    Purpose,
    Question,
    Reply,
    State,
    Verdict,
    Wait,
)
from pointsman.services.orchestrator.domain.machine import MACHINE
from pointsman.services.orchestrator.domain.model import OpenQuestion
from pointsman.services.orchestrator.domain.run import Run, RunState
from pointsman.services.orchestrator.domain.table import TABLE
from pointsman.services.orchestrator.domain.waiting import waiting_for
from tests.unit.orchestrator.driver import MOCKS, START, Driver, plan
from tests.unit.orchestrator.stories import STORIES
from tests.unit.orchestrator.vocabulary import (
    IN_TIME,
    LIVE,
    SAYINGS,
    TIME,
    TOO_LATE,
    Saying,
    everything_said_in,
    runs_in,
)

CLOCK = commands.TimerFired("run_1", "wall_clock")
PASSED_THROUGH = frozenset(
    {
        State.BOOT, State.IDLE, State.INTAKE, State.OBSERVE, State.RESEARCH_INGEST, State.RESEARCH_EVAL,
        State.CODER_HANDOFF,
    }
)  # fmt: skip
ASKED_IN: dict[Question, tuple[State, ...]] = {
    Question.RESUME: (State.RESUME_ASK,),
    Question.CONFLICT: (State.ASK_SWITCH,),
    Question.LOW_CONFIDENCE: (State.ASK_SWITCH,),
    Question.FEEDBACK_ESCALATED: (State.ASK_SWITCH,),
    Question.REPLAN_LIMIT: (State.ASK_SWITCH,),
    Question.DEBATE: (State.PLAN_REVIEW,),
    Question.ACCEPTANCE: (State.REVIEW_ACCEPT,),
    Question.BUDGET: LIVE,
    Question.PAUSED: (State.QUEUE,),
    Question.BLOCKED: (State.QUEUE,),
    Question.PIPELINE_ESCALATED: (State.DISPATCH, State.CODER_EXEC),
    Question.PERMISSION: LIVE,
}


def timers_of(decision: Decision) -> set[str]:
    return {timer.name for timer in decision.timers if isinstance(timer, SetTimer)}


def asking(state: RunState, kind: Question) -> RunState:
    """The run with a question open besides."""
    question = OpenQuestion("q8", kind, "?", ("T1",), START)
    return RunState(state.run.copy().change(question=question), state.leases, state.present)


def decisions_in(status: State) -> Iterator[tuple[Saying, RunState, Any, Decision]]:
    """What comes of everything that can be said in a state: in time, too late, and too late with a question open."""
    for saying, heard in everything_said_in(status):
        late = [heard] if heard.run.question else [heard, asking(heard, Question.BUDGET)]
        in_time = [] if saying.command == CLOCK else [(heard, IN_TIME)]
        for state, now in (*in_time, *((state, TOO_LATE) for state in late)):
            try:
                yield saying, state, now, MACHINE.decide(state, saying.command, now)
            except Refusal:
                continue


def test_a_run_begins_with_its_clock_set() -> None:
    driver = Driver().submit()
    assert (driver.timers["wall_clock"] - START).total_seconds() == TIME


@pytest.mark.parametrize("status", LIVE)
def test_when_the_clock_strikes_in_any_state_a_person_is_asked_for_time(status: State) -> None:
    for run, present in runs_in(status):
        decision = MACHINE.decide(RunState(run, {}, present), CLOCK, TOO_LATE)
        question = decision.state.run.question
        assert (question.kind, question.subjects) == (Question.BUDGET, ("wall_clock",))
        waiting = waiting_for(decision.state.run)
        assert waiting is not None
        assert (waiting.kind, waiting.who) == (Wait.BUDGET, "wall_clock")


@pytest.mark.parametrize("status", LIVE)
def test_whatever_is_said_a_live_run_has_its_clock_set_or_a_person_asked(status: State) -> None:
    for saying, state, now, decision in decisions_in(status):
        after: Run = decision.state.run
        fired = saying.command == CLOCK or (now == TOO_LATE and state.run.question is not None)
        keeps_clock = not fired and not decision.drop_effects
        if not after.ended:
            assert keeps_clock or "wall_clock" in timers_of(decision) or after.question, (saying, now)


def test_a_person_who_answers_after_the_time_is_asked_for_more_when_others_still_wait_for_an_agent() -> None:
    driver = Driver(MOCKS | {Capability.PLAN}).submit().settle()
    driver.hand_in(driver.open(Purpose.PLAN)[0], commands.PlanResult(plan("T1", "T2")))
    driver.work_until(Purpose.STAGE).fire("pipelines")
    driver.send(commands.TimerFired("run_1", "pipelines"))
    call_id = driver.effects.pop(0).data.call_id
    driver.send(commands.CallAnswered("run_1", PipelineSeen(call_id, "T1", PipelineStatus.ESCALATED)))
    driver.settle().fire("wall_clock")
    assert "wall_clock" not in driver.timers
    assert driver.run.question is not None
    driver.send(commands.Answer("run_1", driver.run.question.question_id, Reply.SKIP_STAGE, stage="DEV"))
    call_id = driver.effects.pop(0).data.call_id
    driver.send(commands.CallAnswered("run_1", PipelineSeen(call_id, "T1", PipelineStatus.COMPLETED)))
    assert [item.task_id for item in driver.open()] == ["T2"]
    asked = driver.fire("wall_clock").run.question
    assert asked is not None
    assert asked.kind is Question.BUDGET


def test_the_pipelines_timer_of_a_wave_that_has_ended_finds_nothing_to_look_at_in_the_next() -> None:
    driver = Driver().submit().settle().work_until(Purpose.REVIEW)
    review = driver.open(Purpose.REVIEW)[0]
    epoch, result = driver.lease(review.assignment_id), commands.ReviewResult(Verdict.RETRY)
    driver.send(commands.CompleteAssignment("run_1", review.assignment_id, epoch, "agent", result))
    while not driver.is_in(State.DISPATCH):
        driver._deliver(driver.effects.pop(0))
    driver.send(commands.TimerFired("run_1", "pipelines"))
    assert driver.settle().is_in(State.CODER_EXEC)
    assert "pipelines" in driver.timers


def test_who_comes_to_wait_for_room_or_for_pipelines_sets_a_timer_to_look_again() -> None:
    looks = {
        State.QUEUE: ("queue", {Call.GET_WORKFLOW, Call.FORWARD_ANSWER}),
        State.CODER_EXEC: ("pipelines", set()),
    }
    seen = dict.fromkeys(looks, 0)
    for status in {row.source for row in TABLE.rows if row.target in looks}:
        for saying, state, _, decision in decisions_in(status):
            after: Run = decision.state.run
            came = after.status in looks and after.status is not state.run.status
            fired = after.status in looks and saying.command == commands.TimerFired("run_1", looks[after.status][0])
            if came or fired:
                name, calls = looks[after.status]
                assert name in timers_of(decision) or calls & set(after.calls.values()), saying
                seen[after.status] += 1
    assert all(seen.values())


@pytest.mark.parametrize("kind", Question)
def test_each_answer_that_a_question_takes_is_taken_where_it_is_asked(kind: Question) -> None:
    taken = set()
    for status, saying in product(ASKED_IN[kind], SAYINGS):
        if saying.question is kind and isinstance(saying.command, commands.Answer):
            for run, present in runs_in(status):
                if saying.command.reply in TAKES[kind]:
                    assert MACHINE.decide(saying.to(run, present), saying.command, IN_TIME).events
                    taken.add(saying.command.reply)
    assert taken == set(TAKES[kind])


def test_where_a_run_stops_it_says_for_whom_and_the_other_states_are_passed_in_one_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kinds: dict[State, set[Wait]] = {}
    send = Driver.send

    def noted(driver: Driver, command: Any) -> Any:
        answer = send(driver, command)
        if not driver.run.ended:
            waiting = waiting_for(driver.run)
            assert waiting is not None
            assert waiting.who
            assert waiting.action
            assert "wall_clock" in driver.timers
            kinds.setdefault(driver.run.status, set()).add(waiting.kind)
        return answer

    monkeypatch.setattr(Driver, "send", noted)
    for story in STORIES.values():
        story()
    assert set(kinds) == set(LIVE) - PASSED_THROUGH
    for status in (State.RESUME_ASK, State.ASK_SWITCH):
        assert kinds[status] == {Wait.PERSON}
    for status in (State.RESEARCH_FANOUT, State.WAIT_OTHERS, State.DETAIL_DESIGN):
        assert kinds[status] == {Wait.AGENT}
    for status in (State.IDLE_PROBE_BD, State.RESUME_PLAN, State.EPIC_SYNC, State.SCHEDULE, State.DISPATCH):
        assert kinds[status] == {Wait.PEER}
