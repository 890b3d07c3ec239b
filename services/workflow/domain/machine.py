"""The machine of a workflow: which function decides each command, and what the chassis runs."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from pointsman.services.chassis.core.machine import Decision, Machine
from pointsman.services.workflow.domain import commands, constraint_phase, plan_phase, task_phase
from pointsman.services.workflow.domain.apply import apply
from pointsman.services.workflow.domain.decision import DecisionBuilder
from pointsman.services.workflow.domain.enums import KIND, WorkflowStatus
from pointsman.services.workflow.domain.events import EVENTS
from pointsman.services.workflow.domain.model import Workflow

_DECISIONS: Mapping[type, Callable[[DecisionBuilder, Any], Any]] = {
    commands.UpsertPlan: plan_phase.upsert_plan,
    commands.ImportState: plan_phase.import_state,
    commands.Execute: plan_phase.execute,
    commands.NextTasks: task_phase.next_tasks,
    commands.ReleaseTask: task_phase.release_task,
    commands.CompleteTask: task_phase.complete_task,
    commands.FailTask: task_phase.fail_task,
    commands.SettleTasks: task_phase.settle_tasks,
    commands.RetryTask: task_phase.retry_task,
    commands.SkipTask: task_phase.skip_task,
    commands.PauseWorkflow: plan_phase.pause,
    commands.Resume: plan_phase.resume,
    commands.Unblock: plan_phase.unblock,
    commands.CancelPlan: plan_phase.cancel_plan,
    commands.MergeConstraints: constraint_phase.merge_constraints,
    commands.RecordVerification: constraint_phase.record_verification,
    commands.WaiveConstraint: constraint_phase.waive_constraint,
    commands.RecordUsage: task_phase.record_usage,
    commands.RunAudit: plan_phase.run_audit,
}


def decide(state: Workflow | None, command: commands.Command, now: datetime) -> Decision:
    """The decision on a command, or a refusal."""
    builder = DecisionBuilder(state, command.entity_id, now)
    answer = _DECISIONS[type(command)](builder, command)
    return builder.decision(answer)


MACHINE: Machine[Workflow] = Machine(
    kind=KIND,
    version=1,
    state_type=Workflow,
    decide=decide,
    apply=apply,
    status=lambda state: state.header.status,
    run_id=lambda state: state.header.run_id,
    events=EVENTS,
    answers=commands.ANSWERS,
    terminal=frozenset({WorkflowStatus.COMPLETED}),
    failed=frozenset({WorkflowStatus.FAILED}),
)
