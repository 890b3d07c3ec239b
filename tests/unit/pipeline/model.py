"""A second opinion about pipelines: the rules again, naively, on a dictionary of words. It judges the engine."""

from dataclasses import dataclass, field

from hypothesis import strategies as st

from pointsman.services.pipeline.domain.dag import Graph, Node, build_graph
from pointsman.services.pipeline.domain.words import StageKind, StageStatus

WORDS = {
    StageStatus.PENDING: "pending",
    StageStatus.READY: "ready",
    StageStatus.ACTIVE: "active",
    StageStatus.PASSED: "passed",
    StageStatus.FAILED: "failed",
    StageStatus.SKIPPED: "skipped",
    StageStatus.TIMED_OUT: "timed out",
}
"""The model's own word for each state of a stage."""

OVER = frozenset({"passed", "failed", "skipped", "timed out"})


@dataclass
class Model:
    """Where every stage is, how often it went back, which barriers wait, and whether it is over (seed policy)."""

    graph: Graph
    stages: dict[str, str] = field(default_factory=dict)
    retries: dict[str, int] = field(default_factory=dict)
    resolved: int = 0
    ended: str = ""

    def __post_init__(self) -> None:
        self.stages = {node.stage: "pending" for node in self.graph.nodes}
        self.retries = dict.fromkeys(self.stages, 0)
        self._open()

    def _open(self) -> None:
        """Whatever has no unfinished predecessor may run, once all members of their barriers are through."""
        for node in self.graph.nodes:
            free = all(self.stages[dep] in OVER and not self._held(dep) for dep in node.deps)
            if self.stages[node.stage] == "pending" and free:
                self.stages[node.stage] = "ready"
        if all(word in OVER for word in self.stages.values()):
            failed = {"failed", "timed out"} & set(self.stages.values())
            self.ended = "with failures" if failed else "well"

    def _held(self, stage: str) -> bool:
        group = self.graph.node(stage).barrier
        members = self.graph.groups[group] if group else ()
        return any(self.stages[member] not in OVER for member in members)

    def take(self, stage: str) -> None:
        """Somebody works on it."""
        self.stages[stage] = "active"

    def skip(self, stage: str) -> None:
        """It is passed over."""
        self.stages[stage] = "skipped"
        self._settle(stage)

    def finish(self, stage: str, *, passed: bool) -> None:
        """It is done, one way or the other."""
        self.stages[stage] = "passed" if passed else "failed"
        self._settle(stage)

    def time_out(self, group: str) -> None:
        """Its barrier does not wait any longer."""
        for member in self.graph.groups[group]:
            if self.stages[member] not in OVER:
                self.stages[member] = "timed out"
        self._settle(self.graph.groups[group][0])

    def restart(self, stage: str) -> None:
        """It and all after it run again, as if for the first time."""
        for name in {stage} | self.graph.after(stage):
            if self.stages[name] != "pending":
                self.retries[name] = 0
        self._reset(stage)
        self._open()

    def _settle(self, stage: str) -> None:
        group = self.graph.node(stage).barrier
        if group and self._held(stage):
            return
        members = self.graph.groups[group] if group else (stage,)
        self.resolved += group is not None
        failed = [member for member in members if self.stages[member] == "failed"]
        going_back = [member for member in failed if self._may_return(member)]
        if not going_back:
            self._open()
            return
        targets = {self.graph.return_target(member) for member in failed if self._goes(member)}
        for member in failed:
            if self._may_return(member):
                self.retries[member] += 1
        for target in targets - {None}:
            self._reset(str(target))
        self._open()

    def _goes(self, stage: str) -> bool:
        return self.graph.return_target(stage) != stage or self._may_return(stage)

    def _may_return(self, stage: str) -> bool:
        has_target = self.graph.return_target(stage) is not None
        return has_target and self.retries[stage] < self.graph.node(stage).max_retries

    def _reset(self, target: str) -> None:
        for name in self.graph.after(target) | {target}:
            self.stages[name] = "pending"


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """A few layers of stages; some layers are a barrier; a failure may go back to any earlier stage, or nowhere."""
    layers: list[list[str]] = []
    nodes: list[Node] = []
    for depth in range(draw(st.integers(1, 4))):
        width = draw(st.integers(1, 3))
        names = [f"S{depth}.{number}" for number in range(width)]
        deps = tuple(layers[-1]) if layers else ()
        barrier = f"b{depth}" if width > 1 and draw(st.booleans()) else None
        earlier = [name for layer in layers for name in layer]
        target = draw(st.sampled_from([None, *earlier]))
        for name in names:
            own = target if barrier else draw(st.sampled_from([None, name, *earlier]))
            kind = draw(st.sampled_from(list(StageKind)))
            nodes.append(Node(name, kind, deps, (), own, draw(st.integers(0, 2)), barrier))
        layers.append(names)
    return build_graph(nodes)
