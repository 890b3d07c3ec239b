"""Failures, rejections, errors elsewhere, resets and debates: the machine of outcomes."""

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from pointsman.services.router.domain.debate_verdict import (
    Arguments,
    DebateKind,
    Severity,
    Verdict,
    failure_verdict,
    planning_verdict,
)
from pointsman.services.router.domain.enums import Stakes
from pointsman.services.router.domain.identity import canonical_text, fingerprint, task_id
from pointsman.services.router.domain.outcomes import (
    EVENTS,
    Cause,
    Outcome,
    OutcomeEvent,
    Outcomes,
    Reaction,
    Reported,
    ReportOutcome,
    Resolved,
    ResolveDebate,
    apply,
    decide,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CALM = Arguments(confidence=0.9, has_difference=True, severity=Severity.NONE, has_objection=False, has_counter=False)


class World:
    """A project's outcomes in memory."""

    def __init__(self) -> None:
        self.state: Outcomes | None = None
        self.now = NOW

    def report(self, outcome: Outcome, task: str = "t", error: str = "", security: bool = False) -> Reported:
        answer = self._submit(ReportOutcome("outcomes:p", task, outcome, error, security))
        assert isinstance(answer, Reported)
        return answer

    def resolve(self, kind: DebateKind, said: Arguments = CALM, session: str = "", task: str = "t") -> Resolved:
        answer = self._submit(ResolveDebate("outcomes:p", task, kind, session, Stakes.NONE, said))
        assert isinstance(answer, Resolved)
        return answer

    def _submit(self, command: ReportOutcome | ResolveDebate) -> object:
        decision = decide(self.state, command, self.now)
        for event in decision.events:
            assert isinstance(event.data, EVENTS[event.name])
            self.state = apply(self.state, event, self.now)
        return decision.answer


def test_one_failure_leads_to_nothing() -> None:
    assert World().report(Outcome.FAILURE).reaction is Reaction.NONE


def test_two_consecutive_failures_of_the_same_task_are_debated() -> None:
    world = World()
    world.report(Outcome.FAILURE)
    answer = world.report(Outcome.FAILURE)
    assert (answer.reaction, answer.cause) == (Reaction.DEBATE_FAILURE, Cause.TWO_FAILURES)


def test_three_consecutive_failures_escalate() -> None:
    world = World()
    reactions = [world.report(Outcome.FAILURE).reaction for _ in range(4)]
    assert reactions == [Reaction.NONE, Reaction.DEBATE_FAILURE, Reaction.AUTO_ESCALATE, Reaction.AUTO_ESCALATE]


def test_a_security_task_that_fails_once_escalates() -> None:
    answer = World().report(Outcome.FAILURE, security=True)
    assert (answer.reaction, answer.cause) == (Reaction.AUTO_ESCALATE, Cause.SECURITY_FAILURE)


def test_security_comes_before_three_failures() -> None:
    world = World()
    for _ in range(3):
        answer = world.report(Outcome.FAILURE, security=True)
    assert answer.cause is Cause.SECURITY_FAILURE


def test_different_tasks_with_an_identical_error_are_debated() -> None:
    world = World()
    world.report(Outcome.FAILURE, "one", "E|boom")
    answer = world.report(Outcome.FAILURE, "two", "E|boom")
    assert (answer.reaction, answer.cause) == (Reaction.DEBATE_FAILURE, Cause.SAME_ERROR_ELSEWHERE)


def test_an_error_without_fingerprint_is_like_no_other() -> None:
    world = World()
    world.report(Outcome.FAILURE, "one", "")
    assert world.report(Outcome.FAILURE, "two", "").reaction is Reaction.NONE


def test_an_error_of_yesterday_does_not_count() -> None:
    world = World()
    world.report(Outcome.FAILURE, "one", "E|boom")
    world.now += timedelta(hours=24)
    assert world.report(Outcome.FAILURE, "two", "E|boom").reaction is Reaction.NONE


def test_two_user_rejections_are_debated() -> None:
    world = World()
    assert world.report(Outcome.USER_REJECTED).reaction is Reaction.NONE
    answer = world.report(Outcome.USER_REJECTED)
    assert (answer.reaction, answer.cause) == (Reaction.DEBATE_FAILURE, Cause.TWO_REJECTIONS)


@pytest.mark.parametrize("reset", [Outcome.SUCCESS, Outcome.START_FRESH])
def test_a_success_or_a_fresh_start_clears_the_count(reset: Outcome) -> None:
    world = World()
    world.report(Outcome.FAILURE)
    world.report(Outcome.USER_REJECTED)
    world.report(reset)
    answer = world.report(Outcome.FAILURE)
    assert (answer.failures, answer.rejections) == (1, 0)


@pytest.mark.parametrize(("hours", "failures"), [(23.99, 2), (24, 1)])
def test_24_hours_clear_the_count(hours: float, failures: int) -> None:
    world = World()
    world.report(Outcome.FAILURE)
    world.now += timedelta(hours=hours)
    assert world.report(Outcome.FAILURE).failures == failures


def test_tasks_are_counted_apart() -> None:
    world = World()
    world.report(Outcome.FAILURE, "one", "a")
    assert world.report(Outcome.FAILURE, "two", "b").failures == 1


def test_every_outcome_in_every_order_keeps_the_counts_consistent() -> None:
    for outcomes in itertools.product(Outcome, repeat=4):
        world = World()
        failures = rejections = 0
        for outcome in outcomes:
            answer = world.report(outcome)
            if outcome in (Outcome.SUCCESS, Outcome.START_FRESH):
                failures = rejections = 0
            failures += outcome is Outcome.FAILURE
            rejections += outcome is Outcome.USER_REJECTED
            assert (answer.failures, answer.rejections) == (failures, rejections)


def test_every_event_has_a_payload_type() -> None:
    assert set(EVENTS) == set(OutcomeEvent)


@pytest.mark.parametrize(
    ("said", "stakes", "verdict"),
    [
        (replace(CALM, severity=Severity.HIGH, has_counter=True), Stakes.NONE, Verdict.MODIFY),
        (replace(CALM, severity=Severity.HIGH), Stakes.NONE, Verdict.ESCALATE),
        (replace(CALM, severity=Severity.LOW), Stakes.NONE, Verdict.PROCEED),
        (replace(CALM, severity=Severity.LOW), Stakes.HIGH, Verdict.MODIFY),
        (CALM, Stakes.HIGH, Verdict.PROCEED),
        (replace(CALM, confidence=0.79), Stakes.HIGH, Verdict.ESCALATE),
        (replace(CALM, confidence=0.79), Stakes.NONE, Verdict.PROCEED),
        (replace(CALM, confidence=0.79, severity=Severity.LOW), Stakes.NONE, Verdict.MODIFY),
        (replace(CALM, severity=Severity.MEDIUM), Stakes.NONE, Verdict.MODIFY),
    ],
)
def test_a_planning_debate_ends_by_rule(said: Arguments, stakes: Stakes, verdict: Verdict) -> None:
    assert planning_verdict(said, stakes)[0] is verdict


def test_high_stakes_and_any_disagreement_never_proceed() -> None:
    for severity, objection, counter, confidence in itertools.product(Severity, (0, 1), (0, 1), (0.0, 0.8, 1.0)):
        said = Arguments(confidence, False, severity, bool(objection), bool(counter))
        verdict, _ = planning_verdict(said, Stakes.HIGH)
        assert verdict is not Verdict.PROCEED or not said.disagree


def test_a_failure_debate_retries_with_a_difference_and_pivots_without() -> None:
    assert failure_verdict(CALM, same_pattern_again=False)[0] is Verdict.RETRY
    assert failure_verdict(replace(CALM, has_difference=False), same_pattern_again=False)[0] is Verdict.PIVOT


def test_the_same_pattern_again_after_a_failure_debate_escalates() -> None:
    world = World()
    world.report(Outcome.FAILURE, error="E|boom")
    world.report(Outcome.FAILURE, error="E|boom")
    assert world.resolve(DebateKind.FAILURE).verdict is Verdict.RETRY
    world.report(Outcome.FAILURE, error="E|boom")
    assert world.resolve(DebateKind.FAILURE).verdict is Verdict.ESCALATE


def test_a_debate_is_remembered_for_its_session() -> None:
    world = World()
    world.resolve(DebateKind.PLANNING, session="s1")
    world.report(Outcome.SUCCESS)
    assert world.state is not None
    assert world.state.tracks["t"].sessions == ("s1",)


def test_the_canonical_text_keeps_letters_of_every_script() -> None:
    assert canonical_text("  Fix, the É-Parser №7! ") == "fix the é parser 7"
    assert task_id("修复 错误") != task_id("修复 其他")
    assert task_id("Fix the parser") == task_id("fix   THE parser!!")


def test_a_fingerprint_leaves_paths_and_numbers_out() -> None:
    one = fingerprint("E1", "cannot open /tmp/a/1.txt at line 12")
    two = fingerprint("E1", "cannot open /var/b.txt at line 99")
    assert one == two
    assert fingerprint("E2", "cannot open /tmp/a/1.txt at line 12") != one
    assert len(fingerprint("", "x" * 500)) == 51
    assert fingerprint(" ", "  ") == ""
