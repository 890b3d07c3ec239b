"""What each hook does: delegate a stage when its sub-agent starts, complete it when the sub-agent stops, and the rest."""

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import grpc
from control import CALL_SECONDS, Control, config_directory, new_request_id, session_of
from files import (
    context_path,
    materialise,
    node_context_with_paths,
    read_report,
    read_transcript,
    reflection_path,
    remove_stale,
)

from pointsman.api.pipeline.v1 import pipeline_pb2 as pb
from pointsman.api.pipeline.v1 import requests_pb2 as rq
from pointsman.api.pipeline.v1 import route_pb2 as rt
from pointsman.api.pipeline.v1 import state_pb2 as sp
from pointsman.api.router.v1 import decision_pb2

GUARD_SWITCH = "POINTSMAN_GUARD"
START_SWITCH = "POINTSMAN_START_PIPELINES"
NONCE_SWITCH = "POINTSMAN_REQUIRE_NONCE"
AGENT_PREFIX = "pointsman-"
QUALITY = frozenset({sp.STAGE_KIND_REVIEW, sp.STAGE_KIND_TEST, sp.STAGE_KIND_QA, sp.STAGE_KIND_E2E})
DELEGATING_TOOLS = frozenset({"Task", "Agent"})
GUARDED_TOOLS = frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit"})

Answer = dict[str, Any]


def context(event_name: str, text: str) -> Answer:
    """Words for the model that runs next."""
    return {"hookSpecificOutput": {"hookEventName": event_name, "additionalContext": text}} if text else {}


async def session_start(control: Control, event: dict[str, Any]) -> Answer:
    """Clean up what is old, here and there; remind a resumed session of its pipeline."""
    remove_stale(config_directory(control.environment))
    await control.pipelines.CleanUp(rq.CleanUpRequest(request_id=new_request_id()), timeout=CALL_SECONDS)
    pipeline = await control.live_pipeline(session_of(event))
    return context("SessionStart", what_next(pipeline)) if pipeline else {}


async def user_prompt_submit(control: Control, event: dict[str, Any]) -> Answer:
    """Decide before the model is called what the prompt needs; start a pipeline where that was asked for."""
    session, prompt = session_of(event), str(event.get("prompt") or "")[:32768].replace("\0", "")
    if not prompt.strip():
        return {}
    decision = await _routed(control, session, prompt)
    words = [_decision_words(decision)] if decision else []
    wanted = "[pipeline:" in prompt.lower() or control.is_on(START_SWITCH)
    if wanted:
        words.append(await _started(control, session, prompt, decision))
    return context("UserPromptSubmit", "\n".join(word for word in words if word))


async def _routed(control: Control, session: str, prompt: str) -> decision_pb2.RoutingDecision | None:
    request = decision_pb2.ClassifyRequest(
        request_id=new_request_id(), message=decision_pb2.Message(text=prompt), session_id=session
    )
    try:
        return (await control.router.Classify(request, timeout=CALL_SECONDS)).decision
    except grpc.aio.AioRpcError as error:
        if error.code() is grpc.StatusCode.UNIMPLEMENTED:
            return None
        raise


def _decision_words(decision: decision_pb2.RoutingDecision) -> str:
    mode = decision_pb2.Mode.Name(decision.mode).removeprefix("MODE_")
    confidence = decision_pb2.Confidence.Name(decision.confidence).removeprefix("CONFIDENCE_")
    debate = " Debate the plan before anything is changed." if decision.debate == decision_pb2.DEBATE_PLANNING else ""
    return f"pointsman: this prompt is {mode} ({confidence}).{debate}"


async def _started(control: Control, session: str, prompt: str, decision: decision_pb2.RoutingDecision | None) -> str:
    live = await control.live_pipeline(session)
    if live:
        return what_next(live)
    answer_only = decision is not None and decision.mode == decision_pb2.MODE_ANSWER
    chosen = await control.pipelines.Classify(
        pb.ClassifyRequest(text=prompt, answer_only=answer_only), timeout=CALL_SECONDS
    )
    if chosen.template == "none":
        return ""
    digest = hashlib.sha256(prompt.encode()).hexdigest()[:8]
    request = pb.StartPipelineRequest(
        request_id=new_request_id(),
        pipeline_id=f"{session}/{digest}-{new_request_id()[:8]}",
        run_id=session,
        template=chosen.template,
        require_nonce=control.is_on(NONCE_SWITCH),
    )
    await control.pipelines.StartPipeline(request, timeout=CALL_SECONDS)
    started = await control.live_pipeline(session)
    return what_next(started) if started else ""


def what_next(pipeline: sp.Pipeline) -> str:
    """Which stages wait to be delegated, and to which agent; or that a person must decide."""
    name = f"pipeline {pipeline.summary.pipeline_id}"
    if pipeline.summary.state == sp.PIPELINE_STATE_ESCALATED:
        stuck = ", ".join(stage.node.stage for stage in pipeline.stages if stage.status == sp.STAGE_STATUS_ESCALATED)
        return f"pointsman: {name} waits for a person at {stuck}: restart, skip or cancel it."
    waiting = [
        item for item in pipeline.pending_delegations if not pipeline.pending_returns or _returns(pipeline, item)
    ]
    if not waiting:
        running = ", ".join(item.stage for item in pipeline.active_delegations)
        return f"pointsman: {name} runs {running}." if running else ""
    steps = "; ".join(f"delegate {item.stage} to the {agent_for(item.kind)} agent" for item in waiting)
    return f"pointsman: {name}: {steps}. Wait for each (run_in_background: false)."


