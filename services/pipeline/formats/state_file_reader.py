"""Reads state files of the older engine: version 3 is migrated to 4."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from msgspec.structs import replace

from pointsman._shared.strict_json import JsonError, decode
from pointsman.services.pipeline.domain import reflection
from pointsman.services.pipeline.domain.dag import (
    DEFAULT_MAX_RETRIES,
    Graph,
    Node,
    build_graph,
    invalid_dag,
    kind_of,
)
from pointsman.services.pipeline.domain.enums import LIVE, PipelineStatus, Policy, Severity, StageKind, Verdict
from pointsman.services.pipeline.domain.events import PipelineImported
from pointsman.services.pipeline.domain.model import (
    ACTIVE,
    DEGRADED,
    ESCALATED,
    FAILED,
    MAX_BARRIER_TIMEOUT_SECONDS,
    PENDING,
    READY,
    SKIPPED,
    SKIPPED_AFTER_FAIL,
    UNFINISHED,
    UNPROVEN,
    OpenBarrier,
    Return,
    Settings,
    Stage,
)
from pointsman.services.pipeline.domain.retries import MAX_HISTORY, RetryRound
from pointsman.services.pipeline.domain.route import MAX_HINT_CHARACTERS
from pointsman.services.pipeline.domain.templates import TEMPLATES, template_graph
from pointsman.services.pipeline.formats.state_file_fields import (
    MARK_OF_STATUS,
    OWN,
    VERSION,
    count,
    entry,
    field,
    mapping,
    moment,
    names,
    refused,
    text,
    unknown_fields,
    whole_file,
)

MAX_RETRIES = 20
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.:-]{0,63}")
_GROUP = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_SESSION = re.compile(r"[A-Za-z0-9_.:/@-]{1,200}")


@dataclass(frozen=True, slots=True)
class StateFile:
    """A state file as read."""

    session_id: str
    """Empty if the file has none that is valid as a pipeline id."""
    migrated: bool
    barriers_rebuilt: bool
    imported: PipelineImported


def read_state_file(state_json: str, barrier_json: str, run_id: str, now: datetime) -> StateFile:
    """Reads a state file and its barrier file; an unreadable barrier file is rebuilt from the stages."""
    content = whole_file(state_json)
    migrated = content.get("version") == 3
    v4 = ensure_v4(content)
    graph = _graph(v4)
    settings = _settings(v4, run_id, graph)
    stages = {node.stage: _stage(v4, node.stage) for node in graph.nodes}
    marks = {node.stage: _mark(v4, node.stage) for node in graph.nodes}
    returns = _send_back(graph, _pending_retries(v4), stages, marks)
    _put_ready(graph, marks, returns)
    status = _status(v4, marks)
    saved = _barrier_file(barrier_json)
    barriers = _open_barriers(graph, marks, saved or {}, settings, now) if status in LIVE else {}
    imported = PipelineImported(
        settings=settings,
        nodes=graph.nodes,
        marks="".join(marks.values()),
        reported="".join("1" if stages[node.stage].context_file else "0" for node in graph.nodes),
        stages=stages,
        status=status,
        returns=returns if status in LIVE else (),
        barriers=barriers,
    )
    session = text(v4.get("sessionId"))
    return StateFile(
        session if _SESSION.fullmatch(session) else "", migrated, saved is None and bool(barriers), imported
    )


def ensure_v4(content: Mapping[str, Any]) -> dict[str, Any]:
    """Version 4 unchanged; version 3 migrated; any other refused."""
    version = content.get("version")
    if version == VERSION:
        return {"pipelineActive": False, **content}
    if version != 3:
        raise refused("must be a state file of version 3 or 4")
    stages = mapping(content, "stages")
    meta = {key: value for key, value in mapping(content, "meta").items() if key != "cancelled"}
    remaining = {key: value for key, value in content.items() if key != "enforced"}
    return {
        **remaining,
        "version": VERSION,
        "pipelineActive": _phase_of_v3(content) not in {"IDLE", "COMPLETE"},
        "activeStages": [stage for stage, known in stages.items() if field(known, "status") == "active"],
        "retryHistory": {stage: [] for stage in mapping(content, "retries")},
        "crashes": {},
        "meta": meta,
    }


def _phase_of_v3(content: Mapping[str, Any]) -> str:
    stages = mapping(content, "stages")
    if mapping(content, "meta").get("cancelled") or not mapping(content, "dag"):
        return "IDLE"
    if _pending_retries(content):
        return "RETRYING"
    if not content.get("enforced"):
        return "IDLE"
    statuses = {text(field(known, "status")) for known in stages.values()}
    return "COMPLETE" if stages and statuses <= {"completed", "skipped"} else "DELEGATING"


def _graph(v4: Mapping[str, Any]) -> Graph:
    """The DAG of the file; nodes of version 3 have only deps, so the rest comes from their template."""
    nodes = {_named(stage, stage): entry(v4, "dag", stage) for stage in mapping(v4, "dag")}
    is_plain = all(node.get("next") is None and node.get("onFail") is None for node in nodes.values())
    template = _template(v4)
    if template and is_plain and set(template_graph(template).index) == set(nodes):
        return template_graph(template)
    return build_graph(_node(stage, node) for stage, node in (_with_dev(nodes) if is_plain else nodes).items())


def _with_dev(nodes: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Adds to nodes of version 3 what version 4 has: DEV as their return target."""
    plain = build_graph(_node(stage, {**node, "barrier": None}) for stage, node in nodes.items())
    dev = next((node.stage for node in plain.nodes if node.kind is StageKind.DEV), None)
    return {
        stage: {**node, "onFail": dev if dev and stage in plain.after(dev) else None} for stage, node in nodes.items()
    }


