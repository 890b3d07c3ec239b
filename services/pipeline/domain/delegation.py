"""Delegations as agents get them: a directive, the node context, handles of reports; never the text of a report."""

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
    """A stage that is delegated to an agent, or ready to be."""

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
    """The estimated tokens of a text: a quarter of its characters, rounded up."""
    return -(-len(text) // 4)


def delegation_id(stage: str, number: int) -> str:
    """The id of a stage's n-th delegation."""
    return f"{stage}#{number}"


def split_delegation_id(text: str) -> tuple[str, int]:
    """The stage and number of a delegation id; number 0 for text that is no delegation id."""
    stage, _, number = text.rpartition("#")
    return stage, int(number) if number.isascii() and number.isdigit() and len(number) < 10 else 0


def context_handle(stage: str) -> str:
    """The handle of a stage's report."""
    return f"context:{stage}"


def reflection_handle(stage: str) -> str:
    """The handle of a stage's reflection."""
    return f"reflection:{stage}"


def check_env(env: dict[str, str]) -> None:
    """Refuses an environment that leaves too little space for the rest of the node context."""
    if len(_json(env)) > MAX_ENV_CHARACTERS:
        raise invalid_field("env", f"must be at most {MAX_ENV_CHARACTERS} characters as JSON")


def delegation_of(pipeline: Pipeline, stage: str) -> Delegation:
    """The delegation of a stage, active or yet to be made."""
    details, active = pipeline.stages[stage], pipeline.mark(stage) == ACTIVE
    handles = context_handles(pipeline, stage)
    return Delegation(
        stage=stage,
        kind=pipeline.graph.node(stage).kind,
        round=details.delegations if active else details.delegations + 1,
        directive=directive(stage, details.returned, handles, details.nonce if active else ""),
        node_context=node_context(pipeline, stage, handles),
        context_handles=handles,
        reflection_stages=details.returned.failed if details.returned else (),
        delegation_id=delegation_id(stage, details.delegations) if active else "",
        agent_id=details.agent_id if active else "",
        nonce=details.nonce if active else "",
        delegated_at=details.delegated_at if active else None,
    )


def context_handles(pipeline: Pipeline, stage: str) -> tuple[str, ...]:
    """The handles of the reports that are addressed to a stage: of its predecessors, and of stages that failed after it."""
    handles = [context_handle(dep) for dep in pipeline.graph.node(stage).deps if pipeline.has_report(dep)]
    returned = pipeline.stages[stage].returned
    if returned and returned.reports:
        handles.append(context_handle(returned.failed[0] if len(returned.failed) == 1 else MERGED))
    return tuple(dict.fromkeys(handles))


def addressed_reports(pipeline: Pipeline, pipeline_id: str, reader: str, handle: str) -> tuple[Report, ...]:
    """The reports of a handle; refuses a delegation that it is not addressed to."""
    stage, number = split_delegation_id(reader)
    is_current = stage in pipeline.graph and pipeline.mark(stage) == ACTIVE
    if not is_current or pipeline.stages[stage].delegations != number or handle not in context_handles(pipeline, stage):
        metadata = {"kind": KIND, "id": pipeline_id, "handle": handle}
        raise Refusal(Reason.NOT_ADDRESSED, f"{handle} is not addressed to this delegation", metadata=metadata)
    reports = _reports_of(pipeline, stage, handle.removeprefix("context:"))
    if not reports:
        raise not_found("context", handle)
    return reports


def _reports_of(pipeline: Pipeline, stage: str, name: str) -> tuple[Report, ...]:
    returned = pipeline.stages[stage].returned
    if returned and name in {MERGED, *returned.failed}:
        found = returned.reports
    else:
        found = (Report(name, pipeline.stages[name].report),)
    return tuple(report for report in found if report.sha256)


def node_context(pipeline: Pipeline, stage: str, handles: Sequence[str]) -> str:
    """The node context as JSON; where it is too long, the hint and then the retry context are shortened, never the node."""
    returned = pipeline.stages[stage].returned
    hint = returned.hint if returned else ""
    retry = _retry_context(returned) if returned else None
    before = _node_and_files(pipeline, stage, handles)
    text = _joined(before, retry, hint)
    if _fits(text) or returned is None:
        return text
    left = len(hint) - (len(text) - (MAX_NODE_CONTEXT_TOKENS - 1) * 4)
    text = _joined(before, retry, hint[: max(0, left)])
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
    """The directive: what to do, what to read first, and how to report the route."""
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
