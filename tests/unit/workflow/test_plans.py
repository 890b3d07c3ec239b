"""Plans: stored whole or refused with every problem at once; what a new plan keeps and where the workflow goes."""

import pytest

from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.workflow.domain import commands
from pointsman.services.workflow.domain.enums import ExecutionMode, TaskStatus, WorkflowMode, WorkflowStatus
from pointsman.services.workflow.domain.events import Fields
from pointsman.services.workflow.domain.model import Settings
from pointsman.services.workflow.domain.plan import is_safe_path
from tests.unit.workflow.flow import ID, Flow, in_status, planned, running, spec


def fields_of(refusal: Refusal) -> dict[str, str]:
    assert refusal.reason is Reason.INVALID_FIELD
    return {violation.field: violation.description for violation in refusal.violations}


def test_every_problem_is_listed_at_once_by_task_and_field() -> None:
    refusal = Flow().refused(
        commands.UpsertPlan(
            ID,
            tasks=planned(
                spec("a", "missing"),
                spec("a"),
                spec("bad id!"),
                spec("n", name=" "),
                spec("p", files=("ok/x.py", "/etc/passwd", "a/../../b")),
                spec("x", "y"),
                spec("y", "x"),
                spec("d", blocked_by=("all", "api spec")),
                spec("q", "n n"),
            ),
        )
    )
    found = fields_of(refusal)
    assert "no task 'missing'" in found["tasks[0].depends"]
    assert "used twice" in found["tasks[1].task_id"]
    assert "must match" in found["tasks[2].task_id"]
    assert "say what" in found["tasks[3].name"]
    assert "relative" in found["tasks[4].files"]
    assert "cycle x → y → x" in found["tasks[5].depends"]
    assert "task 'd'" in found["tasks[7].blocked_by"]
    assert "twice" in found["tasks[8].depends"]
    assert len([one for one in refusal.violations if one.field == "tasks[4].files"]) == 2


@pytest.mark.parametrize("path", ["/abs", "~/x", "a/../b", "..", "C:/x", "a\\b", "", " ", "a\x00b", "a\nb"])
def test_a_path_that_leaves_its_folder_is_refused(path: str) -> None:
    assert not is_safe_path(path)


@pytest.mark.parametrize("path", ["a", "src/x.py", "a..b/c", ".github/x", "中文/文件.md"])
def test_a_path_below_its_folder_is_taken(path: str) -> None:
    assert is_safe_path(path)


def test_each_cycle_is_told_once_and_what_only_waits_for_it_is_not() -> None:
    refusal = Flow().refused(
        commands.UpsertPlan(
            ID, tasks=planned(spec("s", "s"), spec("a", "c"), spec("b", "a"), spec("c", "b"), spec("after", "c"))
        )
    )
    messages = [violation.description for violation in refusal.violations]
    assert messages == ["task 's': cycle s → s", "task 'a': cycle a → c → b → a"]


def test_a_long_chain_is_no_cycle() -> None:
    flow = Flow()
    flow.plan(*(spec(f"t{n}", f"t{n + 1}" if n < 4999 else "") for n in range(5000)))
    assert flow.state.header.counts["ready"] == 1


def test_a_plan_without_tasks_keeps_the_epic_idle() -> None:
    flow = Flow()
    answer = flow.do(commands.UpsertPlan(ID, Fields(intake_text="add a login page", owner_run_id="r1", priority=3)))
    assert answer.created
    assert flow.status is WorkflowStatus.IDLE
    assert (flow.state.header.owner_run_id, flow.state.header.run_id, flow.state.header.priority) == ("r1", "r1", 3)
    assert flow.state.details.intake_text == "add a login page"
    resumable = [flow.state.header.resumable]
    flow.do(commands.UpsertPlan(ID, Fields(owner_run_id="")))
    assert [*resumable, flow.state.header.resumable] == [False, True]
    assert flow.state.header.run_id == "r1"


def test_another_run_cannot_take_an_owned_workflow() -> None:
    flow = Flow()
    flow.plan(spec("a"), owner_run_id="r1")
    refusal = flow.refused(commands.UpsertPlan(ID, Fields(owner_run_id="r2")))
    assert refusal.reason is Reason.WORKFLOW_OWNED
    assert refusal.metadata["owner_run_id"] == "r1"
    flow.do(commands.UpsertPlan(ID, Fields(owner_run_id="r1", title="mine")))


