"""What a run asks of the other services, as calls; and their answers, as commands for the run."""

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import grpc
from google.protobuf.json_format import Parse

from pointsman.api.common.v1 import common_pb2 as common
from pointsman.api.handoff.v1 import work_pb2 as work
from pointsman.api.pipeline.v1 import pipeline_pb2 as pipeline
from pointsman.api.pipeline.v1 import requests_pb2 as pipeline_requests
from pointsman.api.pipeline.v1 import route_pb2 as route
from pointsman.api.pipeline.v1.pipeline_pb2_grpc import PipelineServiceStub
from pointsman.api.router.v1 import decision_pb2 as decision
from pointsman.api.router.v1 import log_pb2 as log
from pointsman.api.router.v1 import outcome_pb2 as outcome
from pointsman.api.router.v1.router_pb2_grpc import RouterServiceStub
from pointsman.api.workflow.v1 import constraints_pb2 as constraints
from pointsman.api.workflow.v1 import model_pb2 as model
from pointsman.api.workflow.v1 import plans_pb2 as plans
from pointsman.api.workflow.v1 import reading_pb2 as reading
from pointsman.api.workflow.v1 import tasks_pb2 as tasks
from pointsman.api.workflow.v1.workflow_pb2_grpc import WorkflowServiceStub
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.engine.deliveries import PendingEffect
from pointsman.services.chassis.rpc.client import Peer
from pointsman.services.orchestrator.domain import commands, peer_requests
from pointsman.services.orchestrator.domain.enums import Call, DebateVerdict, Reply
from pointsman.services.orchestrator.domain.model import Candidate
from pointsman.services.orchestrator.wire import peer_messages

STAND_IN = "orchestrator"
"""The agent in whose name the pipeline's stages are delegated; the real one is the assignment's."""
RESUMABLE_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Channels:
    """The channels to the other services."""

    router: grpc.aio.Channel
    workflow: grpc.aio.Channel
    pipeline: grpc.aio.Channel


