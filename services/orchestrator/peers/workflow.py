"""Calls to the workflow service."""

from typing import Any

from google.protobuf.json_format import Parse

from pointsman.api.common.v1 import common_pb2 as common
from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.workflow.v1 import constraints_pb2 as constraints
from pointsman.api.workflow.v1 import model_pb2 as model
from pointsman.api.workflow.v1 import plans_pb2 as plans
from pointsman.api.workflow.v1 import reading_pb2 as reading
from pointsman.api.workflow.v1 import tasks_pb2 as tasks
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.engine.deliveries import PendingEffect
from pointsman.services.orchestrator.domain import events
from pointsman.services.orchestrator.domain.calls.claim_wave import ClaimWave, NextWave
from pointsman.services.orchestrator.domain.calls.epics import Epic, StoreEpic
from pointsman.services.orchestrator.domain.calls.plans import StorePlan
from pointsman.services.orchestrator.domain.calls.release import ReleaseEpic
from pointsman.services.orchestrator.domain.calls.resumables import ListResumable
from pointsman.services.orchestrator.domain.calls.settle_wave import SettleWave
from pointsman.services.orchestrator.domain.calls.workflow_status import ForwardAnswer
from pointsman.services.orchestrator.domain.enums import Call
from pointsman.services.orchestrator.domain.model import Candidate
from pointsman.services.orchestrator.peers.clients import Peers, performs
from pointsman.services.orchestrator.wire import decode, encode, enums

RESUMABLE_SHOWN = 20


@performs(Call.LIST_RESUMABLE)
async def list_resumable(peers: Peers, effect: PendingEffect, data: ListResumable) -> Any:
    """The unfinished epics, best first."""
    request = reading.ListResumableRequest(page=common.Page(page_size=RESUMABLE_SHOWN))
    answer = await peers.call_workflow(effect, peers.workflow.stub.ListResumable, request)
    candidates = tuple(
        Candidate(w.workflow_id, (w.title or w.intake_text)[:200], w.status != model.WORKFLOW_STATUS_IDLE)
        for w in answer.workflows
    )
    return events.ResumablesFound(data.call_id, candidates)


@performs(Call.STORE_EPIC, Call.QUEUE_MESSAGE)
async def store_epic(peers: Peers, effect: PendingEffect, data: StoreEpic) -> Any:
    """Store the epic; a new one is named after the effect that makes it."""
    epic_id = data.epic_id or f"epic_{effect.effect_id}".replace(":", "-").replace(".", "-")
    request = plans.UpsertPlanRequest(
        request_id=effect.effect_id,
        workflow_id=epic_id,
        title=" ".join(data.intent.split())[:200],
        intake_text=data.intent[:65000],
        priority=data.priority,
        settings=plans.ExecutionSettings(
            execution_mode=enums.WORKFLOW_MODE.to_wire(data.mode),
            pause_before_commit=False,
            use_subagent=True,
        ),
    )
    if data.owned:
        request.owner_run_id = effect.entity_id
    await peers.call_workflow(effect, peers.workflow.stub.UpsertPlan, request)
    return events.EpicStored(data.call_id, epic_id)


async def next_epic(peers: Peers, effect: PendingEffect, epic_id: str) -> Candidate | None:
    """The named epic, else the best of the queue, with its intake text as the title."""
    if not epic_id:
        request = reading.ListResumableRequest(page=common.Page(page_size=1))
        listed = (await peers.call_workflow(effect, peers.workflow.stub.ListResumable, request)).workflows
        if not listed:
            return None
        epic_id = listed[0].workflow_id
    workflow = await _read_workflow(peers, effect, epic_id)
    planned = workflow.progress.status != model.WORKFLOW_STATUS_IDLE
    return Candidate(epic_id, workflow.intake_text or workflow.title, planned)


async def load_epic(peers: Peers, effect: PendingEffect, epic_id: str) -> Any:
    """Take the epic over, and read it with its tasks."""
    seen = reading.GetWorkflowRequest(workflow_id=epic_id, page=common.Page(page_size=1000))
    loaded = await peers.call_workflow(effect, peers.workflow.stub.GetWorkflow, seen)
    request = plans.UpsertPlanRequest(request_id=effect.effect_id, workflow_id=epic_id, owner_run_id=effect.entity_id)
    await peers.call_workflow(effect, peers.workflow.stub.UpsertPlan, request)
    return loaded


@performs(Call.STORE_PLAN)
async def store_plan(peers: Peers, effect: PendingEffect, data: StorePlan) -> Any:
    """Store the plan's tasks, and audit them where that is asked for."""
    plan = Parse(data.document, work.Plan(), ignore_unknown_fields=True)
    request = plans.UpsertPlanRequest(
        request_id=effect.effect_id,
        workflow_id=data.epic_id,
        owner_run_id=effect.entity_id,
        tasks=[encode.peers.task_spec(task) for task in plan.tasks],
    )
    try:
        await peers.call_workflow(effect, peers.workflow.stub.UpsertPlan, request)
    except Refusal as refusal:
        if refusal.reason is not Reason.STATE_FORBIDS:
            raise
        # A run that stores a plan works on no task: one in progress was claimed by a call that the run left behind.
        await _release_all(peers, effect, data.epic_id)
        await peers.call_workflow(effect, peers.workflow.stub.UpsertPlan, request)
    if not data.audited:
        return events.PlanStored(data.call_id)
    audit_request = constraints.AuditRequest(request_id=f"{effect.effect_id}:audit", workflow_id=data.epic_id)
    audit = (await peers.call_workflow(effect, peers.workflow.stub.Audit, audit_request)).audit
    errors = tuple(f"{item.subject_id}: {item.rule} '{item.excerpt}'" for item in audit.findings if item.error)
    return events.PlanStored(data.call_id, errors[:20])


