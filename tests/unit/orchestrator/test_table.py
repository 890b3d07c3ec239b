"""The table, enumerated: every row, every other pair, every state's ways in and out."""

import itertools
from dataclasses import replace

import pytest

from pointsman.api.orchestrator.v1 import run_pb2
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.orchestrator.domain.decision import ALWAYS, DecisionBuilder, Guard, Row, Table
from pointsman.services.orchestrator.domain.enums import TERMINAL, InternalEvent, Resume, State, Trigger
from pointsman.services.orchestrator.domain.event_types import EVENTS
from pointsman.services.orchestrator.domain.model import (
    Budget,
    Judgement,
    OpenRemark,
    Order,
    Remark,
    Routing,
    Task,
)
from pointsman.services.orchestrator.domain.run import Run, RunState
from pointsman.services.orchestrator.domain.table import INITIAL, TABLE, mermaid
from tests.unit.orchestrator.driver import START, outline

WITHOUT_ACTIONS = Table(replace(row, actions=()) for row in TABLE.rows)
PAIRS = list(itertools.product(State, Trigger))
ACCEPTED = {"T1": Task(outline("T1"), judgement=Judgement(accepted=True))}
REJECTED = {"T1": Task(outline("T1"), judgement=Judgement(accepted=False))}


def run_in(state: State, **changes: object) -> Run:
    run = Run("run_1", state, "do it", Order(Routing("d", 0.9)), Budget(), START, START, confidence=0.9)
    return replace(run, **changes)  # type: ignore[arg-type]


def holding(guard: Guard, run: Run) -> Run:
    """The run with the guard made true."""
    remark = OpenRemark(Remark("k", "s"), 1)
    changes: dict[str, dict[str, object]] = {
        "": {},
        "auto_resume": {"order": replace(run.order, resume=Resume.YES)},
        "!auto_resume": {"order": replace(run.order, resume=Resume.ASK)},
        "confidence < 0.6": {"confidence": 0.59},
        "confidence >= 0.6": {"confidence": 0.6},
        "feedback_count < 3": {"remarks": {"k": remark}},
        "wave_passed": {"tasks": ACCEPTED, "wave": ("T1",)},
    }
    return replace(run, **changes[guard.name])  # type: ignore[arg-type]


def breaking(guard: Guard, run: Run) -> Run:
    """The run with the guard made false."""
    remark = OpenRemark(Remark("k", "s"), 3)
    changes: dict[str, dict[str, object]] = {
        "auto_resume": {"order": replace(run.order, resume=Resume.ASK)},
        "!auto_resume": {"order": replace(run.order, resume=Resume.YES)},
        "confidence < 0.6": {"confidence": 0.6},
        "confidence >= 0.6": {"confidence": 0.59},
        "feedback_count < 3": {"remarks": {"k": remark}},
        "wave_passed": {"tasks": REJECTED, "wave": ("T1",)},
    }
    return replace(run, **changes[guard.name])  # type: ignore[arg-type]


def builder_on(run: Run, table: Table = WITHOUT_ACTIONS) -> DecisionBuilder:
    return DecisionBuilder(RunState(run), START, table)


def name_of(value: object) -> str:
    return f"{value.source}-{value.event}-{value.target}" if isinstance(value, Row) else str(value)


def test_there_are_the_26_states_of_the_diagram() -> None:
    assert len(State) == 26
    assert INITIAL is State.BOOT
    assert {State.COMPLETE, State.CANCELLED, State.FAILED} == TERMINAL


def test_the_wire_has_the_same_states() -> None:
    names = [name.removeprefix("RUN_STATE_") for name in run_pb2.RunState.keys()]  # noqa: SIM118
    assert names == ["UNSPECIFIED", *State]


@pytest.mark.parametrize("row", TABLE.rows, ids=name_of)
def test_each_row_leads_from_its_source_to_its_target(row: Row) -> None:
    builder = builder_on(holding(row.guard, run_in(row.source)))
    builder.transition(row.event, "why")
    assert builder.run.status is row.target
    assert (builder.events[0].source, builder.events[0].target) == (row.source, row.target)


@pytest.mark.parametrize("row", [row for row in TABLE.rows if row.guard is not ALWAYS], ids=name_of)
def test_a_guard_that_does_not_hold_closes_its_row(row: Row) -> None:
    builder = builder_on(breaking(row.guard, run_in(row.source)))
    others = [other for other in TABLE.rows_for(row.source, row.event) if other is not row]
    if others:
        builder.transition(row.event)
        assert builder.run.status is others[0].target
        return
    with pytest.raises(Refusal):
        builder.transition(row.event)
    assert builder.run.status is row.source


def test_each_pair_that_is_not_in_the_table_is_refused_and_changes_nothing() -> None:
    refused = 0
    for state, move in PAIRS:
        if TABLE.rows_for(state, move):
            continue
        builder = builder_on(run_in(state), TABLE)
        with pytest.raises(Refusal) as caught:
            builder.transition(move)
        assert caught.value.reason is Reason.STATE_FORBIDS
        assert caught.value.metadata["state"] == state
        assert builder.run == run_in(state)
        assert builder.events == []
        refused += 1
    assert refused == len(PAIRS) - len({(row.source, row.event) for row in TABLE.rows})