def test_a_plan_is_refused_while_a_task_is_in_progress() -> None:
    flow = running(spec("a"), spec("b"))
    flow.take()
    refusal = flow.refused(commands.UpsertPlan(ID, tasks=planned(spec("z"))))
    assert refusal.reason is Reason.STATE_FORBIDS
    flow.do(commands.UpsertPlan(ID, Fields(title="fields may change")))


def test_a_new_plan_replaces_what_is_open_and_keeps_what_is_settled() -> None:
    flow = running(spec("a"), spec("b"), spec("c"), spec("d", blocked_by=("api_spec",)))
    flow.complete(*flow.take())
    flow.do(commands.SkipTask(ID, "b", "no"))
    flow.plan(spec("n", "a b"), spec("a", name="another a"), spec("m", "n"))
    assert flow.statuses() == {"b": "skipped", "n": "pending", "a": "completed", "m": "pending"}
    assert flow.task("a").spec.name == "do a"
    assert flow.task("n").open_dependencies == 0
    assert flow.state.header.counts["total"] == 4
    assert flow.state.header.blocking == {}
    assert flow.status is WorkflowStatus.RUNNING


def test_a_plan_cannot_depend_on_a_task_that_it_removes() -> None:
    flow = running(spec("a"), spec("b"))
    refusal = flow.refused(commands.UpsertPlan(ID, tasks=planned(spec("n", "b"))))
    assert "no task 'b'" in refusal.violations[0].description


def test_a_replanned_task_keeps_its_attempts_so_that_a_late_holder_is_refused() -> None:
    flow = running(spec("a"))
    flow.take()
    flow.do(commands.ReleaseTask(ID, ("a",)))
    flow.plan(spec("a", name="again"))
    assert flow.do(commands.NextTasks(ID)).tasks[0].attempt == 2
    assert flow.refused(commands.CompleteTask(ID, "a", attempt=1)).reason is Reason.LOST_RACE
    flow.do(commands.CompleteTask(ID, "a", attempt=2))


def test_a_replanned_task_may_be_retried_as_often_as_a_new_one() -> None:
    flow = running(spec("a"))
    flow.take()
    flow.do(commands.SettleTasks(ID, (), (commands.Rejected("a", "no", retry=True),)))
    flow.plan(spec("a", name="again"))
    assert flow.task("a").retry_count == 0


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (WorkflowStatus.IDLE, WorkflowStatus.PLANNED),
        (WorkflowStatus.PLANNED, WorkflowStatus.PLANNED),
        (WorkflowStatus.RUNNING, WorkflowStatus.RUNNING),
        (WorkflowStatus.PAUSED, WorkflowStatus.PAUSED),
        (WorkflowStatus.BLOCKED, WorkflowStatus.RUNNING),
        (WorkflowStatus.FAILED, WorkflowStatus.RUNNING),
    ],
)
def test_where_a_new_plan_leads_from_each_state(before: WorkflowStatus, after: WorkflowStatus) -> None:
    flow = in_status(before)
    if before is WorkflowStatus.FAILED:
        flow.do(commands.ReleaseTask(ID, every=True))
    flow.plan(spec("new"))
    assert flow.status is after


def test_a_blocked_workflow_stays_blocked_when_the_new_plan_has_nothing_ready() -> None:
    flow = in_status(WorkflowStatus.BLOCKED)
    flow.plan(spec("new", blocked_by=("design_spec",)))
    assert flow.last_events(1) == [("plan_stored", "blocked", "blocked")]


def test_a_blocked_workflow_completes_when_the_new_plan_leaves_nothing_to_do() -> None:
    flow = in_status(WorkflowStatus.BLOCKED)
    flow.plan(spec("a"))
    assert flow.statuses() == {"b": "completed", "a": "completed"}
    assert flow.status is WorkflowStatus.COMPLETED


def test_a_failed_workflow_stays_failed_while_an_appended_plan_leaves_a_failed_task() -> None:
    flow = running(spec("a"))
    flow.take()
    flow.fail("a")
    flow.do(commands.UpsertPlan(ID, tasks=planned(spec("b")), append=True))
    assert flow.status is WorkflowStatus.FAILED


def test_tasks_are_appended_behind_the_others() -> None:
    flow = Flow()
    flow.plan(spec("a"))
    flow.do(commands.UpsertPlan(ID, tasks=planned(spec("b", "a"), spec("c", "b")), append=True))
    assert [(task.task_id, task.position, task.open_dependencies) for task in flow.state.tasks.in_order()] == [
        ("a", 1, 0),
        ("b", 2, 1),
        ("c", 3, 1),
    ]
    refusal = flow.refused(commands.UpsertPlan(ID, tasks=planned(spec("a")), append=True))
    assert "used twice" in refusal.violations[0].description


