"""What a delegated agent is told: handles, its place in the DAG, and one instruction; never the text of a report."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from pointsman.services.chassis.core.errors import Reason, Refusal, invalid_field, not_found
from pointsman.services.pipeline.domain.dag import MERGED
from pointsman.services.pipeline.domain.enums import KIND, StageKind
from pointsman.services.pipeline.domain.model import ACTIVE, Pipeline, Report, Return

MAX_DIRECTIVE_TOKENS = 200
MAX_NODE_CONTEXT_TOKENS = 500
MAX_ENV_CHARACTERS = 400
MAX_NAMES = 3
READ_FIRST = "Read the reflection before you change anything."
_EMPTY = {str: '""', tuple: "[]", dict: "{}", type(None): "null"}
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


class Delegation(msgspec.Struct, frozen=True):
    """A stage as it is, or may be, given to an agent."""

    stage: str
    kind: StageKind
    round: int
    directive: str
    node_context: str
    context_handles: tuple[str, ...] = ()
    reflection_stages: tuple[str, ...] = ()
    delegation_id: str = ""
    agent_id: str = ""
    nonce: str = ""
    delegated_at: datetime | None = None


def tokens(text: str) -> int:
    """How many tokens a text is counted as."""
    return -(-len(text) // 4)


def delegation_id(stage: str, number: int) -> str:
    """The id of a stage's n-th delegation."""
    return f"{stage}#{number}"


def split_delegation_id(text: str) -> tuple[str, int]:
    """The stage and the number in a delegation's id; an id that was never handed out has number 0."""
    stage, _, number = text.rpartition("#")
    return stage, int(number) if number.isascii() and number.isdigit() and len(number) < 10 else 0


def context_handle(stage: str) -> str:
    """The handle of a stage's report."""
    return f"context:{stage}"


def reflection_handle(stage: str) -> str:
    """The handle of a stage's reflection."""
    return f"reflection:{stage}"


def check_env(env: dict[str, str]) -> None:
    """Refuse an environment that would crowd out the rest of the node context."""
    if len(_json(env)) > MAX_ENV_CHARACTERS:
        raise invalid_field("env", f"must be at most {MAX_ENV_CHARACTERS} characters as JSON")


def delegation_of(pipeline: Pipeline, stage: str) -> Delegation:
    """The stage as an agent gets it, whether it is delegated already or waits to be."""
    known, active = pipeline.stages[stage], pipeline.mark(stage) == ACTIVE
    handles = context_handles(pipeline, stage)
    return Delegation(
        stage=stage,
        kind=pipeline.graph.node(stage).kind,
        round=known.delegations if active else known.delegations + 1,
        directive=directive(stage, known.returned, handles, known.nonce if active else ""),
        node_context=node_context(pipeline, stage, handles),
        context_handles=handles,
        reflection_stages=known.returned.failed if known.returned else (),
        delegation_id=delegation_id(stage, known.delegations) if active else "",
        agent_id=known.agent_id if active else "",
        nonce=known.nonce if active else "",
        delegated_at=known.delegated_at if active else None,
    )


def context_handles(pipeline: Pipeline, stage: str) -> tuple[str, ...]:
    """The reports that are addressed to a stage: of its predecessors, and of what failed after it."""
    handles = [context_handle(dep) for dep in pipeline.graph.node(stage).deps if pipeline.has_report(dep)]
    returned = pipeline.stages[stage].returned
    if returned and returned.reports:
        handles.append(context_handle(returned.failed[0] if len(returned.failed) == 1 else MERGED))
    return tuple(dict.fromkeys(handles))


def addressed_reports(pipeline: Pipeline, pipeline_id: str, reader: str, handle: str) -> tuple[Report, ...]:
    """The reports behind a handle, for the delegation that reads it."""
    stage, number = split_delegation_id(reader)
    is_current = stage in pipeline.graph and pipeline.mark(stage) == ACTIVE
    if not is_current or pipeline.stages[stage].delegations != number or handle not in context_handles(pipeline, stage):
        metadata = {"kind": KIND, "id": pipeline_id, "handle": handle}
        raise Refusal(Reason.NOT_ADDRESSED, f"{handle} is not addressed to this delegation", metadata=metadata)
    reports = _behind(pipeline, stage, handle.removeprefix("context:"))
    if not reports:
        raise not_found("context", handle)
    return reports


