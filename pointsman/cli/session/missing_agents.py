"""Work that nobody takes: said once for each kind, with the command that starts somebody."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pointsman.api.orchestrator.v1.agent_pb2 import AGENT_STATE_LOST, AGENT_STATE_WORKING
from pointsman.api.orchestrator.v1.assignment_pb2 import (
    ASSIGNMENT_STATE_OPEN,
    CAPABILITY_CODE,
    CAPABILITY_DEBATE,
    CAPABILITY_DESIGN,
    CAPABILITY_PLAN,
    CAPABILITY_RESEARCH,
    CAPABILITY_REVIEW,
    CAPABILITY_SURVEY,
    CAPABILITY_VERIFY,
    Capability,
)
from pointsman.client import Client

PATIENCE_LOOKS = 8
BUILT_IN = {CAPABILITY_VERIFY: "verifier", CAPABILITY_RESEARCH: "surveyor"}
INSTEAD = {CAPABILITY_RESEARCH: CAPABILITY_SURVEY}
BY_COMMAND = {
    CAPABILITY_PLAN: "planner",
    CAPABILITY_DEBATE: "critic",
    CAPABILITY_DESIGN: "designer",
    CAPABILITY_CODE: "coder",
    CAPABILITY_REVIEW: "reviewer",
}


class Unattended:
    """Looks at a run's open work every now and then."""

    def __init__(self, client: Client, run_id: str) -> None:
        self._client = client
        self._run_id = run_id
        self._looks: dict[Capability.ValueType, int] = {}
        self._hinted: set[Capability.ValueType] = set()

    async def look(self) -> None:
        """Say what stays open although no agent that could do it is busy: that one is missing, or why it may not take it."""
        states = (ASSIGNMENT_STATE_OPEN,)
        waiting = {item.capability async for item in self._client.agents.assignments(self._run_id, states)}
        self._looks = {kind: self._looks.get(kind, 0) + 1 for kind in waiting}
        late = {kind for kind, looks in self._looks.items() if looks >= PATIENCE_LOOKS} - self._hinted
        if not late:
            return
        there = [one async for one in self._client.agents.all() if one.state != AGENT_STATE_LOST]
        late -= {kind for one in there if one.state == AGENT_STATE_WORKING for kind in one.capabilities}
        self._hinted |= late
        idle = {kind: [one.id for one in there if {kind, INSTEAD.get(kind)} & {*one.capabilities}] for kind in late}
        for line in (*hints(kind for kind in late if not idle[kind]), *_reluctant(idle)):
            print(line, file=sys.stderr)


def _reluctant(idle: Mapping[Capability.ValueType, Sequence[str]]) -> Iterator[str]:
    """Work that waits although agents that can do it are there."""
    for kind, agents in idle.items():
        if agents:
            yield (
                f"{', '.join(agents)} can do the work of a {(BUILT_IN | BY_COMMAND)[kind]} and is there, but does not take "
                "it: it has another repository (--repo), wrote the work itself, or uses another control plane (--server)"
            )


def hints(late: Iterable[Capability.ValueType]) -> list[str]:
    """How to start an agent for each kind of work that has none."""
    kinds = set(late)
    lines = []
    if built_in := [name for kind, name in BUILT_IN.items() if kind in kinds]:
        lines.append(f"nobody takes the work of a {' and a '.join(built_in)}; start both: pointsman agent --repo .")
    lines += [
        f"nobody takes the work of a {name}; start one: pointsman agent --role {name} --agent claude --repo ."
        for kind, name in BY_COMMAND.items()
        if kind in kinds
    ]
    return lines
