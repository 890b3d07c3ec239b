"""When run and workflow agree, without stores."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from pointsman.audit.agreement import Agreement
from pointsman.services.orchestrator.domain.enums import State, TaskStatus
from pointsman.services.orchestrator.domain.run import Run
from pointsman.services.workflow.domain.enums import WorkflowStatus
from pointsman.services.workflow.domain.model import Header
from tests.unit.orchestrator.driver import Driver

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(("status", "agree"), [(WorkflowStatus.COMPLETED, True), (WorkflowStatus.PAUSED, False)])
def test_a_failed_run_may_leave_a_workflow_that_is_completed_but_own_no_other(
    status: WorkflowStatus, agree: bool
) -> None:
    run = Driver().submit().settle().run.change(status=State.FAILED, tasks={}, epic_id="epic")
    found = disagreements(run, Header("epic", NOW, NOW, status=status, run_id=run.run_id, owner_run_id=run.run_id))
    assert found == ([] if agree else ["it is FAILED and still owns the workflow epic"])


@pytest.mark.parametrize(("status", "agree"), [(WorkflowStatus.COMPLETED, True), (WorkflowStatus.PAUSED, False)])
def test_a_run_cancelled_after_its_last_task_may_leave_a_completed_workflow_but_none_that_goes_on(
    status: WorkflowStatus, agree: bool
) -> None:
    run = Driver().submit().settle().run.change(status=State.CANCELLED, tasks={}, epic_id="epic")
    found = disagreements(run, Header("epic", NOW, NOW, status=status, run_id=run.run_id))
    assert found == ([] if agree else [f"it is CANCELLED, its workflow epic goes on ({status})"])


@pytest.mark.parametrize(("status", "agree"), [(State.CANCELLED, True), (State.FAILED, False)])
def test_only_a_cancelled_run_may_leave_accepted_work_that_its_workflow_has_not_recorded(
    status: State, agree: bool
) -> None:
    task: Any = SimpleNamespace(status=TaskStatus.ACCEPTED, attempt=1, pipeline_id="", pipeline_status=None)
    run = Driver().submit().settle().run.change(status=status, tasks={"T1": task}, epic_id="epic")
    found = disagreements(run, Header("epic", NOW, NOW, status=WorkflowStatus.PAUSED, run_id="run_of_another"))
    assert found == ([] if agree else ["T1 is accepted, but not done in the workflow epic"])


def test_a_workflow_that_an_import_has_replaced_has_nothing_of_the_run_that_failed() -> None:
    task: Any = SimpleNamespace(status=TaskStatus.ACCEPTED, attempt=1, pipeline_id="", pipeline_status=None)
    run = Driver().submit().settle().run.change(status=State.FAILED, tasks={"T1": task}, epic_id="epic")
    assert disagreements(run, Header("epic", NOW, NOW, status=WorkflowStatus.RUNNING)) == []


def test_a_workflow_that_its_run_cancelled_may_be_taken_up_again() -> None:
    run = Driver().submit().settle().run.change(status=State.CANCELLED, tasks={}, epic_id="epic")
    taken_up = Header("epic", NOW, NOW, status=WorkflowStatus.RUNNING, run_id=run.run_id, cancelled_by=run.run_id)
    assert disagreements(run, taken_up) == []


def disagreements(run: Run, header: Header) -> list[str]:
    """What the auditor says of a run and a workflow without tasks."""
    workflow = SimpleNamespace(header=header, tasks=SimpleNamespace(by_id={}))
    runs: Any = SimpleNamespace(runs={run.run_id: (run, 9, False)})
    workflows: Any = SimpleNamespace(workflows={"epic": workflow})
    pipelines: Any = SimpleNamespace(pipelines={})
    return [item.detail for item in Agreement(runs, workflows, pipelines, []).violations()]
