"""The DAG of a pipeline: its stages, their edges, return targets and barriers; and its validation."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.pipeline.domain.enums import StageKind

DEFAULT_MAX_RETRIES = 3
MAX_STAGES = 1000
MERGED = "MERGED"
"""The name under which the reports of a barrier are joined; no stage may have it."""
MAX_NODE_CHARACTERS = 1000
"""How many of the 2,000 characters of a node context the node itself may use."""


@dataclass(frozen=True, slots=True)
class Node:
    """One stage of a DAG; an absent onFail or barrier is an explicit None."""

    stage: str
    kind: StageKind
    deps: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    on_fail: str | None = None
    max_retries: int = DEFAULT_MAX_RETRIES
    barrier: str | None = None


class Graph:
    """A valid DAG with cached lookups. Immutable, so that pipelines of the same shape share one."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.nodes = tuple(nodes)
        self.index: Mapping[str, int] = {node.stage: number for number, node in enumerate(self.nodes)}
        self.has_dev = any(node.kind is StageKind.DEV for node in self.nodes)
        self._after: dict[str, frozenset[str]] = {}
        self.texts: dict[str, str] = {}
        """Cache for `delegation`: the JSON of each node."""

    def __contains__(self, stage: object) -> bool:
        return stage in self.index

    def node(self, stage: str) -> Node:
        """The node of a stage."""
        return self.nodes[self.index[stage]]

    @cached_property
    def digest(self) -> str:
        """Identifies the DAG: equal digests, equal DAGs."""
        return hashlib.sha256(repr(self.nodes).encode()).hexdigest()

    @cached_property
    def groups(self) -> Mapping[str, tuple[str, ...]]:
        """The members of each barrier, in the DAG's order."""
        groups: dict[str, tuple[str, ...]] = {}
        for node in self.nodes:
            if node.barrier is not None:
                groups[node.barrier] = (*groups.get(node.barrier, ()), node.stage)
        return groups

    @cached_property
    def after_dev(self) -> frozenset[str]:
        """Every stage that comes after a DEV stage."""
        return frozenset().union(*(self.after(node.stage) for node in self.nodes if node.kind is StageKind.DEV))

    def after(self, stage: str) -> frozenset[str]:
        """All stages that depend on this one, directly or not."""
        if stage not in self._after:
            found: set[str] = set()
            pending = list(self.node(stage).next)
            while pending:
                following = pending.pop()
                if following not in found:
                    found.add(following)
                    pending.extend(self.node(following).next)
            self._after[stage] = frozenset(found)
        return self._after[stage]

    def return_target(self, stage: str) -> str | None:
        """The stage that a FAIL returns to: `on_fail`; the stage itself before DEV and at DEV; else none."""
        node = self.node(stage)
        if node.on_fail is not None:
            return node.on_fail
        repeats = self.has_dev and (node.kind is StageKind.DEV or stage not in self.after_dev)
        return stage if repeats else None


@lru_cache(maxsize=64)
def shared_graph(nodes: tuple[Node, ...]) -> Graph:
    """The graph of nodes that are valid already; one object for equal nodes."""
    return Graph(nodes)


def invalid_dag(node: str, problem: str) -> Refusal:
    """The refusal of a DAG, because of this node."""
    return Refusal(Reason.INVALID_DAG, f"stage '{node}': {problem}", metadata={"node": node, "problem": problem})


def build_graph(nodes: Iterable[Node]) -> Graph:
    """Builds a graph; an edge may be given at either end. Refuses an invalid DAG and names the node."""
    given = tuple(nodes)
    if not given:
        raise invalid_dag("", "the DAG is empty; give it at least one stage")
    if len(given) > MAX_STAGES:
        raise invalid_dag(given[MAX_STAGES].stage, f"the DAG has more than {MAX_STAGES} stages")
    _check_names(given)
    joined = _with_edges_at_both_ends(given)
    _check_cycle(joined)
    graph = Graph(_without_lone_barriers(joined))
    _check_on_fail(graph)
    _check_barriers(graph)
    _check_size(graph)
    return graph