def test_each_state_can_be_reached() -> None:
    reached = {INITIAL}
    while more := {row.target for row in TABLE.rows if row.source in reached} - reached:
        reached |= more
    assert reached == set(State)


def test_each_state_that_is_not_terminal_can_end_in_each_way() -> None:
    ending = {State.COMPLETE}
    while more := {row.source for row in TABLE.rows if row.target in ending} - ending:
        ending |= more
    assert ending == set(State) - {State.CANCELLED, State.FAILED}
    for state in set(State) - TERMINAL:
        assert TABLE.rows_for(state, Trigger.CANCEL)[0].target is State.CANCELLED
        assert TABLE.rows_for(state, Trigger.FATAL_ERROR)[0].target is State.FAILED


def test_terminal_states_have_no_exit() -> None:
    assert [row for row in TABLE.rows if row.source in TERMINAL] == []


def test_each_guard_and_action_of_the_table_exists_and_each_event_has_a_payload() -> None:
    guards = {row.guard for row in TABLE.rows}
    actions = {action for row in TABLE.rows for action in row.actions}
    assert len({guard.name for guard in guards}) == len(guards)
    assert len({action.__name__ for action in actions}) == len(actions)
    assert set(EVENTS) == {*Trigger, *InternalEvent}
    assert {row.event for row in TABLE.rows} == set(Trigger)


def test_the_diagram_shows_each_row() -> None:
    text = mermaid()
    for row in TABLE.rows:
        if row.event in (Trigger.CANCEL, Trigger.FATAL_ERROR):
            continue
        assert f"  {row.source} --> {row.target}: {row.event}" in text
    assert "any_state --> CANCELLED: cancel" in text


SEED_ROWS = """
BOOT IDLE_PROBE_BD auto
IDLE_PROBE_BD RESUME_ASK found_resumable
IDLE_PROBE_BD RESUME_PLAN found_resumable
IDLE_PROBE_BD IDLE no_resumable
RESUME_ASK RESUME_PLAN user_resume_yes
RESUME_ASK IDLE user_resume_no
RESUME_PLAN OBSERVE resume_queue_loaded
IDLE INTAKE user_input
INTAKE ASK_SWITCH conflict_with_current_epic
INTAKE ASK_SWITCH confidence_lt_0_6
INTAKE EPIC_SYNC intake_ok
ASK_SWITCH EPIC_SYNC switch
ASK_SWITCH EPIC_SYNC keep
ASK_SWITCH EPIC_SYNC merge
ASK_SWITCH EPIC_SYNC clarified
EPIC_SYNC PLAN_BASELINE bd_upsert_done
PLAN_BASELINE ASK_SWITCH confidence_lt_0_6
PLAN_BASELINE PLAN_REVIEW need_plan_review
PLAN_BASELINE OBSERVE skip_plan_review
PLAN_REVIEW PLAN_REVIEW non_blocking_feedback
PLAN_REVIEW OBSERVE pass_or_feedback_limit_reached
OBSERVE RESEARCH_FANOUT observe_target_defined
RESEARCH_FANOUT RESEARCH_INGEST result_arrived
RESEARCH_INGEST RESEARCH_EVAL artifacts_loaded
RESEARCH_EVAL WAIT_OTHERS need_more_results
WAIT_OTHERS RESEARCH_INGEST result_arrived
RESEARCH_EVAL PLAN_BASELINE need_replan
RESEARCH_EVAL DETAIL_DESIGN enough_info
DETAIL_DESIGN CODER_HANDOFF design_ready
CODER_HANDOFF SCHEDULE handoff_bundle_ready
SCHEDULE ASK_SWITCH confidence_lt_0_6
SCHEDULE QUEUE resource_busy
SCHEDULE DISPATCH resource_ready
QUEUE DISPATCH resource_available
DISPATCH CODER_EXEC dispatch_success
CODER_EXEC REVIEW_ACCEPT claims_evidence_arrived
REVIEW_ACCEPT CODER_HANDOFF reject_or_retry
REVIEW_ACCEPT REPLAN_PATCH requirement_changed_or_blocked
REVIEW_ACCEPT COMPLETE pass
REPLAN_PATCH PLAN_BASELINE patch_applied
"""
ADDED = {
    "dispatch_failed",
    "blocking_feedback",
    "feedback_escalated",
    "next_wave",
    "replan_limit",
    "requirement_changed",
}


def test_the_table_has_each_row_of_the_seed_and_only_the_ruled_ones_besides() -> None:
    seed = {tuple(line.split()) for line in SEED_ROWS.strip().splitlines()}
    rows = {(str(row.source), str(row.target), str(row.event)) for row in TABLE.rows}
    assert seed <= rows
    extra = {row for row in rows - seed if row[2] not in ("cancel", "fatal_error")}
    assert {row[2] for row in extra} == ADDED | {"confidence_lt_0_6", "resource_busy"}
    assert ("REPLAN_PATCH", "ASK_SWITCH", "confidence_lt_0_6") in extra
    assert ("DISPATCH", "QUEUE", "resource_busy") in extra