def _returns(pipeline: sp.Pipeline, item: sp.Delegation) -> bool:
    return item.stage in pipeline.pending_returns


def agent_for(kind: sp.StageKind.ValueType) -> str:
    """The agent definition of a kind of stage."""
    return AGENT_PREFIX + sp.StageKind.Name(kind).removeprefix("STAGE_KIND_").lower()


async def subagent_start(control: Control, event: dict[str, Any]) -> Answer:
    """Give the waiting stage of the sub-agent's kind to it, with all that it should read."""
    pipeline = await control.live_pipeline(session_of(event))
    agent_id, agent_type = str(event.get("agent_id") or ""), str(event.get("agent_type") or "")
    if pipeline is None or not agent_id:
        return {}
    session = session_of(event)
    delegation = _own_delegation(pipeline, agent_id)
    if delegation is None:
        delegation = await _delegated(control, pipeline, agent_id, agent_type)
        if delegation is None:
            return {}
        context_path(config_directory(control.environment), session, delegation.stage).unlink(missing_ok=True)
    files = await materialise(control, session, pipeline.summary.pipeline_id, delegation)
    words = [delegation.directive, f"Node context: {node_context_with_paths(delegation.node_context_json, files)}"]
    if delegation.kind in QUALITY:
        report = context_path(config_directory(control.environment), session, delegation.stage)
        words.append(f"Write your full report to {report} first; your answer has one line and the marker.")
    return context("SubagentStart", "\n".join(words))


def _own_delegation(pipeline: sp.Pipeline, agent_id: str) -> sp.Delegation | None:
    return next((item for item in pipeline.active_delegations if item.agent_id == agent_id), None)


async def _delegated(control: Control, pipeline: sp.Pipeline, agent_id: str, agent_type: str) -> sp.Delegation | None:
    fitting = (item for item in pipeline.pending_delegations if agent_for(item.kind) == agent_type.rpartition(":")[2])
    waiting = next(fitting, None)
    if waiting is None:
        return None
    request = pb.DelegateStageRequest(
        request_id=new_request_id(),
        pipeline_id=pipeline.summary.pipeline_id,
        stage=waiting.stage,
        agent_id=agent_id,
    )
    return (await control.pipelines.DelegateStage(request, timeout=CALL_SECONDS)).delegation


async def subagent_stop(control: Control, event: dict[str, Any]) -> Answer:
    """Complete the sub-agent's stage with its transcript and its report."""
    session = session_of(event)
    pipeline = await control.live_pipeline(session)
    delegation = _own_delegation(pipeline, str(event.get("agent_id") or "")) if pipeline else None
    if pipeline is None or delegation is None:
        return {}
    folder = config_directory(control.environment)
    transcript = read_transcript(
        str(event.get("agent_transcript_path") or ""), str(event.get("last_assistant_message") or "")
    )
    request = pb.CompleteStageRequest(
        request_id=new_request_id(),
        pipeline_id=pipeline.summary.pipeline_id,
        delegation_id=delegation.delegation_id,
        agent_id=delegation.agent_id,
        transcript=transcript,
        report=read_report(context_path(folder, session, delegation.stage)),
    )
    answer = await control.pipelines.CompleteStage(request, timeout=CALL_SECONDS)
    if answer.route.verdict == rt.VERDICT_PASS:
        reflection_path(folder, session, delegation.stage).unlink(missing_ok=True)
    return {"systemMessage": _outcome_words(delegation.stage, answer)}


def _outcome_words(stage: str, answer: pb.CompleteStageResponse) -> str:
    verdict = rt.Verdict.Name(answer.route.verdict).removeprefix("VERDICT_")
    disposition = pb.Disposition.Name(answer.disposition).removeprefix("DISPOSITION_").lower()
    steps = "".join(f"; next {item.stage} ({agent_for(item.kind)})" for item in answer.next)
    degraded = ", unproven" if answer.route.degraded else ""
    return f"pointsman: {stage} {verdict}{degraded}, {disposition}{steps}"


async def post_tool_use(control: Control, event: dict[str, Any]) -> Answer:
    """After a sub-agent has returned, tell the main agent what comes next."""
    if event.get("tool_name") not in DELEGATING_TOOLS:
        return {}
    pipeline = await control.live_pipeline(session_of(event))
    return context("PostToolUse", what_next(pipeline)) if pipeline else {}


async def pre_tool_use(control: Control, event: dict[str, Any]) -> Answer:
    """The guard, off by default: nobody writes beside an active pipeline; sub-agents always may."""
    guarded = control.is_on(GUARD_SWITCH) and event.get("tool_name") in GUARDED_TOOLS
    if not guarded or event.get("agent_id"):
        return {}
    pipeline = await control.live_pipeline(session_of(event))
    if pipeline is None or pipeline.active_delegations:
        return {}
    reason = f"{what_next(pipeline)} Or end it: pointsman pipeline cancel {pipeline.summary.pipeline_id}"
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        }
    }


HANDLERS: Mapping[str, Callable[[Control, dict[str, Any]], Awaitable[Answer]]] = {
    "SessionStart": session_start,
    "UserPromptSubmit": user_prompt_submit,
    "SubagentStart": subagent_start,
    "SubagentStop": subagent_stop,
    "PostToolUse": post_tool_use,
    "PreToolUse": pre_tool_use,
}
