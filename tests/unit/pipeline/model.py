"""A second opinion about pipelines: the rules again, naively, on a dictionary of words. It judges the engine.

Of the graph it takes the nodes only; who comes after whom, who waits for whom and where a failure goes it finds itself.
"""

from dataclasses import dataclass, field

from hypothesis import strategies as st

from pointsman.services.pipeline.domain.dag import Graph, Node, build_graph
from pointsman.services.pipeline.domain.enums import StageKind, StageStatus

WORDS = {
    StageStatus.PENDING: "pending",
    StageStatus.READY: "ready",
    StageStatus.ACTIVE: "active",
    StageStatus.PASSED: "passed",
    StageStatus.FAILED: "failed",
    StageStatus.SKIPPED: "skipped",
    StageStatus.TIMED_OUT: "timed out",
    StageStatus.ESCALATED: "escalated",
}
"""The model's own word for each state of a stage."""

OVER = frozenset({"passed", "failed", "skipped", "timed out"})
JUDGES = frozenset({"REVIEW", "TEST", "QA", "E2E"})
CRASHES = 3


@dataclass
class Model:
    """Where every stage is, how often it went back, which barriers wait, and whether it is over."""

    graph: Graph
    strict: bool = False
    stages: dict[str, str] = field(default_factory=dict)
    retries: dict[str, int] = field(default_factory=dict)
    crashes: dict[str, int] = field(default_factory=dict)
    failed_last: set[str] = field(default_factory=set)
    """The stages whose last word was FAIL."""
    unproven: set[str] = field(default_factory=set)
    """Those that passed or were skipped without a verdict that can be believed."""
    resolved: int = 0
    ended: str = ""

    def __post_init__(self) -> None:
        self.nodes = {node.stage: node for node in self.graph.nodes}
        self.stages = dict.fromkeys(self.nodes, "pending")
        self.retries = dict.fromkeys(self.nodes, 0)
        self.crashes = dict.fromkeys(self.nodes, 0)
        self._open()

    def members(self, stage: str) -> list[str]:
        """The stages that this one waits for, itself among them."""
        group = self.nodes[stage].barrier
        return [name for name, node in self.nodes.items() if group and node.barrier == group] or [stage]

    def after(self, stage: str) -> set[str]:
        """Whatever depends on the stage, near or far."""
        found: set[str] = set()
        while True:
            more = {name for name, node in self.nodes.items() if {stage, *found} & set(node.deps)}
            if more == found:
                return found
            found = more

    def target(self, stage: str) -> str | None:
        """Where a failure goes: where the stage says; DEV and what does not come after a DEV repeats itself."""
        developers = [name for name, node in self.nodes.items() if node.kind == "DEV"]
        if self.nodes[stage].on_fail:
            return self.nodes[stage].on_fail
        if not developers:
            return None
        alone = stage in developers or not any(stage in self.after(name) for name in developers)
        return stage if alone else None

    def _judges(self, stage: str) -> bool:
        return self.nodes[stage].kind in JUDGES

    def _open(self) -> None:
        """Whatever has no unfinished predecessor may run, once all members of their barriers are through."""
        for name, node in self.nodes.items():
            free = all(self.stages[dep] in OVER and not self._held(dep) for dep in node.deps)
            if self.stages[name] == "pending" and free:
                self.stages[name] = "ready"
        if all(word in OVER for word in self.stages.values()):
            bad = {"failed", "timed out"} & set(self.stages.values())
            self.ended = "with failures" if bad or self.unproven else "well"

    def _held(self, stage: str) -> bool:
        return any(self.stages[member] not in OVER for member in self.members(stage))

    def take(self, stage: str) -> None:
        """Somebody works on it."""
        self.stages[stage] = "active"

    def skip(self, stage: str) -> None:
        """It is passed over; after a FAIL that nobody let pass, that is no proof."""
        if self.stages[stage] == "escalated" and stage in self.failed_last:
            self.unproven.add(stage)
        self.stages[stage] = "skipped"
        self._settle(stage)

    def finish(self, stage: str, *, passed: bool) -> None:
        """It is done, one way or the other."""
        self.crashes[stage] = 0
        self._note(stage, passed=passed)
        self._settle(stage)

    def garble(self, stage: str) -> None:
        """Its verdict is no word: taken as PASS, which proves nothing where something should be proved."""
        self.crashes[stage] = 0
        self._unbelieved(stage)

    def mumble(self, stage: str) -> None:
        """It says nothing: those who build go on, those who judge are asked again."""
        if self._judges(stage) and self.crashes[stage] + 1 < CRASHES:
            self.crashes[stage] += 1
            self.stages[stage] = "ready"
            return
        if self._judges(stage):
            self.crashes[stage] += 1
        self._unbelieved(stage)

    def _unbelieved(self, stage: str) -> None:
        self._note(stage, passed=True)
        if self._judges(stage) and self.strict:
            self.stages[stage] = "escalated"
            return
        if self._judges(stage):
            self.unproven.add(stage)
        self._settle(stage)

    def _note(self, stage: str, *, passed: bool) -> None:
        self.stages[stage] = "passed" if passed else "failed"
        self.unproven.discard(stage)
        self.failed_last.discard(stage)
        if not passed:
            self.failed_last.add(stage)

    def time_out(self, stage: str) -> None:
        """The barrier of the stage does not wait any longer; what must be proved then waits for a person."""
        members = self.members(stage)
        goes_back = any(self.stages[member] == "failed" and self._may_return(member) for member in members)
        for member in members:
            absent = self.stages[member] in {"pending", "ready", "active"}
            if absent and not goes_back and self.strict and self._judges(member):
                self.stages[member] = "escalated"
            elif absent or (goes_back and self.stages[member] == "escalated"):
                self.stages[member] = "timed out"
        self._settle(stage)

    def restart(self, stage: str) -> None:
        """It and all after it run again, as if for the first time."""
        for name in {stage} | self.after(stage):
            if self.stages[name] != "pending":
                self.retries[name] = self.crashes[name] = 0
                self.failed_last.discard(name)
        self._reset(stage)
        self._open()

    def _settle(self, stage: str) -> None:
        members = self.members(stage)
        if self._held(stage):
            return
        failed = [member for member in members if self.stages[member] == "failed"]
        if not any(self._may_return(member) for member in failed):
            self._go_on(members, failed)
            return
        self.resolved += len(members) > 1
        targets = {self.target(member) for member in failed if self._goes(member)}
        for member in failed:
            if self._may_return(member):
                self.retries[member] += 1
        for target in targets - {None}:
            self._reset(str(target))
        self._open()

    def _go_on(self, members: list[str], failed: list[str]) -> None:
        """On, unless something that failed must be proved: that waits for a person."""
        stuck = [member for member in failed if self.strict and self._judges(member)]
        for member in stuck:
            self.stages[member] = "escalated"
        if not stuck:
            self.resolved += len(members) > 1
            self._open()

    def _goes(self, stage: str) -> bool:
        return self.target(stage) != stage or self._may_return(stage)

    def _may_return(self, stage: str) -> bool:
        return self.target(stage) is not None and self.retries[stage] < self.nodes[stage].max_retries

    def _reset(self, target: str) -> None:
        for name in self.after(target) | {target}:
            self.stages[name] = "pending"
            self.unproven.discard(name)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """A few layers of stages; some of a layer may be a barrier; a failure may go back to any earlier stage, or nowhere."""
    layers: list[list[str]] = []
    nodes: list[Node] = []
    for depth in range(draw(st.integers(1, 4))):
        width = draw(st.integers(1, 3))
        names = [f"S{depth}.{number}" for number in range(width)]
        deps = tuple(layers[-1]) if layers else ()
        waiting = names[: draw(st.integers(2, width))] if width > 1 and draw(st.booleans()) else []
        earlier = [name for layer in layers for name in layer]
        target = draw(st.sampled_from([None, *earlier]))
        for name in names:
            barrier = f"b{depth}" if name in waiting else None
            own = target if barrier else draw(st.sampled_from([None, name, *earlier]))
            kind = draw(st.sampled_from(list(StageKind)))
            nodes.append(Node(name, kind, deps, (), own, draw(st.integers(0, 2)), barrier))
        layers.append(names)
    return build_graph(nodes)