def _node(stage: str, node: Mapping[str, Any]) -> Node:
    retries, kind = count(node.get("maxRetries")), text(node.get("kind"))
    group, target = text(field(node.get("barrier"), "group")), text(node.get("onFail"))
    if group and not _GROUP.fullmatch(group):
        raise invalid_dag(stage, "its barrier's group is no name")
    return Node(
        stage=stage,
        kind=StageKind(kind) if kind in StageKind.__members__ else kind_of(stage),
        deps=tuple(_named(stage, name) for name in names(node.get("deps"))),
        next=tuple(_named(stage, name) for name in names(node.get("next"))),
        on_fail=_named(stage, target) if target else None,
        max_retries=DEFAULT_MAX_RETRIES if retries is None else min(retries, MAX_RETRIES),
        barrier=group or None,
    )


def _named(stage: str, name: str) -> str:
    if not _NAME.fullmatch(name):
        raise invalid_dag(
            stage[:64], f"'{name[:64]}' is no name of a stage: a letter, then at most 63 of A-Za-z0-9_.:-"
        )
    return name


def _template(v4: Mapping[str, Any]) -> str:
    named = text(mapping(v4, "classification").get("pipelineId"))
    return named if named in TEMPLATES else ""


def _settings(v4: Mapping[str, Any], run_id: str, graph: Graph) -> Settings:
    environment = mapping(v4, "environment")
    env = {
        key: value
        for key, value in environment.items()
        if len(key) <= 64 and isinstance(value, str) and len(value) <= 200
    }
    fits = len(json.dumps(env, ensure_ascii=False)) <= 400
    template = _template(v4)
    is_known = template or mapping(v4, "classification").get("pipelineId") is None
    known_fields = {"classification": ("pipelineId",) if is_known else (), "environment": env if fits else ()}
    own = entry(v4, "meta", OWN)
    return Settings(
        run_id=run_id,
        template=template,
        policy=_policy(own.get("policy")),
        require_nonce=_switch(own.get("requireNonce")),
        barrier_timeout_seconds=_timeout_seconds(own.get("barrierTimeoutSeconds")),
        env=env if fits else {},
        unknown=unknown_fields(v4, graph.index, known_fields),
    )


def _policy(value: object) -> Policy:
    name = text(value)
    if value is not None and name not in Policy.__members__:
        raise refused(f"'meta.{OWN}.policy' must be one of {', '.join(Policy)}")
    return Policy(name) if name else Policy.SEED


