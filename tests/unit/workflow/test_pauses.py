"""When a workflow pauses, and that the pause says which rule caused it."""

import pytest

from pointsman.services.workflow.domain import commands
from pointsman.services.workflow.domain.enums import ExecutionMode, PauseCause, WorkflowStatus
from pointsman.services.workflow.domain.events import Fields
from pointsman.services.workflow.domain.model import Settings
from pointsman.services.workflow.domain.pause_rules import consecutive_limit, tokens_of
from tests.unit.workflow.flow import ID, Flow, running, spec

STEP, PHASE, GATE = ExecutionMode.STEP, ExecutionMode.PHASE, ExecutionMode.QUALITY_GATE
COMMIT = ("edit", "git_commit")


def test_step_pauses_after_each_task_and_hands_out_one() -> None:
    flow = running(spec("a"), spec("b"), spec("c"), mode=STEP)
    assert flow.take(5) == ["a"]
    assert flow.take(5) == []
    flow.complete("a")
    assert flow.pause_cause == PauseCause.STEP
    assert flow.take() == []
    flow.do(commands.Resume(ID))
    assert flow.take(5) == ["b"]


def test_the_last_task_completes_instead_of_pausing() -> None:
    flow = running(spec("a"), mode=STEP)
    flow.complete(*flow.take())
    assert flow.status is WorkflowStatus.COMPLETED


def test_phase_hands_out_one_phase_and_pauses_when_the_next_differs() -> None:
    flow = running(spec("a", phase="1"), spec("b", phase="1"), spec("c", phase="2"), mode=PHASE)
    assert flow.take(5) == ["a", "b"]
    flow.complete("a")
    assert flow.status is WorkflowStatus.RUNNING
    assert flow.take(5) == []
    flow.complete("b")
    assert flow.pause_cause == PauseCause.PHASE_CHANGED
    flow.do(commands.Resume(ID))
    assert flow.take(5) == ["c"]


def test_phase_does_not_pause_within_a_phase() -> None:
    flow = running(spec("a", phase="1"), spec("b", "a", phase="1"), mode=PHASE)
    flow.complete(*flow.take())
    assert flow.status is WorkflowStatus.RUNNING


@pytest.mark.parametrize("mode", [PHASE, GATE])
def test_a_quality_gate_goes_alone_and_pauses_after_it(mode: ExecutionMode) -> None:
    flow = running(spec("a"), spec("gate", quality_gate=True), spec("c"), mode=mode)
    assert flow.take(5) == ["a"]
    assert flow.take(5) == []
    flow.complete("a")
    assert flow.take(5) == ["gate"]
    assert flow.take(5) == []
    flow.complete("gate")
    assert flow.pause_cause == PauseCause.QUALITY_GATE


def test_quality_gate_mode_runs_through_phases() -> None:
    flow = running(spec("a", phase="1"), spec("b", phase="2"), mode=GATE)
    assert flow.take(5) == ["a", "b"]


def test_it_pauses_before_a_commit_and_who_resumes_approves_it() -> None:
    flow = running(spec("a"), spec("commit", actions=COMMIT), spec("b"), spec("again", actions=COMMIT), mode=GATE)
    flow.complete(*flow.take())
    assert flow.pause_cause == PauseCause.BEFORE_COMMIT
    flow.do(commands.Resume(ID))
    assert flow.take(5) == ["commit"]
    flow.complete("commit")
    flow.complete(*flow.take())
    assert flow.pause_cause == PauseCause.BEFORE_COMMIT


def test_a_commit_that_comes_first_pauses_when_it_is_asked_for() -> None:
    flow = running(spec("commit", actions=COMMIT), spec("b"), mode=GATE)
    answer = flow.do(commands.NextTasks(ID, 5))
    assert answer.tasks == ()
    assert answer.progress.pause.cause is PauseCause.BEFORE_COMMIT


def test_resuming_another_pause_approves_no_commit() -> None:
    flow = running(spec("a"), spec("commit", actions=COMMIT), mode=GATE)
    flow.do(commands.PauseWorkflow(ID))
    flow.do(commands.Resume(ID))
    flow.complete(*flow.take())
    assert flow.pause_cause == PauseCause.BEFORE_COMMIT


@pytest.mark.parametrize(("mode", "pauses"), [(GATE, False), (PHASE, True)])
def test_commits_go_through_when_pausing_before_them_is_off_or_the_mode_is_another(
    mode: ExecutionMode, pauses: bool
) -> None:
    flow = running(spec("a"), spec("commit", actions=COMMIT), mode=mode, pause_before_commit=pauses)
    flow.complete(*flow.take())
    assert flow.take(5) == ["commit"]


@pytest.mark.parametrize(
    ("upcoming", "base"),
    [
        (spec("t", quality_gate=True), 3),
        (spec("t", design_ref="§ 3"), 3),
        (spec("t", files=("a", "b")), 3),
        (spec("t", actions=("a", "b", "c")), 5),
        (spec("t", files=("a",), actions=("a", "b")), 8),
        (spec("t"), 8),
    ],
)
def test_the_consecutive_limit_follows_the_next_task_and_the_usage(upcoming: spec, base: int) -> None:  # type: ignore[valid-type]
    assert consecutive_limit(upcoming, 0) == consecutive_limit(upcoming, 50) == base
    assert consecutive_limit(upcoming, 50.1) == consecutive_limit(upcoming, 70) == max(3, base - 1)
    assert consecutive_limit(upcoming, 70.1) == max(2, base - 3)