class Peers:
    """The other services, seen from a run; every call is idempotent by its effect's id."""

    def __init__(self, channels: Channels) -> None:
        self.router: Peer[Any] = Peer(channels.router, RouterServiceStub, STAND_IN)
        self.workflow: Peer[Any] = Peer(channels.workflow, WorkflowServiceStub, STAND_IN)
        self.pipeline: Peer[Any] = Peer(channels.pipeline, PipelineServiceStub, STAND_IN)

    async def classify(self, request: decision.ClassifyRequest, project: str, traceparent: str) -> Any:
        """The router's decision about a message."""
        answer = await self.router.call(self.router.stub.Classify, request, project, traceparent)
        return answer.decision

    async def perform(self, effect: PendingEffect) -> Any:
        """Make the effect's call; the command that its answer is."""
        call = Call(effect.kind)
        data = effect.data(peer_requests.REQUESTS[call])
        return await _CALLS[call](self, effect, data)

    async def _workflow(self, effect: PendingEffect, method: str, request: Any) -> Any:
        stub = self.workflow.stub
        return await self.workflow.call(getattr(stub, method), request, effect.project, effect.traceparent)

    async def _pipeline(self, effect: PendingEffect, method: str, request: Any) -> Any:
        stub = self.pipeline.stub
        return await self.pipeline.call(getattr(stub, method), request, effect.project, effect.traceparent)

    async def _router(self, effect: PendingEffect, method: str, request: Any) -> Any:
        stub = self.router.stub
        return await self.router.call(getattr(stub, method), request, effect.project, effect.traceparent)

    async def list_resumable(self, effect: PendingEffect, data: peer_requests.Ask) -> Any:
        """The unfinished epics, best first."""
        request = reading.ListResumableRequest(page=common.Page(page_size=RESUMABLE_SHOWN))
        answer = await self._workflow(effect, "ListResumable", request)
        candidates = tuple(
            Candidate(w.workflow_id, (w.title or w.intake_text)[:200], w.status != model.WORKFLOW_STATUS_IDLE)
            for w in answer.workflows
        )
        return commands.ResumablesListed(effect.entity_id, data.call_id, candidates)

    async def keep_epic(self, effect: PendingEffect, data: peer_requests.KeepEpic) -> Any:
        """Store the epic; a new one is named after the effect that makes it."""
        epic_id = data.epic_id or f"epic_{effect.effect_id}".replace(":", "-").replace(".", "-")
        request = plans.UpsertPlanRequest(
            request_id=effect.effect_id,
            workflow_id=epic_id,
            title=" ".join(data.intent.split())[:200],
            intake_text=data.intent[:65000],
            priority=data.priority,
            settings=plans.ExecutionSettings(
                execution_mode=model.ExecutionMode.Value(f"EXECUTION_MODE_{data.mode}"),
                pause_before_commit=False,
                use_subagent=True,
            ),
        )
        if data.owned:
            request.owner_run_id = effect.entity_id
        await self._workflow(effect, "UpsertPlan", request)
        return commands.EpicKept(effect.entity_id, data.call_id, epic_id)

    async def next_epic(self, effect: PendingEffect, epic_id: str) -> Candidate | None:
        """The named epic, else the best of the queue, with its intake text as the title."""
        if not epic_id:
            request = reading.ListResumableRequest(page=common.Page(page_size=1))
            listed = (await self._workflow(effect, "ListResumable", request)).workflows
            if not listed:
                return None
            epic_id = listed[0].workflow_id
        workflow = await self._get_workflow(effect, epic_id)
        planned = workflow.progress.status != model.WORKFLOW_STATUS_IDLE
        return Candidate(epic_id, workflow.intake_text or workflow.title, planned)

    async def load_epic(self, effect: PendingEffect, epic_id: str) -> Any:
        """Take the epic over, and read it with its tasks."""
        seen = reading.GetWorkflowRequest(workflow_id=epic_id, page=common.Page(page_size=1000))
        loaded = await self._workflow(effect, "GetWorkflow", seen)
        request = plans.UpsertPlanRequest(
            request_id=effect.effect_id, workflow_id=epic_id, owner_run_id=effect.entity_id
        )
        await self._workflow(effect, "UpsertPlan", request)
        return loaded

    async def forget_run(self, project: str, run_id: str) -> None:
        """Remove what the other services keep of an ended run."""
        request_id = _opaque(f"forget:{run_id}")
        router, workflow, pipeline_peer = self.router, self.workflow, self.pipeline
        await router.call(
            router.stub.ForgetRun, log.ForgetRunRequest(request_id=request_id, run_id=run_id), project, ""
        )
        await workflow.call(
            workflow.stub.ForgetRun, reading.ForgetRunRequest(request_id=request_id, run_id=run_id), project, ""
        )
        await pipeline_peer.call(
            pipeline_peer.stub.ForgetRun,
            pipeline_requests.ForgetRunRequest(request_id=request_id, run_id=run_id),
            project,
            "",
        )

    async def keep_plan(self, effect: PendingEffect, data: peer_requests.KeepPlan) -> Any:
        """Store the plan's tasks, and audit them where that is asked for."""
        plan = Parse(data.document, work.Plan(), ignore_unknown_fields=True)
        request = plans.UpsertPlanRequest(
            request_id=effect.effect_id,
            workflow_id=data.epic_id,
            owner_run_id=effect.entity_id,
            tasks=[peer_messages.task_spec(task) for task in plan.tasks],
        )
        await self._workflow(effect, "UpsertPlan", request)
        if not data.audited:
            return commands.PlanKept(effect.entity_id, data.call_id)
        audit_request = constraints.AuditRequest(request_id=f"{effect.effect_id}:audit", workflow_id=data.epic_id)
        audit = (await self._workflow(effect, "Audit", audit_request)).audit
        errors = tuple(f"{item.subject_id}: {item.rule} '{item.excerpt}'" for item in audit.findings if item.error)
        return commands.PlanKept(effect.entity_id, data.call_id, errors[:20])

    async def execute(self, effect: PendingEffect, data: peer_requests.Epic) -> Any:
        """Start the workflow; one that was let go is resumed."""
        try:
            request = plans.ExecuteRequest(request_id=effect.effect_id, workflow_id=data.epic_id)
            progress = (await self._workflow(effect, "Execute", request)).progress
        except Refusal as refusal:
            if refusal.reason is not Reason.STATE_FORBIDS:
                raise
            progress = await self._resume_own(effect, data.epic_id)
        return peer_messages.workflow_told(effect.entity_id, data.call_id, progress)

    async def _resume_own(self, effect: PendingEffect, epic_id: str) -> Any:
        workflow = await self._get_workflow(effect, epic_id)
        progress = workflow.progress
        if progress.pause.cause != model.PAUSE_CAUSE_OWNER_RELEASED:
            return progress
        request = plans.ResumeRequest(request_id=f"{effect.effect_id}:resume", workflow_id=epic_id)
        return (await self._workflow(effect, "Resume", request)).progress

    async def _get_workflow(self, effect: PendingEffect, epic_id: str) -> Any:
        request = reading.GetWorkflowRequest(workflow_id=epic_id, page=common.Page(page_size=1))
        return (await self._workflow(effect, "GetWorkflow", request)).workflow

    async def see_workflow(self, effect: PendingEffect, data: peer_requests.Epic) -> Any:
        """How the workflow is."""
        workflow = await self._get_workflow(effect, data.epic_id)
        return peer_messages.workflow_told(effect.entity_id, data.call_id, workflow.progress)

    async def tell_workflow(self, effect: PendingEffect, data: peer_requests.TellWorkflow) -> Any:
        """Pass a person's answer on."""
        key = {"request_id": effect.effect_id, "workflow_id": data.epic_id}
        method, request = peer_messages.workflow_words(data, key)
        answer = await self._workflow(effect, method, request)
        return peer_messages.workflow_told(effect.entity_id, data.call_id, answer.progress)

    async def claim_wave(self, effect: PendingEffect, data: peer_requests.ClaimWave) -> Any:
        """Take the next tasks."""
        request = tasks.NextTasksRequest(
            request_id=effect.effect_id, workflow_id=data.epic_id, limit=data.limit, worker=effect.entity_id
        )
        answer = await self._workflow(effect, "NextTasks", request)
        task_ids = tuple(task.spec.task_id for task in answer.tasks)
        status, detail = peer_messages.progress(answer.progress)
        return commands.TasksHandedOut(effect.entity_id, data.call_id, task_ids, status, detail)

    async def settle_wave(self, effect: PendingEffect, data: peer_requests.SettleWave) -> Any:
        """Record the wave."""
        rejected = [tasks.RejectedTask(task_id=r.task_id, reason=r.reason, retry=True) for r in data.rejected]
        request = tasks.SettleTasksRequest(
            request_id=effect.effect_id, workflow_id=data.epic_id, completed=data.completed, rejected=rejected
        )
        answer = await self._workflow(effect, "SettleTasks", request)
        return peer_messages.workflow_told(effect.entity_id, data.call_id, answer.progress)

    async def release(self, effect: PendingEffect, data: peer_requests.ReleaseEpic) -> Any:
        """Give tasks back, and the epic too."""
        request = tasks.ReleaseTaskRequest(
            request_id=effect.effect_id, workflow_id=data.epic_id, all=bool(data.task_ids), release_owner=data.disown
        )
        await self._workflow(effect, "ReleaseTask", request)
        return commands.CallDone(effect.entity_id, data.call_id)

    async def cancel_plan(self, effect: PendingEffect, data: peer_requests.Epic) -> Any:
        """Cancel the workflow."""
        request = plans.CancelPlanRequest(request_id=effect.effect_id, workflow_id=data.epic_id)
        await self._workflow(effect, "CancelPlan", request)
        return commands.CallDone(effect.entity_id, data.call_id)

    async def start_pipeline(self, effect: PendingEffect, data: peer_requests.StartPipeline) -> Any:
        """Start a task's pipeline, with what earlier attempts taught."""
        reflections = await self._reflections(effect, data.earlier_pipeline_id)
        request = pipeline.StartPipelineRequest(
            request_id=effect.effect_id,
            pipeline_id=data.pipeline_id,
            run_id=effect.entity_id,
            template=data.template,
            reflections=reflections,
            auto_delegate=pipeline.AutoDelegate(agent_id=STAND_IN),
        )
        if data.barrier_timeout_seconds:
            request.barrier_timeout.FromMicroseconds(round(data.barrier_timeout_seconds * 1_000_000))
        answer = await self._pipeline(effect, "StartPipeline", request)
        told = peer_messages.pipeline_told(effect.entity_id, data, answer.state, answer.next)
        return replace(told, reflections=tuple(f"{item.stage}: {item.body}"[:4000] for item in reflections))

    async def _reflections(self, effect: PendingEffect, pipeline_id: str) -> list[pipeline.EarlierReflection]:
        """What the attempt before taught; nothing where its pipeline could not be started or was removed since."""
        request = pipeline_requests.GetPipelineRequest(pipeline_id=pipeline_id)
        earlier = await self._unless_missing(effect, "GetPipeline", request) if pipeline_id else None
        stages = earlier.pipeline.stages if earlier else ()
        found = []
        for stage in (stage.node.stage for stage in stages if stage.verdict == route.VERDICT_FAIL):
            wanted = pipeline_requests.GetReflectionRequest(pipeline_id=pipeline_id, stage=stage)
            reflection = await self._unless_missing(effect, "GetReflection", wanted)
            if reflection is not None:
                found.append(pipeline.EarlierReflection(stage=stage, body=reflection.body[:8000]))
        return found

    async def _unless_missing(self, effect: PendingEffect, method: str, request: Any) -> Any:
        """What the pipeline service answers; None where it does not know the thing."""
        try:
            return await self._pipeline(effect, method, request)
        except Refusal as refusal:
            if refusal.reason is not Reason.NOT_FOUND:
                raise
            return None

    async def complete_stage(self, effect: PendingEffect, data: peer_requests.CompleteStage) -> Any:
        """Hand a stage's answer in, and take the next delegations."""
        request = pipeline.CompleteStageRequest(
            request_id=effect.effect_id,
            pipeline_id=data.pipeline_id,
            delegation_id=data.delegation_id,
            agent_id=STAND_IN,
            report=data.report[:400_000],
            auto_delegate=pipeline.AutoDelegate(agent_id=STAND_IN),
        )
        if data.verdict in ("PASS", "FAIL"):
            request.route.CopyFrom(peer_messages.route_of(data))
        elif data.transcript:
            request.transcript = data.transcript
        return peer_messages.stage_completed(
            effect.entity_id, data, await self._pipeline(effect, "CompleteStage", request)
        )

    async def see_pipeline(self, effect: PendingEffect, data: peer_requests.Pipeline) -> Any:
        """How a pipeline is; what waits to be delegated is delegated."""
        request = pipeline_requests.GetPipelineRequest(pipeline_id=data.pipeline_id)
        seen = (await self._pipeline(effect, "GetPipeline", request)).pipeline
        next_ones = [*seen.active_delegations]
        next_ones += [await self._delegate(effect, data.pipeline_id, item) for item in seen.pending_delegations]
        risks = () if seen.pipeline_active else seen.residual_risks
        shown = tuple(peer_messages.residual_risk(data.task_id, risk) for risk in risks)
        told = peer_messages.pipeline_told(effect.entity_id, data, seen.summary.state, next_ones, shown)
        return replace(told, barrier_due_at=peer_messages.next_barrier_due(seen.barriers))

    async def _delegate(self, effect: PendingEffect, pipeline_id: str, waiting: Any) -> Any:
        request = pipeline.DelegateStageRequest(
            request_id=f"{effect.effect_id}:{waiting.stage}",
            pipeline_id=pipeline_id,
            stage=waiting.stage,
            agent_id=STAND_IN,
        )
        return (await self._pipeline(effect, "DelegateStage", request)).delegation

    async def tell_pipeline(self, effect: PendingEffect, data: peer_requests.TellPipeline) -> Any:
        """Pass a person's answer on."""
        key = {"request_id": effect.effect_id, "pipeline_id": data.pipeline_id, "stage": data.stage}
        if data.reply is Reply.SKIP_STAGE:
            request: Any = pipeline_requests.SkipStageRequest(**key, reason=data.text[:500])
            answer = await self._pipeline(effect, "SkipStage", request)
        else:
            request = pipeline_requests.RestartFromRequest(**key, reason=data.text[:500])
            answer = await self._pipeline(effect, "RestartFrom", request)
        next_ones = [await self._delegate(effect, data.pipeline_id, item) for item in answer.next]
        return peer_messages.pipeline_told(effect.entity_id, data, answer.state, next_ones)

    async def cancel_pipeline(self, effect: PendingEffect, data: peer_requests.Pipeline) -> Any:
        """End a pipeline."""
        request = pipeline_requests.CancelPipelineRequest(
            request_id=effect.effect_id, pipeline_id=data.pipeline_id, reason="the run stopped this work"
        )
        await self._pipeline(effect, "CancelPipeline", request)
        return commands.CallDone(effect.entity_id, data.call_id)

    async def report_outcome(self, effect: PendingEffect, data: peer_requests.ReportOutcome) -> Any:
        """Tell the router how it went; a failure debate is resolved in the same breath."""
        request = outcome.ReportOutcomeRequest(
            request_id=_opaque(effect.effect_id),
            decision_id=data.decision_id,
            outcome=peer_messages.reported_outcome(data),
            error_text=data.error,
        )
        answer = await self._router(effect, "ReportOutcome", request)
        if answer.reaction == outcome.REACTION_AUTO_ESCALATE:
            verdict = DebateVerdict.ESCALATE
        elif answer.reaction == outcome.REACTION_DEBATE_FAILURE:
            verdict = await self._failure_debate(effect, data)
        else:
            verdict = DebateVerdict.RETRY
        return commands.DebateEnded(effect.entity_id, data.call_id, verdict)

    async def _failure_debate(self, effect: PendingEffect, data: peer_requests.ReportOutcome) -> DebateVerdict:
        request = outcome.ResolveDebateRequest(
            request_id=_opaque(f"{effect.effect_id}:debate"),
            decision_id=data.decision_id,
            kind=outcome.DEBATE_KIND_FAILURE,
            advocate=outcome.Advocate(proposal="try again", confidence=0.7, difference=data.difference),
            critic=outcome.Critic(objection=data.error[:4000], severity=outcome.SEVERITY_MEDIUM),
        )
        answer = await self._router(effect, "ResolveDebate", request)
        return peer_messages.debate_verdict(answer.verdict)

    async def resolve_debate(self, effect: PendingEffect, data: peer_requests.ResolveDebate) -> Any:
        """Let the router weigh the plan's critic against its advocate."""
        request = outcome.ResolveDebateRequest(
            request_id=_opaque(effect.effect_id),
            decision_id=data.decision_id,
            kind=outcome.DEBATE_KIND_PLANNING,
            advocate=outcome.Advocate(proposal=data.proposal[:4000], confidence=data.confidence),
            critic=outcome.Critic(
                objection=data.objection[:4000],
                severity=peer_messages.critic_severity(data.severity),
                counter_proposal=data.counter[:4000],
            ),
        )
        answer = await self._router(effect, "ResolveDebate", request)
        return commands.DebateEnded(effect.entity_id, data.call_id, peer_messages.debate_verdict(answer.verdict))


