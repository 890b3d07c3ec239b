"""The real `decide`, held against the table: it takes every row with its actions, and nothing that is not a row."""

import pytest

from pointsman.services.chassis.core.codec import to_json
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.orchestrator.domain.decision import DecisionBuilder, Row
from pointsman.services.orchestrator.domain.enums import TERMINAL, State, Trigger
from pointsman.services.orchestrator.domain.events import Transitioned
from pointsman.services.orchestrator.domain.machine import MACHINE
from pointsman.services.orchestrator.domain.run import RunState
from pointsman.services.orchestrator.domain.table import TABLE
from tests.unit.orchestrator.stories import STORIES, Taken, interrupt, stopped_in_each_state, watching
from tests.unit.orchestrator.vocabulary import IN_TIME, LIVE, SAYINGS, TOO_LATE, Saying, everything_said_in

SAID_ANYWHERE = frozenset(
    {
        Trigger.FOUND_RESUMABLE, Trigger.NO_RESUMABLE, Trigger.USER_RESUME_YES, Trigger.USER_RESUME_NO, Trigger.RESUME_QUEUE_LOADED,
        Trigger.SWITCH, Trigger.KEEP, Trigger.MERGE, Trigger.CLARIFIED, Trigger.NON_BLOCKING_FEEDBACK,
        Trigger.PASS_OR_FEEDBACK_LIMIT_REACHED, Trigger.BLOCKING_FEEDBACK, Trigger.FEEDBACK_ESCALATED, Trigger.RESULT_ARRIVED,
        Trigger.DESIGN_READY, Trigger.RESOURCE_BUSY, Trigger.DISPATCH_FAILED, Trigger.REJECT_OR_RETRY, Trigger.NEXT_WAVE, Trigger.PASS,
        Trigger.REQUIREMENT_CHANGED_OR_BLOCKED, Trigger.CANCEL, Trigger.FATAL_ERROR,
    }
)  # fmt: skip
"""Events that somebody outside can try to bring about whatever state the run is in."""
INNER = frozenset(
    {
        Trigger.AUTO, Trigger.USER_INPUT, Trigger.INTAKE_OK, Trigger.CONFLICT_WITH_CURRENT_EPIC, Trigger.SKIP_PLAN_REVIEW,
        Trigger.OBSERVE_TARGET_DEFINED, Trigger.ARTIFACTS_LOADED, Trigger.NEED_MORE_RESULTS, Trigger.NEED_REPLAN,
        Trigger.REPLAN_LIMIT, Trigger.ENOUGH_INFO, Trigger.HANDOFF_BUNDLE_READY,
    }
)  # fmt: skip
"""Events that only follow another one, in the same command: nothing that is said to a run is one of them."""


@pytest.fixture(scope="module")
def taken() -> list[Taken]:
    """What `decide` did in all stories, and when each state was interrupted."""
    with watching() as watch:
        told = [story() for story in STORIES.values()]
        moved = sum(isinstance(event.data, Transitioned) for driver in told for event in driver.journal)
        assert len(watch.moves) == moved, "each move ran an action"
        for _, state, now in stopped_in_each_state():
            interrupt(state, now)
    return watch.taken()


@pytest.mark.parametrize("row", TABLE.rows, ids=lambda row: f"{row.source}-{row.event}-{row.target}")
def test_decide_takes_the_row_and_runs_its_actions(row: Row, taken: list[Taken]) -> None:
    actions = {item.actions for item in taken if item.row == row}
    assert actions == {row.action_names}


def test_each_state_that_is_not_terminal_is_left_by_a_run_that_goes_on(taken: list[Taken]) -> None:
    left = {item.row.source for item in taken if item.row.event not in (Trigger.CANCEL, Trigger.FATAL_ERROR)}
    assert left == set(LIVE)


def test_a_run_that_changed_is_where_the_interruption_says() -> None:
    stopped = stopped_in_each_state()
    assert {status for status, _, _ in stopped} == set(LIVE)
    for _, state, now in stopped:
        cancelled, failed, *_ = interrupt(state, now)
        assert (cancelled.run.status, failed.run.status) == (State.CANCELLED, State.FAILED)


@pytest.mark.parametrize("status", LIVE)
def test_whatever_is_said_in_a_state_only_rows_are_taken_and_every_other_event_is_refused(
    status: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[tuple[State, Trigger]] = []
    transition = DecisionBuilder.transition

    def noted(builder: DecisionBuilder, event: Trigger, reason: str = "", *, is_replan: bool = False) -> None:
        tried.append((builder.run.status, event))
        held = [row for row in TABLE.rows_for(builder.run.status, event) if row.guard.holds(builder.run)]
        count = len(builder.events)
        try:
            transition(builder, event, reason, is_replan=is_replan)
        finally:
            taken = builder.events[count].target if len(builder.events) > count else None
            assert taken == (held[0].target if held else None)

    monkeypatch.setattr(DecisionBuilder, "transition", noted)
    first: set[Trigger] = set()
    for saying, state in everything_said_in(status):
        tried.clear()
        before = to_json(state.run)
        try:
            MACHINE.decide(state, saying.command, IN_TIME)
        except Refusal:
            assert to_json(state.run) == before
        else:
            assert all(TABLE.rows_for(*pair) for pair in tried)
        first.update(event for _, event in tried[:1])
    assert first >= SAID_ANYWHERE
    assert not first & INNER


@pytest.mark.parametrize("story", ["through", "merged"])
def test_a_run_that_has_ended_changes_by_nothing_that_is_said(story: str) -> None:
    ended = STORIES[story]()
    state = ended.state
    assert state is not None
    assert state.run.status in TERMINAL
    before = to_json(state.run)
    for saying in SAYINGS:
        assert _heard(state, saying) in (None, Reason.STATE_FORBIDS, Reason.LEASE_LOST, Reason.ALREADY_EXISTS)
        assert to_json(state.run) == before


def _heard(state: RunState, saying: Saying) -> Reason | None:
    """Why a run that has ended refuses it; nothing where it is a late answer that it passes over."""
    try:
        decision = MACHINE.decide(state, saying.command, TOO_LATE)
    except Refusal as refusal:
        return refusal.reason
    assert [*decision.events, *decision.effects, *decision.timers] == []
    return None
