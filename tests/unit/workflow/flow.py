"""A workflow in memory: commands are decided and folded as the ledger does it, and the journal is kept."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pointsman.services.chassis.core.errors import Refusal
from pointsman.services.chassis.core.machine import Event
from pointsman.services.workflow.domain import commands
from pointsman.services.workflow.domain.enums import ExecutionMode, TaskStatus, WorkflowStatus
from pointsman.services.workflow.domain.events import Fields
from pointsman.services.workflow.domain.machine import MACHINE
from pointsman.services.workflow.domain.model import Settings, Workflow
from pointsman.services.workflow.domain.tasks import Task, TaskSpec

NOON = datetime(2026, 1, 8, 12, tzinfo=UTC)
ID = "w1"


def spec(task_id: str, depends: str = "", **fields: Any) -> TaskSpec:
    """A task with something to do, depending on the ids in a text."""
    return TaskSpec(task_id, fields.pop("name", f"do {task_id}"), depends=tuple(depends.split()), **fields)


def planned(*specs: TaskSpec) -> tuple[commands.PlannedTask, ...]:
    """Specs as a plan's tasks."""
    return tuple(commands.PlannedTask(one) for one in specs)


class Flow:
    """One workflow."""

    def __init__(self, state: Workflow | None = None) -> None:
        self.current = state
        self.now = NOON
        self.journal: list[tuple[Event, datetime]] = []

    @property
    def state(self) -> Workflow:
        """The state, which must be there."""
        assert self.current is not None
        return self.current

    @property
    def status(self) -> WorkflowStatus:
        """The workflow's state."""
        return self.state.header.status

    @property
    def pause_cause(self) -> str:
        """Which rule paused it."""
        pause = self.state.header.pause
        return pause.cause if pause else ""

    def do(self, command: Any) -> Any:
        """Decide a command and fold what it leads to."""
        self.now += timedelta(seconds=1)
        decision = MACHINE.decide(self.current, command, self.now)
        for event in decision.events:
            self.current = MACHINE.apply(self.current, event, self.now)
            self.journal.append((event, self.now))
        return decision.answer

    def refused(self, command: Any) -> Refusal:
        """The refusal of a command."""
        with pytest.raises(Refusal) as caught:
            self.do(command)
        return caught.value

    def last_events(self, count: int) -> list[tuple[str, str, str]]:
        """The last events, with their ends."""
        return [(event.name, event.source, event.target) for event, _ in self.journal[-count:]]

    def task(self, task_id: str) -> Task:
        """One task."""
        return self.state.tasks.by_id[task_id]

    def statuses(self) -> dict[str, str]:
        """Every task's state."""
        return {task.task_id: task.status.value for task in self.state.tasks.in_order()}

    def plan(self, *specs: TaskSpec, **fields: Any) -> Any:
        """Store a plan."""
        return self.do(commands.UpsertPlan(ID, Fields(**fields), planned(*specs)))

    def execute(self, **settings: Any) -> Any:
        """Start it."""
        return self.do(commands.Execute(ID, Settings(**settings)))

    def take(self, limit: int = 1) -> list[str]:
        """Claim tasks; their ids."""
        return [task.task_id for task in self.do(commands.NextTasks(ID, limit)).tasks]

    def complete(self, *task_ids: str) -> Any:
        """Complete tasks one by one."""
        answer = None
        for task_id in task_ids:
            answer = self.do(commands.CompleteTask(ID, task_id))
        return answer

    def fail(self, task_id: str) -> Any:
        """Fail a task."""
        return self.do(commands.FailTask(ID, task_id, "broken"))


def running(*specs: TaskSpec, mode: ExecutionMode = ExecutionMode.QUALITY_GATE, **settings: Any) -> Flow:
    """A workflow that runs; subagents on, so that no limit interferes unless asked for."""
    flow = Flow()
    flow.plan(*specs)
    flow.execute(execution_mode=mode, **{"use_subagent": True, **settings})
    return flow


def in_status(status: WorkflowStatus) -> Flow:
    """A workflow in each of the seven states, with at least one task of use in it."""
    flow = Flow()
    if status is WorkflowStatus.IDLE:
        flow.do(commands.UpsertPlan(ID, Fields(intake_text="something")))
        return flow
    flow.plan(spec("a"), spec("b"), spec("c", blocked_by=("api_spec",)))
    if status is WorkflowStatus.PLANNED:
        return flow
    flow.execute(execution_mode=ExecutionMode.QUALITY_GATE, use_subagent=True)
    _drive(flow, status)
    assert flow.status is status
    return flow


def _drive(flow: Flow, status: WorkflowStatus) -> None:
    if status is WorkflowStatus.PAUSED:
        flow.do(commands.PauseWorkflow(ID))
    elif status is WorkflowStatus.BLOCKED:
        flow.complete(*flow.take(2))
    elif status is WorkflowStatus.FAILED:
        flow.take(2)
        flow.fail("a")
    elif status is WorkflowStatus.COMPLETED:
        flow.do(commands.Unblock(ID, "all"))
        flow.complete(*flow.take(3))


def with_task_in(status: TaskStatus) -> Flow:
    """A running (or failed) workflow whose task `t` is in the given state, with others around it."""
    flow = Flow()
    blocked_by = ("api_spec",) if status is TaskStatus.BLOCKED else ()
    flow.plan(spec("t", blocked_by=blocked_by), spec("other"), spec("last", "t other"))
    flow.execute(execution_mode=ExecutionMode.QUALITY_GATE, use_subagent=True)
    if status in (TaskStatus.IN_PROGRESS, TaskStatus.COMPLETED, TaskStatus.FAILED):
        flow.take(1)
    if status is TaskStatus.COMPLETED:
        flow.complete("t")
    if status is TaskStatus.FAILED:
        flow.fail("t")
    if status is TaskStatus.SKIPPED:
        flow.do(commands.SkipTask(ID, "t", "not now"))
    assert flow.task("t").status is status
    return flow


def refold(journal: Iterable[tuple[Event, datetime]]) -> Workflow | None:
    """The state that a journal gives when it is folded from the beginning."""
    state: Workflow | None = None
    for event, at in journal:
        state = MACHINE.apply(state, event, at)
    return state
