"""Which stage rows each command needs, so that no command loads a whole pipeline without need."""

from functools import lru_cache
from typing import Any

from pointsman.services.pipeline.domain.commands import (
    CleanUp,
    CompleteStage,
    DelegateStage,
    PutContext,
    RestartFrom,
    SkipStage,
    TimeOutBarrier,
)
from pointsman.services.pipeline.domain.dag import Graph
from pointsman.services.pipeline.domain.delegation import split_delegation_id

CACHED_SELECTIONS = 1024


def stages_needed_by(graph: Graph, command: Any) -> frozenset[str] | None:
    """The stages that a command reads or changes; None means all."""
    if isinstance(command, CompleteStage | PutContext):
        return _around(graph, (split_delegation_id(command.delegation_id)[0],))
    if isinstance(command, DelegateStage):
        return frozenset({command.stage} & graph.index.keys())
    if isinstance(command, SkipStage):
        return _around(graph, (command.stage,))
    if isinstance(command, TimeOutBarrier):
        return _around(graph, graph.groups.get(command.group, ()))
    return None if isinstance(command, RestartFrom | CleanUp) else frozenset()


@lru_cache(maxsize=CACHED_SELECTIONS)
def _around(graph: Graph, stages: tuple[str, ...]) -> frozenset[str]:
    """The stages, the other members of their barriers, their next stages and their return targets."""
    seen: set[str] = set()
    for stage in stages:
        if stage not in graph:
            continue
        node = graph.node(stage)
        members = graph.groups[node.barrier] if node.barrier else (stage,)
        seen.update(members, node.next, *((target,) for member in members if (target := graph.return_target(member))))
    return frozenset(seen)
