"""The workflow machine: every command to its decision, every event to its fold."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from pointsman.services.chassis.machine import Decision, Machine
from pointsman.services.workflow.domain import commands as asked
from pointsman.services.workflow.domain import constraining, planning, working
from pointsman.services.workflow.domain.draft import Draft
from pointsman.services.workflow.domain.events import EVENTS
from pointsman.services.workflow.domain.fold import apply
from pointsman.services.workflow.domain.states import KIND, WorkflowStatus
from pointsman.services.workflow.domain.workflow import Workflow

_DECISIONS: Mapping[type, Callable[[Draft, Any], Any]] = {
    asked.UpsertPlan: planning.upsert_plan,
    asked.ImportState: planning.import_state,
    asked.Execute: planning.execute,
    asked.NextTasks: working.next_tasks,
    asked.ReleaseTask: working.release_task,
    asked.CompleteTask: working.complete_task,
    asked.FailTask: working.fail_task,
    asked.SettleTasks: working.settle_tasks,
    asked.RetryTask: working.retry_task,
    asked.SkipTask: working.skip_task,
    asked.PauseWorkflow: planning.pause,
    asked.Resume: planning.resume,
    asked.Unblock: planning.unblock,
    asked.CancelPlan: planning.cancel_plan,
    asked.MergeConstraints: constraining.merge_constraints,
    asked.RecordVerification: constraining.record_verification,
    asked.WaiveConstraint: constraining.waive_constraint,
    asked.RecordUsage: working.record_usage,
    asked.RunAudit: planning.run_audit,
}


def decide(state: Workflow | None, command: asked.Command, now: datetime) -> Decision:
    """What the command leads to, or the refusal."""
    draft = Draft(state, command.entity_id, now)
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
)