def _switch(value: object) -> bool:
    if value is not None and not isinstance(value, bool):
        raise refused(f"'meta.{OWN}.requireNonce' must be true or false")
    return bool(value)


def _timeout_seconds(value: object) -> float:
    if value is None:
        return Settings().barrier_timeout_seconds
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MAX_BARRIER_TIMEOUT_SECONDS:
        raise refused(f"'meta.{OWN}.barrierTimeoutSeconds' must be a number up to {MAX_BARRIER_TIMEOUT_SECONDS:.0f}")
    return float(value)


def _stage(v4: Mapping[str, Any], stage: str) -> Stage:
    known = entry(v4, "stages", stage)
    verdict, severity = _verdict(known.get("verdict"), known.get("severity"))
    status = known.get("status")
    delegations = count(known.get("delegations"))
    if delegations is None or (delegations == 0 and status == "active"):
        delegations = 0 if status in {None, "pending"} else 1
    return Stage(
        delegations=delegations,
        agent_id=text(known.get("agent"), 128) or ("imported" if delegations else ""),
        nonce=text(known.get("nonce"), 128),
        verdict=verdict,
        severity=severity,
        hint=text(known.get("hint"), MAX_HINT_CHARACTERS),
        context_file=text(known.get("contextFile")),
        retries=count(mapping(v4, "retries").get(stage)) or 0,
        crashes=count(mapping(v4, "crashes").get(stage)) or 0,
        history=_history(mapping(v4, "retryHistory").get(stage)),
        reflection=reflection.rounds_of(text(known.get("reflection"), reflection.MAX_TOTAL_CHARACTERS)),
        returned=_returned(mapping(v4, "dag"), known.get("returned")),
    )


def _returned(dag: Mapping[str, Any], value: object) -> Return | None:
    failed = tuple(name for name in names(field(value, "failed")) if name in dag)
    hint = text(field(value, "hint"), MAX_HINT_CHARACTERS)
    return Return(count(field(value, "round")) or 1, failed, hint) if failed else None


def _verdict(verdict: object, severity: object) -> tuple[Verdict | None, Severity | None]:
    """The verdict of a stage: `FAIL`, `FAIL:HIGH`, or an object with verdict and severity."""
    if isinstance(verdict, dict):
        return _verdict(text(verdict.get("verdict")), verdict.get("severity"))
    name, _, detail = text(verdict).partition(":")
    named = detail or text(severity)
    known = Verdict(name) if name in Verdict.__members__ else None
    severity_or_default = Severity(named) if named in Severity.__members__ else Severity.MEDIUM
    return known, severity_or_default if known is Verdict.FAIL else None


def _history(rounds: object) -> tuple[RetryRound, ...]:
    found = []
    for number, item in enumerate(rounds if isinstance(rounds, list) else (), 1):
        severity, at = text(field(item, "severity")), moment(field(item, "at"))
        if severity in Severity.__members__ and at is not None:
            found.append(RetryRound(count(field(item, "round")) or number, Severity(severity), at))
    return tuple(found[-MAX_HISTORY:])


def _mark(v4: Mapping[str, Any], stage: str) -> str:
    known = entry(v4, "stages", stage)
    status = text(known.get("status")) or "pending"
    if status not in MARK_OF_STATUS:
        raise refused(f"'stages.{stage}.status' is the unknown word '{status[:32]}'")
    if status == "completed" and known.get("degraded") is True:
        return DEGRADED
    is_forced = MARK_OF_STATUS[status] == SKIPPED and known.get("forcedOn") is True
    return SKIPPED_AFTER_FAIL if is_forced else MARK_OF_STATUS[status]


class _PendingRetry(NamedTuple):
    """A failed stage whose retry is pending in a file."""

    stage: str
    severity: Severity | None
    round: int | None


def _pending_retries(content: Mapping[str, Any]) -> tuple[_PendingRetry, ...]:
    """The entries of `pendingRetry`: `{stage}`, `{stages: [{id, severity, round}]}` or `{stages: [id]}`."""
    pending = content.get("pendingRetry")
    entries = field(pending, "stages")
    items = entries if isinstance(entries, list) else [pending]
    found = {_retried_stage(item): item for item in items}
    dag = mapping(content, "dag")
    return tuple(_pending_retry(stage, item) for stage, item in found.items() if stage in dag)


