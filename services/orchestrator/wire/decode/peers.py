"""The other services' answers."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.pipeline.v1 import route_pb2 as route
from pointsman.api.pipeline.v1 import state_pb2 as pipeline_state
from pointsman.api.workflow.v1 import model_pb2 as model
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.orchestrator.domain import events
from pointsman.services.orchestrator.domain.calls.epics import Epic
from pointsman.services.orchestrator.domain.calls.pipelines import PipelineSeen
from pointsman.services.orchestrator.domain.calls.stage_completion import CompleteStage, StageFailure
from pointsman.services.orchestrator.domain.enums import Severity, WorkflowStatus
from pointsman.services.orchestrator.domain.model import Delegation, Plan, Risk, SlotOutline
from pointsman.services.orchestrator.wire import enums
from pointsman.services.orchestrator.wire.decode.results import plan
from pointsman.services.orchestrator.wire.encode.documents import revive


def progress(answer: model.Progress) -> tuple[WorkflowStatus, str]:
    """Where the workflow stands, and why in one line."""
    detail = answer.pause.message or answer.failure_reason or ", ".join(answer.blocking)
    return enums.WORKFLOW_STATUS.required(answer.status), detail[:500]


def workflow_seen(call_id: str, answer: model.Progress) -> events.WorkflowSeen:
    """Where the workflow stands."""
    status, detail = progress(answer)
    return events.WorkflowSeen(call_id, status, detail)


def epic_loaded(data: Epic, loaded: Any, document: str) -> events.Resumed:
    """A resumed epic: its plan as it was written, or, where that is gone, as its tasks tell it."""
    done = (model.TASK_STATUS_COMPLETED, model.TASK_STATUS_SKIPPED)
    message = revive(document, work.Plan())
    known = {task.id for task in message.tasks}
    missing = [task for task in loaded.tasks if task.spec.task_id not in known]
    message.tasks.extend(_plan_task(task.spec) for task in missing)
    if not document:
        message.confidence = 1.0
    taken = plan(message)
    if not isinstance(taken, Plan):
        raise Refusal(Reason.INVALID_FIELD, f"{taken.field}: {taken.problem}")
    slots = taken.slots or (SlotOutline("survey", "What of the repository matters for this task?"),)
    accepted = tuple(task.spec.task_id for task in loaded.tasks if task.status in done)
    intent = loaded.workflow.intake_text or loaded.workflow.title
    return events.Resumed(data.call_id, data.epic_id, intent, replace(taken, slots=slots), accepted)


def _plan_task(spec: model.TaskSpec) -> work.PlanTask:
    criterion = handoff.AcceptanceCriterion(id=f"{spec.task_id}-C1", statement=f"{spec.name} is done", required=True)
    return work.PlanTask(id=spec.task_id, name=spec.name, actions=spec.actions, acceptance_criteria=[criterion])


def pipeline_seen(data: Any, state: int, delegations: Iterable[Any], risks: tuple[Risk, ...] = ()) -> PipelineSeen:
    """How a pipeline is."""
    offered = tuple(
        Delegation(item.delegation_id, item.stage, item.node_context_json, item.directive, item.nonce)
        for item in delegations
    )
    return PipelineSeen(data.call_id, data.task_id, enums.PIPELINE_STATE.required(state), offered, risks)


def moment(at: Timestamp) -> datetime | None:
    """A time on the wire; nothing where there is none."""
    return at.ToDatetime(UTC) if at.ByteSize() else None


def next_barrier_due(barriers: Iterable[pipeline_state.Barrier]) -> datetime | None:
    """When the first of the barriers that wait stops waiting."""
    return min((due for barrier in barriers if (due := moment(barrier.due_at))), default=None)


def stage_completed(data: CompleteStage, answer: Any) -> PipelineSeen:
    """How a pipeline is after a stage's answer."""
    risks = tuple(residual_risk(data.task_id, risk) for risk in answer.residual_risks)
    seen = pipeline_seen(data, answer.state, answer.next, risks)
    return replace(seen, failure=stage_failure(data, answer), barrier_due_at=moment(answer.barrier_due_at))


def stage_failure(data: CompleteStage, answer: Any) -> StageFailure | None:
    """Why the stage that was handed in failed, in its agent's words; a lost agent was noted before."""
    ending = answer.route
    if data.lost or ending.verdict != route.VERDICT_FAIL:
        return None
    hint, summary = data.hint or ending.hint, data.report.strip().partition("\n\n")[0]
    said = summary if summary.startswith(hint) else hint
    return StageFailure(data.stage, data.agent_id, said or "it failed and did not say why")


def residual_risk(task_id: str, risk: Any) -> Risk:
    """A stage that is no proof, as a risk of the run."""
    kind = pipeline_state.RiskKind.Name(risk.kind).removeprefix("RISK_KIND_").lower()
    statement = f"{task_id}: the stage {risk.stage} is no proof ({kind})"
    forced = risk.kind == pipeline_state.RISK_KIND_FORCED_ON
    return Risk(f"stage-{task_id}-{risk.stage}", statement, Severity.HIGH, task_id, forced)
