"""Random commands: the whole state, the slice that the store would load, and the journal's fold must always agree."""

import os
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pointsman.services.chassis.core.codec import to_json
from pointsman.services.chassis.core.errors import Refusal
from pointsman.services.workflow.domain import commands
from pointsman.services.workflow.domain.enums import WorkflowStatus
from pointsman.services.workflow.domain.events import Fields
from pointsman.services.workflow.domain.machine import MACHINE
from pointsman.services.workflow.domain.model import Details, Header, Settings, Workflow
from pointsman.services.workflow.domain.row_selection import RowSelection, needs_audit, rows_for
from pointsman.services.workflow.domain.tasks import LoadedTasks, Task, TaskSpec
from pointsman.services.workflow.domain.transitions import allows
from tests.unit.workflow.flow import ID, NOON, Flow, refold
from tests.unit.workflow.random_commands import COMMANDS, START, assert_sound

EXAMPLES = int(os.environ.get("POINTSMAN_WORKFLOW_EXAMPLES", "150"))


class SlicedFlow:
    """A workflow kept as rows, of which each batch sees only what its commands need."""

    def __init__(self) -> None:
        self.header: Header | None = None
        self.tasks: dict[str, Task] = {}
        self.details = Details()

    def batch(self, commands: list[Any]) -> list[Any]:
        """Decide commands one after the other on one slice."""
        state = self._slice(commands)
        outcomes: list[Any] = []
        for command in commands:
            try:
                decision = MACHINE.decide(state, command, NOON)
            except Refusal as refusal:
                outcomes.append(str(refusal))
                continue
            for event in decision.events:
                state = MACHINE.apply(state, event, NOON)
            outcomes.append(decision.answer)
        if state is not None:
            self._keep(state)
        return outcomes

    def _slice(self, commands: list[Any]) -> Workflow | None:
        if self.header is None:
            return None
        need = rows_for(commands)
        if needs_audit(self.header, commands):
            need.every_task = need.details = True
        header = replace(self.header, counts=dict(self.header.counts), blocking=dict(self.header.blocking))
        state = Workflow(header, _shown(self.tasks, need))
        if need.details:
            state.details = self.details
        return state

    def _keep(self, state: Workflow) -> None:
        self.header = state.header
        if state.tasks.replaced:
            self.tasks = dict(state.tasks.by_id)
        else:
            self.tasks |= {task_id: state.tasks.by_id[task_id] for task_id in state.tasks.updated | state.tasks.added}
        if state.details_changed:
            self.details = state.details


def _shown(tasks: dict[str, Task], need: RowSelection) -> LoadedTasks:
    loaded = LoadedTasks()
    in_order = sorted(tasks.values(), key=lambda task: task.position)
    ready = [task.task_id for task in in_order if task.ready][: need.ready]
    freed = {task.task_id for task in in_order if set(task.spec.depends) & need.dependants_of}
    wanted = {*ready, *need.task_ids, *freed, *(one.task_id for one in in_order if one.status in need.statuses)}
    loaded.load(task for task in in_order if need.every_task or task.task_id in wanted)
    for task in in_order:
        for dependency in task.spec.depends:
            if need.every_task or dependency in need.dependants_of:
                loaded.add_dependant(dependency, task.task_id)
    return loaded


class StillFlow(Flow):
    """A flow whose clock stands still, so that batches of any size see one time."""

    def do(self, command: Any) -> Any:
        """Decide and fold, all at noon."""
        decision = MACHINE.decide(self.current, command, self.now)
        for event in decision.events:
            self.current = MACHINE.apply(self.current, event, self.now)
            self.journal.append((event, self.now))
        return decision.answer

    def outcome(self, command: Any) -> Any:
        """The answer, or the refusal's text."""
        try:
            return self.do(command)
        except Refusal as refusal:
            return str(refusal)


@pytest.mark.timeout(240)
@settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(st.lists(st.lists(COMMANDS, min_size=1, max_size=5), max_size=12))
def test_whole_slice_and_fold_agree_after_any_commands(batches: list[list[Any]]) -> None:
    whole, sliced = StillFlow(), SlicedFlow()
    for batch in ([*START], *batches):
        expected = [whole.outcome(command) for command in batch]
        assert sliced.batch(batch) == expected
        state = whole.state
        assert to_json(sliced.header) == to_json(state.header)
        assert sliced.tasks == state.tasks.by_id
        assert sliced.details == state.details
        assert_sound(state)
    again = refold(whole.journal)
    assert again is not None
    assert to_json(again.header) == to_json(whole.state.header)
    assert (again.tasks.by_id, again.details) == (whole.state.tasks.by_id, whole.state.details)
    _assert_journal_keeps_the_table(whole)


AUDITED = Settings(require_audit=True)
UNDECIDED = commands.UpsertPlan(
    ID,
    tasks=(commands.PlannedTask(TaskSpec("a", "do it")), commands.PlannedTask(TaskSpec("b", "TBD", depends=("a",)))),
)
WANTED = commands.UpsertPlan(ID, Fields(settings=AUDITED))


@pytest.mark.parametrize(
    "batches",
    [
        ([UNDECIDED], [commands.Execute(ID, AUDITED)]),
        ([UNDECIDED, WANTED], [commands.Execute(ID)]),
        ([UNDECIDED], [WANTED, commands.Execute(ID)]),
    ],
    ids=["asked for at the start", "wanted by the plan", "wanted in the same batch"],
)
def test_an_audit_sees_the_whole_plan_however_it_was_asked_for(batches: tuple[list[Any], ...]) -> None:
    whole, sliced = StillFlow(), SlicedFlow()
    for batch in batches:
        expected = [whole.outcome(command) for command in batch]
        assert sliced.batch(batch) == expected
    assert "zero-decision audit found" in expected[-1]


def _assert_journal_keeps_the_table(flow: Flow) -> None:
    status = ""
    for event, _ in flow.journal:
        assert event.source == status
        status = event.target
        if event.source and event.source != event.target:
            assert allows(WorkflowStatus(event.source), WorkflowStatus(event.target))