def _retried_stage(item: object) -> str:
    return text(item) or text(field(item, "id")) or text(field(item, "stage"))


def _pending_retry(stage: str, item: object) -> _PendingRetry:
    severity = text(field(item, "severity"))
    known = Severity(severity) if severity in Severity.__members__ else None
    return _PendingRetry(stage, known, count(field(item, "round")))


def _send_back(
    graph: Graph, pending: Sequence[_PendingRetry], stages: dict[str, Stage], marks: dict[str, str]
) -> tuple[str, ...]:
    """Returns to the targets of the pending retries: records what failed, and resets the stages after them."""
    named = {item.stage: item for item in pending}
    targets = {graph.return_target(stage) for stage in named}
    back: dict[str, list[str]] = {node.stage: [] for node in graph.nodes if node.stage in targets}
    for node in graph.nodes:
        target = graph.return_target(node.stage)
        if target in back and (node.stage in named or marks[node.stage] == FAILED):
            back[target].append(node.stage)
    for target, failed in back.items():
        for stage in failed:
            stages[stage] = _failed(stages[stage], named.get(stage))
        if stages[target].returned is None:
            rounds = [_round(stages[stage], named.get(stage)) for stage in failed]
            stages[target] = replace(stages[target], returned=Return(max(rounds), tuple(failed)))
        marks.update(dict.fromkeys((target, *graph.after(target)), PENDING))
    return tuple(back)


def _failed(stage: Stage, item: _PendingRetry | None) -> Stage:
    """The stage as failed."""
    severity = (item and item.severity) or stage.severity or Severity.MEDIUM
    return replace(stage, verdict=Verdict.FAIL, severity=severity)


def _round(stage: Stage, item: _PendingRetry | None) -> int:
    return (item and item.round) or stage.retries or 1


def _put_ready(graph: Graph, marks: dict[str, str], returns: tuple[str, ...]) -> None:
    for node in graph.nodes:
        if marks[node.stage] == PENDING and all(marks[dep] not in UNFINISHED for dep in node.deps):
            marks[node.stage] = READY
    for stage in returns:
        marks[stage] = READY


def _status(v4: Mapping[str, Any], marks: Mapping[str, str]) -> PipelineStatus:
    values, status = set(marks.values()), text(mapping(v4, "meta").get("status"))
    if not v4["pipelineActive"] and status in {PipelineStatus.ABORTED, PipelineStatus.CANCELLED}:
        return PipelineStatus(status)
    if UNFINISHED.isdisjoint(values):
        return PipelineStatus.COMPLETED if UNPROVEN.isdisjoint(values) else PipelineStatus.COMPLETED_WITH_FAILURES
    if not v4["pipelineActive"]:
        return PipelineStatus.CANCELLED
    return PipelineStatus.ESCALATED if ESCALATED in values else PipelineStatus.ACTIVE


def _barrier_file(barrier_json: str) -> dict[str, Any] | None:
    try:
        value = decode(barrier_json)
    except JsonError:
        return None
    groups = value.get("groups", value) if isinstance(value, dict) else None
    return groups if isinstance(groups, dict) else None


def _open_barriers(
    graph: Graph, marks: Mapping[str, str], saved: Mapping[str, Any], settings: Settings, now: datetime
) -> dict[str, OpenBarrier]:
    """The barriers with a member that is ready, active or escalated; since the time in the file, else since now."""
    found: dict[str, OpenBarrier] = {}
    for group, members in graph.groups.items():
        waits_for = {marks[member] for member in members} & {READY, ACTIVE, ESCALATED}
        if waits_for:
            known = saved.get(group)
            started = min(moment(field(known, "startTime")) or now, now)
            is_over = waits_for == {ESCALATED} and field(known, "timedOut") is True
            due_at = max(now, started + timedelta(seconds=settings.barrier_timeout_seconds))
            found[group] = OpenBarrier(len(found) + 1, started, None if is_over else due_at)
    return found
