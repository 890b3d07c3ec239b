"""State files of the older engine: version 3 is migrated to 4, version 4 is taken as it is and written."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from pointsman.services.chassis.refusals import invalid_field
from pointsman.services.pipeline.domain import strict
from pointsman.services.pipeline.domain.dag import DEFAULT_MAX_RETRIES, Graph, Node, build_graph, kind_of
from pointsman.services.pipeline.domain.events import PipelineImported
from pointsman.services.pipeline.domain.retries import RetryRound
from pointsman.services.pipeline.domain.state import (
    ACTIVE,
    DEGRADED,
    ESCALATED,
    FAILED,
    PASSED,
    PENDING,
    READY,
    SKIPPED,
    SKIPPED_AFTER_FAIL,
    TIMED_OUT,
    UNFINISHED,
    UNPROVEN,
    OpenBarrier,
    Pipeline,
    Return,
    Settings,
    Stage,
)
from pointsman.services.pipeline.domain.templates import TEMPLATES, template_graph
from pointsman.services.pipeline.domain.words import PipelineStatus, Severity, StageKind, Verdict

VERSION = 4
FINISHED_WORDS = frozenset({"completed", "skipped", "failed", "timed_out"})
MARK_OF_WORD = {
    "pending": PENDING, "active": ACTIVE, "completed": PASSED, "failed": FAILED, "skipped": SKIPPED,
    "timed_out": TIMED_OUT,
}  # fmt: skip
WORD_OF_MARK = {
    PENDING: "pending", READY: "pending", ACTIVE: "active", PASSED: "completed", DEGRADED: "completed",
    FAILED: "failed", SKIPPED: "skipped", SKIPPED_AFTER_FAIL: "skipped", TIMED_OUT: "timed_out", ESCALATED: "failed",
}  # fmt: skip
MAX_TEXT = 1024


@dataclass(frozen=True, slots=True)
class StateFile:
    """What was read from a state file."""

    session_id: str
    migrated: bool
    barriers_rebuilt: bool
    imported: PipelineImported


def read_state_file(state_json: str, barrier_json: str, run_id: str, now: datetime) -> StateFile:
    """A pipeline from a state file and its barrier file; an unreadable barrier file is rebuilt from the stages."""
    content = _object(state_json)
    migrated = content.get("version") == 3
    v4 = ensure_v4(content)
    graph = _graph(v4)
    stages = {node.stage: _stage(v4, node.stage) for node in graph.nodes}
    marks = {node.stage: _mark(v4, node.stage) for node in graph.nodes}
    returns = _pending_returns(v4, graph, marks)
    _put_ready(graph, marks, returns)
    for target in returns:
        failed = _failed_after(v4, graph, target)
        stages[target] = replace(stages[target], returned=Return(round=1, failed=failed or (target,)))
    saved = _barrier_file(barrier_json)
    barriers = _open_barriers(graph, marks, saved, now)
    imported = PipelineImported(
        settings=_settings(v4, run_id),
        nodes=graph.nodes,
        marks="".join(marks.values()),
        reported="".join("1" if stages[node.stage].context_file else "0" for node in graph.nodes),
        stages=stages,
        status=_status(v4, marks),
        returns=returns,
        barriers=barriers if v4["pipelineActive"] else {},
    )
    return StateFile(_text(v4.get("sessionId")), migrated, saved is None and bool(barriers), imported)


def ensure_v4(content: Mapping[str, Any]) -> dict[str, Any]:
    """Version 4 as it is; version 3 with what it lacks added and what is gone removed; anything else refused."""
    version = content.get("version")
    if version == VERSION:
        return {"pipelineActive": False, **content}
    if version != 3:
        raise invalid_field("state_json", "must be a state file of version 3 or 4")
    stages = _mapping(content, "stages")
    meta = {key: value for key, value in _mapping(content, "meta").items() if key != "cancelled"}
    kept = {key: value for key, value in content.items() if key != "enforced"}
    return {
        **kept,
        "version": VERSION,
        "pipelineActive": _phase_of_v3(content) not in {"IDLE", "COMPLETE"},
        "activeStages": [stage for stage, known in stages.items() if _field(known, "status") == "active"],
        "retryHistory": {stage: [] for stage in _mapping(content, "retries")},
        "crashes": {},
        "meta": meta,
    }


def _phase_of_v3(content: Mapping[str, Any]) -> str:
    stages = _mapping(content, "stages")
    if not content.get("enforced") or _mapping(content, "meta").get("cancelled") or not _mapping(content, "dag"):
        return "IDLE"
    words = {_field(known, "status") for known in stages.values()}
    return "COMPLETE" if stages and words <= {"completed", "skipped"} else "DELEGATING"


def _object(text: str) -> dict[str, Any]:
    try:
        value = strict.decode(text)
    except strict.RejectedError as error:
        raise invalid_field("state_json", str(error)) from error
    if not isinstance(value, dict):
        raise invalid_field("state_json", "must be a JSON object")
    return value


def _mapping(content: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = content.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise invalid_field("state_json", f"'{key}' must be an object")
    return value


def _field(value: object, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None


def _text(value: object) -> str:
    return value[:MAX_TEXT] if isinstance(value, str) else ""


def _count(value: object) -> int:
    return value if isinstance(value, int) and 0 <= value < 1000 else 0


def _names(value: object) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _graph(v4: Mapping[str, Any]) -> Graph:
    nodes = _mapping(v4, "dag")
    template = _template(v4)
    if template and set(template_graph(template).index) == set(nodes):
        return template_graph(template)
    return build_graph(_node(stage, node) for stage, node in _with_dev(nodes).items())


def _with_dev(nodes: Mapping[str, Any]) -> dict[str, Any]:
    """The plain nodes of version 3 get what version 4 would have given them: a way back to DEV."""
    if any(_field(node, "next") is not None or _field(node, "onFail") is not None for node in nodes.values()):
        return dict(nodes)
    plain = build_graph(Node(stage, kind_of(stage), deps=_names(_field(node, "deps"))) for stage, node in nodes.items())
    dev = next((node.stage for node in plain.nodes if node.kind is StageKind.DEV), None)
    return {
        stage: {**node, "onFail": dev if dev and stage in plain.after(dev) else None} for stage, node in nodes.items()
    }


def _node(stage: str, node: object) -> Node:
    retries = _field(node, "maxRetries")
    return Node(
        stage=stage[:64],
        kind=kind_of(stage),
        deps=_names(_field(node, "deps")),
        next=_names(_field(node, "next")),
        on_fail=_text(_field(node, "onFail")) or None,
        max_retries=min(_count(retries), 20) if isinstance(retries, int) else DEFAULT_MAX_RETRIES,
        barrier=_text(_field(_field(node, "barrier"), "group"))[:64] or None,
    )


def _template(v4: Mapping[str, Any]) -> str:
    named = _text(_mapping(v4, "classification").get("pipelineId"))
    return named if named in TEMPLATES else ""


def _settings(v4: Mapping[str, Any], run_id: str) -> Settings:
    env = {key[:64]: value[:200] for key, value in _mapping(v4, "environment").items() if isinstance(value, str)}
    fits = len(json.dumps(env, ensure_ascii=False)) <= 400
    return Settings(run_id=run_id, template=_template(v4), env=env if fits else {})


def _stage(v4: Mapping[str, Any], stage: str) -> Stage:
    known = _mapping(v4, "stages").get(stage)
    verdict, severity = _verdict(_field(known, "verdict"), _field(known, "severity"))
    delegated = _field(known, "status") not in {None, "pending"}
    return Stage(
        delegations=1 if delegated else 0,
        agent_id=_text(_field(known, "agent"))[:128] or ("imported" if delegated else ""),
        verdict=verdict,
        severity=severity,
        context_file=_text(_field(known, "contextFile")),
        retries=_count(_mapping(v4, "retries").get(stage)),
        crashes=_count(_mapping(v4, "crashes").get(stage)),
        history=_history(_mapping(v4, "retryHistory").get(stage)),
    )


def _verdict(verdict: object, severity: object) -> tuple[Verdict | None, Severity | None]:
    """The verdict of a stage: a word, `FAIL:HIGH`, or an object with both."""
    if isinstance(verdict, dict):
        return _verdict(verdict.get("verdict"), verdict.get("severity"))
    word, _, detail = _text(verdict).partition(":")
    named = detail or _text(severity)
    known = Verdict(word) if word in Verdict.__members__ else None
    how_bad = Severity(named) if named in Severity.__members__ else Severity.MEDIUM
    return known, how_bad if known is Verdict.FAIL else None


def _history(rounds: object) -> tuple[RetryRound, ...]:
    found = []
    for number, item in enumerate(rounds if isinstance(rounds, list) else (), 1):
        severity, at = _text(_field(item, "severity")), _moment(_field(item, "at"))
        if severity in Severity.__members__ and at is not None:
            found.append(RetryRound(number, Severity(severity), at))
    return tuple(found[-25:])


def _moment(value: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(_text(value))
    except ValueError:
        return None
    return moment if moment.tzinfo else None


def _mark(v4: Mapping[str, Any], stage: str) -> str:
    known = _mapping(v4, "stages").get(stage)
    word = _text(_field(known, "status")) or "pending"
    if word not in MARK_OF_WORD:
        raise invalid_field("state_json", f"stage '{stage}' has the unknown status '{word[:32]}'")
    return DEGRADED if word == "completed" and _field(known, "degraded") is True else MARK_OF_WORD[word]


def _failed_after(v4: Mapping[str, Any], graph: Graph, target: str) -> tuple[str, ...]:
    stages = _mapping(v4, "stages")
    return tuple(
        node.stage
        for node in graph.nodes
        if node.stage in graph.after(target) and _field(stages.get(node.stage), "status") == "failed"
    )


def _pending_returns(v4: Mapping[str, Any], graph: Graph, marks: dict[str, str]) -> tuple[str, ...]:
    """Where a pending retry goes back to; what comes after it is reset."""
    pending = v4.get("pendingRetry")
    entries = _field(pending, "stages")
    items = entries if isinstance(entries, list) else [pending]
    named = {_text(_field(item, "stage")) or _text(item) for item in items}
    targets = {graph.return_target(stage) for stage in named if stage in graph}
    returns = tuple(node.stage for node in graph.nodes if node.stage in targets)
    for target in returns:
        for stage in (target, *graph.after(target)):
            marks[stage] = PENDING
    return returns


def _put_ready(graph: Graph, marks: dict[str, str], returns: tuple[str, ...]) -> None:
    for node in graph.nodes:
        if marks[node.stage] == PENDING and all(marks[dep] not in UNFINISHED for dep in node.deps):
            marks[node.stage] = READY
    for stage in returns:
        marks[stage] = READY


def _status(v4: Mapping[str, Any], marks: Mapping[str, str]) -> PipelineStatus:
    values = set(marks.values())
    if UNFINISHED.isdisjoint(values):
        return PipelineStatus.COMPLETED if UNPROVEN.isdisjoint(values) else PipelineStatus.COMPLETED_WITH_FAILURES
    return PipelineStatus.ACTIVE if v4["pipelineActive"] else PipelineStatus.CANCELLED


def _barrier_file(text: str) -> dict[str, Any] | None:
    try:
        value = strict.decode(text)
        groups = value.get("groups", value) if isinstance(value, dict) else None
    except strict.RejectedError:
        return None
    return groups if isinstance(groups, dict) else None


def _open_barriers(
    graph: Graph, marks: Mapping[str, str], saved: Mapping[str, Any] | None, now: datetime
) -> dict[str, OpenBarrier]:
    """A barrier waits when a member may run or runs; since when, the file says, else since now."""
    found: dict[str, OpenBarrier] = {}
    for group, members in graph.groups.items():
        if any(marks[member] in {READY, ACTIVE} for member in members):
            started = _moment(_field((saved or {}).get(group), "startTime")) or now
            due_at = max(now, started + timedelta(seconds=Settings().barrier_timeout_seconds))
            found[group] = OpenBarrier(len(found) + 1, min(started, now), due_at)
    return found


def write_state_file(pipeline_id: str, pipeline: Pipeline) -> tuple[str, str]:
    """The state file (version 4) and the barrier file of a pipeline."""
    head, graph = pipeline.head, pipeline.graph
    stages = {node.stage: pipeline.stages[node.stage] for node in graph.nodes}
    content = {
        "version": VERSION,
        "sessionId": pipeline_id,
        "classification": {"pipelineId": head.settings.template or None},
        "environment": head.settings.env,
        "dag": {node.stage: _node_out(graph, node) for node in graph.nodes},
        "stages": {stage: _stage_out(pipeline, stage) for stage in stages},
        "pipelineActive": pipeline.is_live(),
        "activeStages": list(pipeline.marked(ACTIVE)),
        "retries": {stage: known.retries for stage, known in stages.items() if known.retries},
        "retryHistory": {stage: _history_out(known) for stage, known in stages.items() if known.history},
        "crashes": {stage: known.crashes for stage, known in stages.items() if known.crashes},
        "pendingRetry": {"stages": [{"stage": stage} for stage in _failed_before(pipeline)]} if head.returns else None,
        "meta": {"status": str(head.status), "createdAt": head.created_at.isoformat()},
    }
    return _dump(content), _dump({group: _barrier_out(pipeline, group) for group in graph.groups})


def _failed_before(pipeline: Pipeline) -> list[str]:
    returns = [pipeline.stages[stage].returned for stage in pipeline.head.returns]
    return [stage for returned in returns if returned for stage in returned.failed]


def _node_out(graph: Graph, node: Node) -> dict[str, Any]:
    members = graph.groups[node.barrier] if node.barrier else ()
    barrier = {
        "group": node.barrier,
        "total": len(members),
        "siblings": [member for member in members if member != node.stage],
        "next": list(node.next),
    }
    return {
        "deps": list(node.deps),
        "next": list(node.next),
        "onFail": node.on_fail,
        "maxRetries": node.max_retries,
        "barrier": barrier if node.barrier else None,
    }


def _stage_out(pipeline: Pipeline, stage: str) -> dict[str, Any]:
    known, mark = pipeline.stages[stage], pipeline.mark(stage)
    shown = mark not in {PENDING, READY}
    return {
        "status": WORD_OF_MARK[mark],
        "agent": known.agent_id or None,
        "verdict": str(known.verdict) if known.verdict and shown else None,
        "severity": str(known.severity) if known.severity and shown else None,
        "contextFile": known.context_file or (f"context:{stage}" if known.report else None),
        "degraded": mark == DEGRADED,
    }


def _history_out(stage: Stage) -> list[dict[str, Any]]:
    return [{"round": item.round, "severity": str(item.severity), "at": item.at.isoformat()} for item in stage.history]


def _barrier_out(pipeline: Pipeline, group: str) -> dict[str, Any]:
    members = pipeline.graph.groups[group]
    arrived = [member for member in members if pipeline.finished(member)]
    waiting = pipeline.head.barriers.get(group)
    return {
        "total": len(members),
        "completed": arrived,
        "results": {member: {"verdict": str(pipeline.stages[member].verdict or "")} for member in arrived},
        "next": list(pipeline.graph.node(members[0]).next),
        "startTime": waiting.created_at.isoformat() if waiting else None,
        "resolved": waiting is None and len(arrived) == len(members),
    }


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)