async def _release_all(peers: Peers, effect: PendingEffect, epic_id: str) -> None:
    request = tasks.ReleaseTaskRequest(request_id=f"{effect.effect_id}:release", workflow_id=epic_id, all=True)
    await peers.call_workflow(effect, peers.workflow.stub.ReleaseTask, request)


@performs(Call.EXECUTE)
async def execute(peers: Peers, effect: PendingEffect, data: Epic) -> Any:
    """Start the workflow; one that its run released is resumed."""
    try:
        request = plans.ExecuteRequest(request_id=effect.effect_id, workflow_id=data.epic_id)
        progress = (await peers.call_workflow(effect, peers.workflow.stub.Execute, request)).progress
    except Refusal as refusal:
        if refusal.reason is not Reason.STATE_FORBIDS:
            raise
        progress = await _resume_own(peers, effect, data.epic_id)
    return decode.peers.workflow_seen(data.call_id, progress)


async def _resume_own(peers: Peers, effect: PendingEffect, epic_id: str) -> Any:
    workflow = await _read_workflow(peers, effect, epic_id)
    progress = workflow.progress
    if progress.pause.cause != model.PAUSE_CAUSE_OWNER_RELEASED:
        return progress
    request = plans.ResumeRequest(request_id=f"{effect.effect_id}:resume", workflow_id=epic_id)
    return (await peers.call_workflow(effect, peers.workflow.stub.Resume, request)).progress


async def _read_workflow(peers: Peers, effect: PendingEffect, epic_id: str) -> Any:
    request = reading.GetWorkflowRequest(workflow_id=epic_id, page=common.Page(page_size=1))
    return (await peers.call_workflow(effect, peers.workflow.stub.GetWorkflow, request)).workflow


@performs(Call.GET_WORKFLOW)
async def get_workflow(peers: Peers, effect: PendingEffect, data: Epic) -> Any:
    """How the workflow is."""
    workflow = await _read_workflow(peers, effect, data.epic_id)
    return decode.peers.workflow_seen(data.call_id, workflow.progress)


@performs(Call.FORWARD_ANSWER)
async def forward_answer(peers: Peers, effect: PendingEffect, data: ForwardAnswer) -> Any:
    """Pass a person's answer on."""
    key = {"request_id": effect.effect_id, "workflow_id": data.epic_id}
    method, request = encode.peers.forwarded_answer(peers.workflow.stub, data, key)
    answer = await peers.call_workflow(effect, method, request)
    return decode.peers.workflow_seen(data.call_id, answer.progress)


@performs(Call.CLAIM_WAVE)
async def claim_wave(peers: Peers, effect: PendingEffect, data: ClaimWave) -> Any:
    """Take the next tasks."""
    request = tasks.NextTasksRequest(
        request_id=effect.effect_id, workflow_id=data.epic_id, limit=data.limit, worker=effect.entity_id
    )
    answer = await peers.call_workflow(effect, peers.workflow.stub.NextTasks, request)
    task_ids = tuple(task.spec.task_id for task in answer.tasks)
    status, detail = decode.peers.progress(answer.progress)
    return NextWave(data.call_id, task_ids, status, detail)


@performs(Call.SETTLE_WAVE)
async def settle_wave(peers: Peers, effect: PendingEffect, data: SettleWave) -> Any:
    """Record the wave."""
    rejected = [tasks.RejectedTask(task_id=r.task_id, reason=r.reason, retry=True) for r in data.rejected]
    request = tasks.SettleTasksRequest(
        request_id=effect.effect_id, workflow_id=data.epic_id, completed=data.completed, rejected=rejected
    )
    answer = await peers.call_workflow(effect, peers.workflow.stub.SettleTasks, request)
    return decode.peers.workflow_seen(data.call_id, answer.progress)


@performs(Call.RELEASE)
async def release(peers: Peers, effect: PendingEffect, data: ReleaseEpic) -> None:
    """Give tasks back, and the epic too."""
    request = tasks.ReleaseTaskRequest(
        request_id=effect.effect_id, workflow_id=data.epic_id, all=bool(data.task_ids), release_owner=data.disown
    )
    await peers.call_workflow(effect, peers.workflow.stub.ReleaseTask, request)


@performs(Call.CANCEL_PLAN)
async def cancel_plan(peers: Peers, effect: PendingEffect, data: Epic) -> None:
    """Cancel the workflow."""
    request = plans.CancelPlanRequest(request_id=effect.effect_id, workflow_id=data.epic_id)
    await peers.call_workflow(effect, peers.workflow.stub.CancelPlan, request)
