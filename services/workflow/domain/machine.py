"""The workflow machine: every command to its decision, every event to its fold."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from pointsman.services.chassis.core.machine import Decision, Machine
from pointsman.services.workflow.domain import commands as asked
from pointsman.services.workflow.domain import constraint_phase, plan_phase, task_phase
from pointsman.services.workflow.domain.apply import apply
from pointsman.services.workflow.domain.decision import DecisionBuilder
from pointsman.services.workflow.domain.enums import KIND, WorkflowStatus
from pointsman.services.workflow.domain.events import EVENTS
from pointsman.services.workflow.domain.model import Workflow

_DECISIONS: Mapping[type, Callable[[DecisionBuilder, Any], Any]] = {
    asked.UpsertPlan: plan_phase.upsert_plan,
    asked.ImportState: plan_phase.import_state,
    asked.Execute: plan_phase.execute,
    asked.NextTasks: task_phase.next_tasks,
    asked.ReleaseTask: task_phase.release_task,
    asked.CompleteTask: task_phase.complete_task,
    asked.FailTask: task_phase.fail_task,
    asked.SettleTasks: task_phase.settle_tasks,
    asked.RetryTask: task_phase.retry_task,
    asked.SkipTask: task_phase.skip_task,
    asked.PauseWorkflow: plan_phase.pause,
    asked.Resume: plan_phase.resume,
    asked.Unblock: plan_phase.unblock,
    asked.CancelPlan: plan_phase.cancel_plan,
    asked.MergeConstraints: constraint_phase.merge_constraints,
    asked.RecordVerification: constraint_phase.record_verification,
    asked.WaiveConstraint: constraint_phase.waive_constraint,
    asked.RecordUsage: task_phase.record_usage,
    asked.RunAudit: plan_phase.run_audit,
}


def decide(state: Workflow | None, command: asked.Command, now: datetime) -> Decision:
    """What the command leads to, or the refusal."""
    draft = DecisionBuilder(state, command.entity_id, now)
    answer = _DECISIONS[type(command)](draft, command)
    return draft.decision(answer)


MACHINE: Machine[Workflow] = Machine(
    kind=KIND,
    version=1,
    state_type=Workflow,
    decide=decide,
    apply=apply,
    status=lambda state: state.header.status,
    run_id=lambda state: state.header.run_id,
    events=EVENTS,
    answers=asked.ANSWERS,
    terminal=frozenset({WorkflowStatus.COMPLETED}),
    failed=frozenset({WorkflowStatus.FAILED}),
)
