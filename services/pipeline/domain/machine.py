"""The machine of a pipeline: what the chassis runs, which transitions exist, and what each command has to see."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pointsman.services.chassis.core.machine import Machine
from pointsman.services.pipeline.domain import commands as c
from pointsman.services.pipeline.domain.apply import apply
from pointsman.services.pipeline.domain.commands import ANSWERS
from pointsman.services.pipeline.domain.context import KIND, split_delegation_id
from pointsman.services.pipeline.domain.dag import Graph
from pointsman.services.pipeline.domain.enums import LIVE, EventName, PipelineStatus
from pointsman.services.pipeline.domain.events import EVENTS
from pointsman.services.pipeline.domain.lifecycle import decide
from pointsman.services.pipeline.domain.model import Pipeline

VERSION = 1
REMEMBERED = 1024

_ACTIVE, _ESCALATED = PipelineStatus.ACTIVE, PipelineStatus.ESCALATED
_STAY = frozenset({(_ACTIVE, _ACTIVE), (_ESCALATED, _ESCALATED)})
_EITHER = frozenset((source, target) for source in LIVE for target in LIVE)
_ENDED: frozenset[str] = frozenset(status for status in PipelineStatus if status not in LIVE)

TRANSITIONS: Mapping[EventName, frozenset[tuple[str, str]]] = {
    EventName.PIPELINE_STARTED: frozenset({("", _ACTIVE)}),
    EventName.PIPELINE_IMPORTED: frozenset(("", status) for status in PipelineStatus),
    EventName.STAGE_DELEGATED: frozenset({(_ACTIVE, _ACTIVE)}),
    EventName.STAGE_COMPLETED: _STAY,
    EventName.STAGE_FAILED: _STAY,
    EventName.STAGE_RETRY: _EITHER - {(_ACTIVE, _ESCALATED)},
    EventName.STAGE_SKIPPED: _EITHER - {(_ACTIVE, _ESCALATED)},
    EventName.STAGE_ESCALATED: frozenset({(_ACTIVE, _ESCALATED), (_ESCALATED, _ESCALATED)}),
    EventName.STAGE_RESTARTED: _EITHER - {(_ACTIVE, _ESCALATED)},
    EventName.ROUTE_FALLBACK: _STAY,
    EventName.ROUTE_CORRECTED: _STAY,
    EventName.RETRY_EXHAUSTED: _STAY,
    EventName.CONVERGENCE_STALL: _STAY,
    EventName.REFLECTION_WRITTEN: _STAY,
    EventName.CONTEXT_PUT: _STAY,
    EventName.BARRIER_CREATED: _STAY,
    EventName.BARRIER_WAITING: _STAY,
    EventName.BARRIER_RESOLVED: _STAY,
    EventName.BARRIER_TIMED_OUT: _EITHER - {(_ACTIVE, _ESCALATED)},
    EventName.AGENT_CRASH: _STAY,
    EventName.COMPLETION_IGNORED: frozenset((status, status) for status in PipelineStatus),
    EventName.PIPELINE_COMPLETED: frozenset(
        {(_ACTIVE, PipelineStatus.COMPLETED), (_ACTIVE, PipelineStatus.COMPLETED_WITH_FAILURES)}
    ),
    EventName.PIPELINE_ABORTED: frozenset((status, PipelineStatus.ABORTED) for status in LIVE),
    EventName.PIPELINE_CANCELLED: frozenset((status, PipelineStatus.CANCELLED) for status in LIVE),
    EventName.PIPELINE_CLEANED: frozenset((status, status) for status in _ENDED),
}
"""Every transition there is; nothing leaves an ended state but to stay there, cleaned or told too late."""

MACHINE: Machine[Pipeline] = Machine(
    kind=KIND,
    version=VERSION,
    state_type=Pipeline,
    decide=decide,
    apply=apply,
    status=lambda pipeline: str(pipeline.head.status),
    run_id=lambda pipeline: pipeline.head.settings.run_id,
    events=EVENTS,
    answers=ANSWERS,
    terminal=_ENDED,
    failed=frozenset({PipelineStatus.ABORTED}),
)


def stages_seen_by(graph: Graph, command: Any) -> frozenset[str] | None:
    """The stages whose details a command reads or changes; None means all of them."""
    if isinstance(command, c.CompleteStage | c.PutContext):
        return _around(graph, (split_delegation_id(command.delegation_id)[0],))
    if isinstance(command, c.DelegateStage):
        return frozenset({command.stage} & graph.index.keys())
    if isinstance(command, c.SkipStage):
        return _around(graph, (command.stage,))
    if isinstance(command, c.TimeOutBarrier):
        return _around(graph, graph.groups.get(command.group, ()))
    return None if isinstance(command, c.RestartFrom | c.CleanUp) else frozenset()


@lru_cache(maxsize=REMEMBERED)
def _around(graph: Graph, stages: tuple[str, ...]) -> frozenset[str]:
    """The stages, the other members of their barriers, what follows them and where they return to."""
    seen: set[str] = set()
    for stage in stages:
        if stage not in graph:
            continue
        node = graph.node(stage)
        members = graph.groups[node.barrier] if node.barrier else (stage,)
        seen.update(members, node.next, *((target,) for member in members if (target := graph.return_target(member))))
    return frozenset(seen)
