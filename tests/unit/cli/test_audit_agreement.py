"""When run and workflow agree, without stores."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from pointsman.cli.audit_agreement import Agreement
from pointsman.services.orchestrator.domain.words import State
from pointsman.services.workflow.domain.states import WorkflowStatus
from pointsman.services.workflow.domain.workflow import Header
from tests.unit.orchestrator.driver import Driver

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(("status", "agree"), [(WorkflowStatus.COMPLETED, True), (WorkflowStatus.PAUSED, False)])
def test_a_failed_run_may_leave_a_workflow_that_is_completed_but_own_no_other(
    status: WorkflowStatus, agree: bool
) -> None:
    run = Driver().submit().settle().run.change(status=State.FAILED, tasks={}, epic_id="epic")
    header = Header("epic", NOW, NOW, status=status, owner_run_id=run.run_id)
    workflow = SimpleNamespace(header=header, book=SimpleNamespace(tasks={}))
    runs: Any = SimpleNamespace(runs={run.run_id: (run, 9, False)})
    workflows: Any = SimpleNamespace(workflows={"epic": workflow})
    pipelines: Any = SimpleNamespace(pipelines={})
    found = [item.detail for item in Agreement(runs, workflows, pipelines, []).violations()]
    assert found == ([] if agree else [f"it is FAILED and still owns the workflow {run.epic_id}"])
