"""Random plans and commands, and an independent check of what must hold after any of them."""

from typing import Any

from hypothesis import strategies as st

from pointsman.services.workflow.domain import commands
from pointsman.services.workflow.domain.constraints import CheckResult, Constraint, ConstraintSet
from pointsman.services.workflow.domain.enums import (
    ConstraintType,
    ExecutionMode,
    TaskStatus,
    WorkflowMode,
    WorkflowStatus,
)
from pointsman.services.workflow.domain.events import Fields
from pointsman.services.workflow.domain.model import Settings, Workflow
from pointsman.services.workflow.domain.tasks import TaskSpec
from tests.unit.workflow.flow import ID, NOON

IDS = [f"t{number}" for number in range(7)]
TASK_IDS = st.sampled_from(IDS)
FLAGS = st.none() | st.booleans()
SETTINGS = st.builds(Settings, st.none() | st.sampled_from(ExecutionMode), FLAGS, FLAGS)
CONSTRAINTS = st.builds(
    lambda own_id, description: Constraint(own_id, description, ConstraintType.HARD),
    st.sampled_from(["C1", "C2"]),
    st.sampled_from(["holds", "stays"]),
)


@st.composite
def plans(draw: st.DrawFn) -> tuple[commands.PlannedTask, ...]:
    """A valid plan: each task depends only on tasks listed before it."""
    chosen = draw(st.lists(TASK_IDS, min_size=1, max_size=6, unique=True))
    tasks = []
    for index, task_id in enumerate(chosen):
        earlier = chosen[:index]
        depends = tuple(draw(st.lists(st.sampled_from(earlier), max_size=2, unique=True))) if earlier else ()
        tasks.append(commands.PlannedTask(draw(_spec(task_id, depends))))
    return tuple(tasks)


def _spec(task_id: str, depends: tuple[str, ...]) -> st.SearchStrategy[TaskSpec]:
    return st.builds(
        TaskSpec,
        task_id=st.just(task_id),
        name=st.sampled_from(["do it", "wire the api"]),
        phase=st.sampled_from(["1", "1", "2"]),
        depends=st.just(depends),
        blocked_by=st.sampled_from([(), (), (), ("api_spec",), ("api_spec", "legal")]),
        quality_gate=st.sampled_from([False, False, False, True]),
        actions=st.sampled_from([("edit",), ("edit", "test", "lint"), ("git_commit",)]),
    )


COMMANDS: st.SearchStrategy[Any] = st.one_of(
    st.builds(commands.UpsertPlan, st.just(ID), tasks=plans(), append=st.booleans()),
    st.builds(
        commands.UpsertPlan,
        st.just(ID),
        st.builds(
            Fields,
            intake_text=st.sampled_from([None, "", "add a page"]),
            owner_run_id=st.sampled_from([None, "", "r1", "r2"]),
            settings=SETTINGS,
            mode=st.none() | st.sampled_from(WorkflowMode),
        ),
    ),
    st.builds(commands.Execute, st.just(ID), SETTINGS),
    *[st.builds(commands.NextTasks, st.just(ID), st.integers(1, 4))] * 4,
    *[st.builds(commands.CompleteTask, st.just(ID), TASK_IDS, used_characters=st.sampled_from([0, 0, 400_000]))] * 4,
    st.builds(commands.FailTask, st.just(ID), TASK_IDS, st.just("broken")),
    st.builds(
        commands.SettleTasks,
        st.just(ID),
        st.lists(TASK_IDS, max_size=3).map(tuple),
        st.lists(st.builds(commands.Rejected, TASK_IDS, st.just("no"), st.booleans()), max_size=2).map(tuple),
    ),
    st.builds(commands.RetryTask, st.just(ID), TASK_IDS),
    st.builds(commands.SkipTask, st.just(ID), TASK_IDS, st.just("no")),
    st.builds(
        commands.ReleaseTask, st.just(ID), st.lists(TASK_IDS, max_size=2).map(tuple), st.booleans(), st.booleans()
    ),
    st.builds(commands.PauseWorkflow, st.just(ID)),
    st.builds(commands.Resume, st.just(ID), SETTINGS),
    st.builds(commands.Unblock, st.just(ID), st.sampled_from(["api_spec", "legal", "all"])),
    st.builds(commands.CancelPlan, st.just(ID)),
    st.builds(
        commands.MergeConstraints,
        st.just(ID),
        st.tuples(st.lists(CONSTRAINTS, max_size=2).map(lambda found: ConstraintSet(hard=tuple(found)))),
    ),
    st.builds(
        commands.RecordVerification,
        st.just(ID),
        st.tuples(st.builds(CheckResult, st.sampled_from(["C1", "C2"]), st.booleans(), st.just(""), st.just(NOON))),
    ),
    st.builds(commands.WaiveConstraint, st.just(ID), st.sampled_from(["C1", "C2"]), st.just("known"), st.just("ann")),
    st.builds(commands.RecordUsage, st.just(ID), TASK_IDS, st.none() | st.integers(0, 400_000), st.just(1000)),
    st.builds(commands.RunAudit, st.just(ID)),
)

ORDINARY = commands.UpsertPlan(
    ID,
    tasks=tuple(
        commands.PlannedTask(TaskSpec(task_id, "do it", depends=depends))
        for task_id, depends in (("t0", ()), ("t1", ("t0",)), ("t2", ("t0",)), ("t3", ("t1", "t2")), ("t4", ()))
    ),
)
"""A plan that something can be done with, so that random commands meet more than refusals."""
START = (ORDINARY, commands.Execute(ID, Settings(ExecutionMode.QUALITY_GATE, use_subagent=True)))


def assert_sound(state: Workflow) -> None:
    """What holds of every whole workflow that was never imported."""
    assert_counts(state)
    header = state.header
    assert (header.pause is not None) == (header.status is WorkflowStatus.PAUSED)
    _assert_no_dead_end(state)


def assert_counts(state: Workflow) -> None:
    """What holds of every whole workflow, counted anew from its tasks alone."""
    header, tasks = state.header, state.tasks.by_id
    settled = {task_id for task_id, task in tasks.items() if task.status in (TaskStatus.COMPLETED, TaskStatus.SKIPPED)}
    for task in tasks.values():
        assert task.open_dependencies == sum(one not in settled for one in task.spec.depends)
        waits = any(one not in header.unblocked for one in task.spec.blocked_by)
        assert (task.status is TaskStatus.BLOCKED) <= waits
        assert not (task.status is TaskStatus.PENDING and waits)
        if task.status in (TaskStatus.IN_PROGRESS, TaskStatus.COMPLETED, TaskStatus.FAILED):
            assert task.open_dependencies == 0
    for status in TaskStatus:
        assert header.counts[status] == sum(task.status is status for task in tasks.values())
    ready = [task for task in state.tasks.in_order() if task.ready]
    assert header.counts["ready"] == len(ready)
    assert list(state.tasks.ready()) == ready
    assert header.counts["total"] == len(tasks)
    if header.status is WorkflowStatus.COMPLETED:
        assert len(settled) == len(tasks)
        assert header.unmet == ()


def _assert_no_dead_end(state: Workflow) -> None:
    """A running workflow always has something in flight or ready; a blocked one has a blocked task."""
    header = state.header
    if header.status is WorkflowStatus.RUNNING:
        assert not header.nothing_to_do
    if header.status is WorkflowStatus.BLOCKED:
        assert header.counts[TaskStatus.BLOCKED] > 0
        assert header.blocking
