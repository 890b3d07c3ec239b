"""Calls to the pipeline service."""

from dataclasses import replace
from typing import Any

from pointsman.api.pipeline.v1 import pipeline_pb2 as pipeline
from pointsman.api.pipeline.v1 import requests_pb2 as pipeline_requests
from pointsman.api.pipeline.v1 import route_pb2 as route
from pointsman.api.pipeline.v1 import state_pb2 as pipeline_state
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.engine.deliveries import PendingEffect
from pointsman.services.orchestrator.domain.calls.pipelines import ForwardStageAnswer, Pipeline, StartPipeline
from pointsman.services.orchestrator.domain.calls.stage_completion import CompleteStage
from pointsman.services.orchestrator.domain.enums import Call, Reply
from pointsman.services.orchestrator.peers.clients import STAND_IN, Peers, performs
from pointsman.services.orchestrator.wire import decode, encode


@performs(Call.START_PIPELINE)
async def start_pipeline(peers: Peers, effect: PendingEffect, data: StartPipeline) -> Any:
    """Start a task's pipeline, with what earlier attempts taught."""
    reflections = await _reflections(peers, effect, data.earlier_pipeline_id)
    request = pipeline.StartPipelineRequest(
        request_id=effect.effect_id,
        pipeline_id=data.pipeline_id,
        run_id=effect.entity_id,
        template=data.template,
        reflections=reflections,
        auto_delegate=pipeline.AutoDelegate(agent_id=STAND_IN),
        policy=pipeline_state.POLICY_SEED if data.lenient else pipeline_state.POLICY_STRICT,
        require_nonce=True,
    )
    if data.barrier_timeout_seconds:
        request.barrier_timeout.FromMicroseconds(round(data.barrier_timeout_seconds * 1_000_000))
    answer = await peers.call_pipeline(effect, peers.pipeline.stub.StartPipeline, request)
    seen_pipeline = decode.peers.pipeline_seen(data, answer.state, answer.next)
    return replace(seen_pipeline, reflections=tuple(f"{item.stage}: {item.body}"[:4000] for item in reflections))


async def _reflections(peers: Peers, effect: PendingEffect, pipeline_id: str) -> list[pipeline.EarlierReflection]:
    """What the attempt before taught; nothing where its pipeline could not be started or was removed since."""
    request = pipeline_requests.GetPipelineRequest(pipeline_id=pipeline_id)
    earlier = await _unless_missing(peers, effect, peers.pipeline.stub.GetPipeline, request) if pipeline_id else None
    stages = earlier.pipeline.stages if earlier else ()
    found = []
    for stage in (stage.node.stage for stage in stages if stage.verdict == route.VERDICT_FAIL):
        wanted = pipeline_requests.GetReflectionRequest(pipeline_id=pipeline_id, stage=stage)
        reflection = await _unless_missing(peers, effect, peers.pipeline.stub.GetReflection, wanted)
        if reflection is not None:
            found.append(pipeline.EarlierReflection(stage=stage, body=reflection.body[:8000]))
    return found


async def _unless_missing(peers: Peers, effect: PendingEffect, method: Any, request: Any) -> Any:
    """What the pipeline service answers; None where it does not know the thing."""
    try:
        return await peers.call_pipeline(effect, method, request)
    except Refusal as refusal:
        if refusal.reason is not Reason.NOT_FOUND:
            raise
        return None


@performs(Call.COMPLETE_STAGE)
async def complete_stage(peers: Peers, effect: PendingEffect, data: CompleteStage) -> Any:
    """Hand a stage's answer in, and take the next delegations."""
    request = pipeline.CompleteStageRequest(
        request_id=effect.effect_id,
        pipeline_id=data.pipeline_id,
        delegation_id=data.delegation_id,
        agent_id=STAND_IN,
        report=data.report[:400_000],
        auto_delegate=pipeline.AutoDelegate(agent_id=STAND_IN),
        tried_again=data.lost,
    )
    if data.verdict in ("PASS", "FAIL"):
        request.route.CopyFrom(encode.peers.route_of(data))
    elif data.transcript:
        request.transcript = data.transcript
    return decode.peers.stage_completed(
        data, await peers.call_pipeline(effect, peers.pipeline.stub.CompleteStage, request)
    )


@performs(Call.GET_PIPELINE)
async def get_pipeline(peers: Peers, effect: PendingEffect, data: Pipeline) -> Any:
    """How a pipeline is; what waits to be delegated is delegated."""
    request = pipeline_requests.GetPipelineRequest(pipeline_id=data.pipeline_id)
    seen = (await peers.call_pipeline(effect, peers.pipeline.stub.GetPipeline, request)).pipeline
    next_ones = [*seen.active_delegations]
    next_ones += [await _delegate(peers, effect, data.pipeline_id, item) for item in seen.pending_delegations]
    risks = () if seen.pipeline_active else seen.residual_risks
    shown = tuple(decode.peers.residual_risk(data.task_id, risk) for risk in risks)
    seen_pipeline = decode.peers.pipeline_seen(data, seen.summary.state, next_ones, shown)
    return replace(seen_pipeline, barrier_due_at=decode.peers.next_barrier_due(seen.barriers))


async def _delegate(peers: Peers, effect: PendingEffect, pipeline_id: str, waiting: Any) -> Any:
    request = pipeline.DelegateStageRequest(
        request_id=f"{effect.effect_id}:{waiting.stage}",
        pipeline_id=pipeline_id,
        stage=waiting.stage,
        agent_id=STAND_IN,
    )
    return (await peers.call_pipeline(effect, peers.pipeline.stub.DelegateStage, request)).delegation


@performs(Call.FORWARD_STAGE_ANSWER)
async def forward_stage_answer(peers: Peers, effect: PendingEffect, data: ForwardStageAnswer) -> Any:
    """Pass a person's answer on."""
    key = {"request_id": effect.effect_id, "pipeline_id": data.pipeline_id, "stage": data.stage}
    if data.reply is Reply.SKIP_STAGE:
        request: Any = pipeline_requests.SkipStageRequest(**key, reason=data.text[:500])
        answer = await peers.call_pipeline(effect, peers.pipeline.stub.SkipStage, request)
    else:
        request = pipeline_requests.RestartFromRequest(**key, reason=data.text[:500])
        answer = await peers.call_pipeline(effect, peers.pipeline.stub.RestartFrom, request)
    next_ones = [await _delegate(peers, effect, data.pipeline_id, item) for item in answer.next]
    return decode.peers.pipeline_seen(data, answer.state, next_ones)


@performs(Call.CANCEL_PIPELINE)
async def cancel_pipeline(peers: Peers, effect: PendingEffect, data: Pipeline) -> None:
    """End a pipeline."""
    request = pipeline_requests.CancelPipelineRequest(
        request_id=effect.effect_id, pipeline_id=data.pipeline_id, reason="the run stopped this work"
    )
    await peers.call_pipeline(effect, peers.pipeline.stub.CancelPipeline, request)