def _behind(pipeline: Pipeline, stage: str, name: str) -> tuple[Report, ...]:
    returned = pipeline.stages[stage].returned
    if returned and name in {MERGED, *returned.failed}:
        found = returned.reports
    else:
        found = (Report(name, pipeline.stages[name].report),)
    return tuple(report for report in found if report.sha256)


def node_context(pipeline: Pipeline, stage: str, handles: Sequence[str]) -> str:
    """The node context as JSON: the hint, then the return are shortened until it fits; the node never is."""
    returned = pipeline.stages[stage].returned
    hint = returned.hint if returned else ""
    retry = _retry_context(returned) if returned else None
    before = _node_and_files(pipeline, stage, handles)
    text = _joined(before, retry, hint)
    if _fits(text) or returned is None:
        return text
    room = len(hint) - (len(text) - (MAX_NODE_CONTEXT_TOKENS - 1) * 4)
    text = _joined(before, retry, hint[: max(0, room)])
    if _fits(text):
        return text
    return _joined(before, {"round": returned.round, "failedStage": returned.failed[0]}, "")


def _node_and_files(pipeline: Pipeline, stage: str, handles: Sequence[str]) -> str:
    texts = pipeline.graph.texts
    if stage not in texts:
        texts[stage] = _json(_node(pipeline, stage))
    return f'{{"node":{texts[stage]},"context_files":{_json(handles)},"env":{_json(pipeline.head.settings.env)}'


def _joined(before: str, retry: dict[str, Any] | None, hint: str) -> str:
    return f'{before},"retryContext":{_json(retry)},"hint":{_json(hint)}}}'


def _fits(text: str) -> bool:
    return tokens(text) < MAX_NODE_CONTEXT_TOKENS


def _node(pipeline: Pipeline, stage: str) -> dict[str, Any]:
    node = pipeline.graph.node(stage)
    members = pipeline.graph.groups[node.barrier] if node.barrier else ()
    siblings = [member for member in members if member != stage]
    barrier = {"group": node.barrier, "total": len(members), "siblings": siblings} if node.barrier else None
    return {
        "stage": stage,
        "prev": list(node.deps),
        "next": list(node.next),
        "onFail": node.on_fail,
        "barrier": barrier,
    }


def _retry_context(returned: Return) -> dict[str, Any]:
    return {
        "round": returned.round,
        "failedStage": ",".join(returned.failed[:MAX_NAMES]),
        "reflectionFile": ",".join(reflection_handle(stage) for stage in returned.failed[:MAX_NAMES]),
        "hint": READ_FIRST,
    }


def directive(stage: str, returned: Return | None, contexts: Sequence[str], nonce: str) -> str:
    """One instruction: what to do, what to read first, and how to end."""
    aim = f"{_names(returned.failed)} FAIL -> {stage}, round {returned.round}." if returned else f"Run stage {stage}."
    reflections = [reflection_handle(failed) for failed in returned.failed] if returned else []
    handles = [*reflections, *reversed(contexts)]
    nonce_field = f',"nonce":"{nonce}"' if nonce else ""
    end = (
        'End with one line: <!-- PIPELINE_ROUTE: {"verdict":"PASS or FAIL","route":"NEXT or DEV","severity":"with FAIL",'
        f'"hint":"one line"{nonce_field}}} -->'
    )
    full = " ".join([aim, *([f"Read first: {_names(handles)}."] if handles else []), end])
    return full if tokens(full) < MAX_DIRECTIVE_TOKENS else f"{aim} {end}"


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + more


def _json(value: object) -> str:
    return _ENCODER.encode(value) if value else _EMPTY[type(value)]