def kind_of(stage: str) -> StageKind:
    """The kind in the prefix of a stage id: `TEST:write` is a TEST."""
    prefix = stage.partition(":")[0]
    if prefix not in StageKind.__members__:
        raise invalid_dag(stage, f"say its kind, or begin its id with one of {', '.join(StageKind)}")
    return StageKind(prefix)


def _check_names(nodes: Sequence[Node]) -> None:
    known: set[str] = set()
    for node in nodes:
        if node.stage in known or node.stage == MERGED:
            raise invalid_dag(node.stage, "its name is taken")
        known.add(node.stage)
    for node in nodes:
        for other in (*node.deps, *node.next):
            if other not in known:
                raise invalid_dag(node.stage, f"names '{other}', which is not a stage of the DAG")
        if node.on_fail is not None and node.on_fail not in known:
            raise invalid_dag(node.stage, f"has the unknown on_fail '{node.on_fail}'")


def _with_edges_at_both_ends(nodes: Sequence[Node]) -> tuple[Node, ...]:
    deps: dict[str, dict[str, None]] = {node.stage: dict.fromkeys(node.deps) for node in nodes}
    following: dict[str, dict[str, None]] = {node.stage: dict.fromkeys(node.next) for node in nodes}
    for node in nodes:
        for other in node.next:
            deps[other].setdefault(node.stage)
        for other in node.deps:
            following[other].setdefault(node.stage)
    return tuple(replace(node, deps=tuple(deps[node.stage]), next=tuple(following[node.stage])) for node in nodes)


def _check_cycle(nodes: Sequence[Node]) -> None:
    by_name = {node.stage: node for node in nodes}
    open_deps = {node.stage: len(node.deps) for node in nodes}
    free = [stage for stage, count in open_deps.items() if count == 0]
    while free:
        stage = free.pop()
        del open_deps[stage]
        for following in by_name[stage].next:
            open_deps[following] -= 1
            if open_deps[following] == 0:
                free.append(following)
    if open_deps:
        raise invalid_dag(_on_a_cycle(by_name, open_deps), "is part of a cycle")


def _on_a_cycle(by_name: Mapping[str, Node], left: Mapping[str, int]) -> str:
    stage, seen = next(iter(left)), set[str]()
    while stage not in seen:
        seen.add(stage)
        stage = next(dep for dep in by_name[stage].deps if dep in left)
    return stage


def _without_lone_barriers(nodes: Sequence[Node]) -> tuple[Node, ...]:
    members: dict[str, int] = {}
    for node in nodes:
        if node.barrier is not None:
            members[node.barrier] = members.get(node.barrier, 0) + 1
    lone = {group for group, count in members.items() if count == 1}
    return tuple(replace(node, barrier=None) if node.barrier in lone else node for node in nodes)


def _check_on_fail(graph: Graph) -> None:
    for node in graph.nodes:
        target = node.on_fail
        if target is not None and target != node.stage and node.stage not in graph.after(target):
            raise invalid_dag(node.stage, f"on_fail '{target}' must be the stage itself or one before it")


def _check_barriers(graph: Graph) -> None:
    for group, members in graph.groups.items():
        first = graph.node(members[0])
        for stage in members[1:]:
            node = graph.node(stage)
            same = (set(node.deps), set(node.next), node.on_fail) == (set(first.deps), set(first.next), first.on_fail)
            if not same:
                raise invalid_dag(stage, f"members of barrier '{group}' need the same deps, next and on_fail")


def _check_size(graph: Graph) -> None:
    for node in graph.nodes:
        siblings = graph.groups[node.barrier] if node.barrier else ()
        names = (*node.deps, *node.next, *siblings, *(f"context:{dep}" for dep in node.deps))
        if sum(len(name) + 3 for name in names) > MAX_NODE_CHARACTERS:
            raise invalid_dag(node.stage, "its neighbours do not fit a node context; use fewer or shorter names")