def _opaque(key: str) -> str:
    """An idempotency key that does not name the run: the peer keeps it a few days longer than anything of the run."""
    return hashlib.sha256(key.encode()).hexdigest()[:32]


_CALLS: Mapping[Call, Callable[[Peers, PendingEffect, Any], Awaitable[Any]]] = {
    Call.LIST_RESUMABLE: Peers.list_resumable,
    Call.STORE_EPIC: Peers.keep_epic,
    Call.QUEUE_MESSAGE: Peers.keep_epic,
    Call.STORE_PLAN: Peers.keep_plan,
    Call.EXECUTE: Peers.execute,
    Call.SEE_WORKFLOW: Peers.see_workflow,
    Call.TELL_WORKFLOW: Peers.tell_workflow,
    Call.CLAIM_WAVE: Peers.claim_wave,
    Call.SETTLE_WAVE: Peers.settle_wave,
    Call.RELEASE: Peers.release,
    Call.CANCEL_PLAN: Peers.cancel_plan,
    Call.START_PIPELINE: Peers.start_pipeline,
    Call.COMPLETE_STAGE: Peers.complete_stage,
    Call.SEE_PIPELINE: Peers.see_pipeline,
    Call.TELL_PIPELINE: Peers.tell_pipeline,
    Call.CANCEL_PIPELINE: Peers.cancel_pipeline,
    Call.REPORT_OUTCOME: Peers.report_outcome,
    Call.RESOLVE_DEBATE: Peers.resolve_debate,
}