def test_the_consecutive_limit_pauses_and_resume_resets_the_count() -> None:
    flow = running(*(spec(f"t{n:02}") for n in range(12)), use_subagent=False)
    for _ in range(7):
        flow.complete(*flow.take())
    assert flow.status is WorkflowStatus.RUNNING
    flow.complete(*flow.take())
    assert flow.pause_cause == PauseCause.CONSECUTIVE_LIMIT
    flow.do(commands.Resume(ID))
    assert flow.state.header.consecutive_count == 0


def test_a_heavy_next_task_pauses_earlier() -> None:
    flow = running(*(spec(f"t{n}") for n in range(3)), spec("u", files=("a", "b")), use_subagent=False)
    for _ in range(3):
        flow.complete(*flow.take())
    assert flow.pause_cause == PauseCause.CONSECUTIVE_LIMIT
    assert flow.state.header.max_consecutive_tasks == 3


def test_a_heavy_task_that_was_handed_out_already_is_not_the_next_one() -> None:
    flow = running(spec("heavy", files=("a", "b")), *(spec(f"t{n}") for n in range(4)), use_subagent=False)
    flow.take(5)
    flow.complete("t0", "t1", "t2")
    assert flow.status is WorkflowStatus.RUNNING
    assert flow.state.header.max_consecutive_tasks == 8


def test_with_subagents_the_limits_warn_instead_of_pausing() -> None:
    flow = running(*(spec(f"t{n:02}") for n in range(12)), use_subagent=True)
    in_a_row = [flow.complete(*flow.take()).warnings for _ in range(8)]
    assert in_a_row == [*[()] * 7, ("8 tasks in a row, the limit is 8",)]
    answer = flow.do(commands.RecordUsage(ID, context_tokens=190_000))
    assert flow.status is WorkflowStatus.RUNNING
    assert [warning.split()[0] for warning in answer.progress.warnings] == ["context", "8"]


@pytest.mark.parametrize(("characters", "tokens"), [(0, 0), (1, 1), (4, 1), (5, 2), (48_000, 12_000)])
def test_tokens_are_a_quarter_of_the_characters_rounded_up(characters: int, tokens: int) -> None:
    assert tokens_of(characters) == tokens


def test_usage_warns_over_the_warning_threshold_and_pauses_over_the_danger_threshold() -> None:
    flow = running(spec("a"), spec("b"), use_subagent=False)
    assert flow.do(commands.RecordUsage(ID, "a", characters=4 * 120_000)).progress.warnings == ()
    answer = flow.do(commands.RecordUsage(ID, "a", characters=4 * 40_000))
    assert answer.usage_percent == 80
    assert "warning threshold 60 %" in answer.progress.warnings[0]
    assert flow.status is WorkflowStatus.RUNNING
    answer = flow.do(commands.RecordUsage(ID, "b", characters=4))
    assert flow.pause_cause == PauseCause.CONTEXT_USAGE
    assert "danger threshold 80 %" in answer.progress.warnings[0]


def test_a_danger_threshold_of_its_own_decides_when_a_workflow_pauses() -> None:
    flow = running(spec("a"), spec("b"), use_subagent=False)
    flow.do(commands.UpsertPlan(ID, Fields(danger_threshold=90)))
    flow.do(commands.RecordUsage(ID, context_tokens=180_000))
    assert flow.status is WorkflowStatus.RUNNING
    flow.do(commands.RecordUsage(ID, context_tokens=180_001))
    assert flow.pause_cause == PauseCause.CONTEXT_USAGE


def test_usage_reported_with_a_task_counts_before_its_pause() -> None:
    flow = running(spec("a"), spec("b"), use_subagent=False)
    flow.take()
    flow.do(commands.CompleteTask(ID, "a", used_characters=4 * 170_000))
    assert flow.pause_cause == PauseCause.CONTEXT_USAGE
    assert flow.state.header.history[0].task_id == "a"


def test_a_compacted_context_lowers_the_estimate() -> None:
    flow = running(spec("a"), use_subagent=False)
    flow.do(commands.RecordUsage(ID, characters=400_000))
    flow.do(commands.RecordUsage(ID, context_tokens=10_000))
    assert flow.state.header.estimated_tokens == 10_000
    assert [record.tokens for record in flow.state.header.history] == [100_000, -90_000]


def test_the_window_is_settable_and_history_keeps_the_last_ten() -> None:
    flow = Flow()
    flow.plan(spec("a"), window_tokens=1000, settings=Settings(use_subagent=False))
    for number in range(12):
        flow.do(commands.RecordUsage(ID, f"t{number}", characters=4))
    header = flow.state.header
    assert header.usage_percent == 1.2
    assert [record.task_id for record in header.history] == [f"t{number}" for number in range(2, 12)]


def test_tasks_in_flight_complete_while_paused_and_resume_ends_the_workflow() -> None:
    flow = running(spec("a"), spec("b"))
    flow.take(2)
    flow.do(commands.PauseWorkflow(ID, "lunch"))
    flow.complete("a", "b")
    assert flow.status is WorkflowStatus.PAUSED
    assert flow.state.header.pause is not None
    assert flow.state.header.pause.message == "lunch"
    flow.do(commands.Resume(ID))
    assert flow.last_events(2) == [("resumed", "paused", "running"), ("completed", "running", "completed")]


def test_a_pause_is_gone_when_the_workflow_runs_again() -> None:
    flow = running(spec("a"), spec("b"))
    flow.do(commands.PauseWorkflow(ID))
    flow.do(commands.Resume(ID))
    assert flow.state.header.pause is None
    flow.do(commands.UpsertPlan(ID, Fields(danger_threshold=90)))
    assert flow.status is WorkflowStatus.RUNNING
