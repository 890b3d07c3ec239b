"""Writes a pipeline as a state file of version 4 and a barrier file; without the bodies of reports."""

import json
from typing import Any

from pointsman.services.pipeline.domain import reflection
from pointsman.services.pipeline.domain.dag import Graph, Node
from pointsman.services.pipeline.domain.enums import Severity
from pointsman.services.pipeline.domain.model import (
    ACTIVE,
    DEGRADED,
    PENDING,
    READY,
    SKIPPED_AFTER_FAIL,
    Pipeline,
    Return,
    Settings,
    Stage,
)
from pointsman.services.pipeline.formats.state_file_fields import OWN, STATUS_OF_MARK, VERSION, with_unknown


def write_state_file(pipeline_id: str, pipeline: Pipeline) -> tuple[str, str]:
    """The state file (version 4) and the barrier file of a pipeline."""
    head, graph = pipeline.head, pipeline.graph
    stages = {node.stage: pipeline.stages[node.stage] for node in graph.nodes}
    content = {
        "version": VERSION,
        "sessionId": pipeline_id,
        "classification": {"pipelineId": head.settings.template or None},
        "environment": head.settings.env,
        "dag": {node.stage: _node_entry(graph, node) for node in graph.nodes},
        "stages": {stage: _stage_entry(pipeline, stage) for stage in stages},
        "pipelineActive": pipeline.is_live(),
        "activeStages": list(pipeline.marked(ACTIVE)),
        "retries": {stage: known.retries for stage, known in stages.items() if known.retries},
        "retryHistory": {
            stage: _history_entry(known) for stage, known in stages.items() if known.history or known.retries
        },
        "crashes": {stage: known.crashes for stage, known in stages.items() if known.crashes},
        "pendingRetry": {"stages": _pending_retries(pipeline)} if head.returns else None,
        "meta": {
            "status": str(head.status),
            "createdAt": head.created_at.isoformat(),
            OWN: _settings_entry(head.settings),
        },
    }
    unknown = json.loads(head.settings.unknown) if head.settings.unknown else {}
    return _dump(with_unknown(content, unknown)), _dump(
        {group: _barrier_entry(pipeline, group) for group in graph.groups}
    )


def _settings_entry(settings: Settings) -> dict[str, Any]:
    return {
        "policy": str(settings.policy),
        "requireNonce": settings.require_nonce,
        "barrierTimeoutSeconds": settings.barrier_timeout_seconds,
    }


def _pending_retries(pipeline: Pipeline) -> list[dict[str, Any]]:
    returns = [pipeline.stages[stage].returned for stage in pipeline.head.returns]
    return [
        {"id": stage, "severity": str(pipeline.stages[stage].severity or Severity.MEDIUM), "round": returned.round}
        for returned in returns
        if returned
        for stage in returned.failed
    ]


def _node_entry(graph: Graph, node: Node) -> dict[str, Any]:
    members = graph.groups[node.barrier] if node.barrier else ()
    barrier = {
        "group": node.barrier,
        "total": len(members),
        "siblings": [member for member in members if member != node.stage],
        "next": list(node.next),
    }
    return {
        "kind": str(node.kind),
        "deps": list(node.deps),
        "next": list(node.next),
        "onFail": node.on_fail,
        "maxRetries": node.max_retries,
        "barrier": barrier if node.barrier else None,
    }


def _stage_entry(pipeline: Pipeline, stage: str) -> dict[str, Any]:
    details, mark = pipeline.stages[stage], pipeline.mark(stage)
    shown = mark not in {PENDING, READY}
    return {
        "status": STATUS_OF_MARK[mark],
        "agent": details.agent_id or None,
        "verdict": str(details.verdict) if details.verdict and shown else None,
        "severity": str(details.severity) if details.severity and shown else None,
        "contextFile": details.context_file or (f"context:{stage}" if details.report else None),
        "degraded": mark == DEGRADED,
        "forcedOn": mark == SKIPPED_AFTER_FAIL,
        "delegations": details.delegations,
        "nonce": details.nonce or None,
        "hint": details.hint or None,
        "reflection": reflection.body(details.reflection) or None,
        "returned": _returned_entry(details.returned) if details.returned else None,
    }


def _returned_entry(returned: Return) -> dict[str, Any]:
    return {"round": returned.round, "failed": list(returned.failed), "hint": returned.hint}


def _history_entry(stage: Stage) -> list[dict[str, Any]]:
    return [{"round": item.round, "severity": str(item.severity), "at": item.at.isoformat()} for item in stage.history]


def _barrier_entry(pipeline: Pipeline, group: str) -> dict[str, Any]:
    members = pipeline.graph.groups[group]
    arrived = [member for member in members if pipeline.finished(member)]
    waiting = pipeline.head.barriers.get(group)
    return {
        "total": len(members),
        "completed": arrived,
        "results": {member: {"verdict": str(pipeline.stages[member].verdict or "")} for member in arrived},
        "next": list(pipeline.graph.node(members[0]).next),
        "startTime": waiting.created_at.isoformat() if waiting else None,
        "timedOut": waiting is not None and waiting.due_at is None,
        "resolved": waiting is None and len(arrived) == len(members),
    }


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)