def test_progressive_mode_infers_blockers_unless_they_are_explicit() -> None:
    flow = Flow()
    flow.plan(
        spec("api", name="wire the user api"),
        spec("own", name="api of ours", blocked_by=("legal",)),
        spec("plain", name="write docs"),
        mode=WorkflowMode.PROGRESSIVE,
    )
    assert flow.statuses() == {"api": "blocked", "own": "blocked", "plain": "pending"}
    assert flow.task("own").spec.blocked_by == ("legal",)
    assert flow.state.header.blocking == {"api_spec": 1, "legal": 1}


def test_normal_mode_blocks_only_on_explicit_blockers() -> None:
    flow = Flow()
    flow.plan(spec("api", name="wire the user api"), spec("own", blocked_by=("legal",)))
    assert flow.statuses() == {"api": "pending", "own": "blocked"}


def test_thresholds_that_contradict_are_refused() -> None:
    refusal = Flow().refused(commands.UpsertPlan(ID, Fields(warning_threshold=90)))
    assert refusal.violations[0].field == "warning_threshold"


def test_sessions_are_stored_and_handed_back() -> None:
    flow = Flow()
    flow.do(commands.UpsertPlan(ID, Fields(sessions=(("codex", "s-1"), ("claude", "s-2")))))
    flow.do(commands.UpsertPlan(ID, Fields(sessions=(("codex", ""),))))
    assert flow.state.header.sessions == {"codex": None, "claude": "s-2"}


def test_subagents_are_used_as_said_else_with_more_than_five_tasks() -> None:
    for count, said, expected in ((5, None, False), (6, None, True), (1, True, True), (9, False, False)):
        flow = Flow()
        flow.plan(*(spec(f"t{n}") for n in range(count)), settings=Settings(use_subagent=said))
        assert flow.state.header.subagents is expected


def test_with_require_audit_execution_needs_every_error_accepted_by_name() -> None:
    flow = Flow()
    flow.plan(spec("a", name="TBD", actions=("edit",)), settings=Settings(require_audit=True))
    refusal = flow.refused(commands.Execute(ID))
    assert refusal.reason is Reason.AUDIT_NOT_PASSED
    assert refusal.metadata["findings"] == "a/name/undecided"
    flow.do(commands.Execute(ID, accepted_findings=("a/name/undecided",)))
    assert flow.status is WorkflowStatus.RUNNING
    assert flow.state.details.audit is not None


def test_accepting_one_error_of_two_is_not_enough() -> None:
    flow = Flow()
    flow.plan(spec("a", name="TBD"), settings=Settings(require_audit=True))
    refusal = flow.refused(commands.Execute(ID, accepted_findings=("a/name/undecided",)))
    assert refusal.metadata["findings"] == "a/actions/no_actions"


def test_without_require_audit_errors_are_recorded_and_stop_nothing() -> None:
    flow = Flow()
    flow.plan(spec("a", name="TBD"))
    assert not flow.do(commands.RunAudit(ID)).passed
    flow.execute(execution_mode=ExecutionMode.STEP)
    assert flow.status is WorkflowStatus.RUNNING


def test_an_audit_can_be_required_when_executing() -> None:
    flow = Flow()
    flow.plan(spec("a", name="TBD"))
    assert flow.refused(commands.Execute(ID, Settings(require_audit=True))).reason is Reason.AUDIT_NOT_PASSED
    flow.do(commands.UpsertPlan(ID, Fields(settings=Settings(require_audit=True))))
    flow.do(commands.Execute(ID, Settings(require_audit=False)))


def test_a_status_of_an_imported_plan_counts_for_new_tasks_only() -> None:
    flow = Flow()
    tasks = (
        commands.PlannedTask(spec("a"), TaskStatus.COMPLETED),
        commands.PlannedTask(spec("b", "a"), TaskStatus.IN_PROGRESS),
        commands.PlannedTask(spec("c"), TaskStatus.FAILED),
    )
    flow.do(commands.UpsertPlan(ID, tasks=tasks))
    assert flow.statuses() == {"a": "completed", "b": "pending", "c": "failed"}
    assert flow.task("b").ready
