"""Warns once per capability about work that no agent takes, with the command that starts an agent."""

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
    CAPABILITY_RESOLVE,
    CAPABILITY_REVIEW,
    CAPABILITY_SURVEY,
    CAPABILITY_VERIFY,
    Capability,
)
from pointsman.client import Client

PATIENCE_CHECKS = 8
BUILT_IN = {CAPABILITY_VERIFY: "verifier", CAPABILITY_RESEARCH: "surveyor"}
INSTEAD = {CAPABILITY_RESEARCH: CAPABILITY_SURVEY}
BY_COMMAND = {
    CAPABILITY_PLAN: "planner",
    CAPABILITY_DEBATE: "critic",
    CAPABILITY_DESIGN: "designer",
    CAPABILITY_CODE: "coder",
    CAPABILITY_RESOLVE: "resolver",
    CAPABILITY_REVIEW: "reviewer",
}


class MissingAgents:
    """Checks a run's open assignments repeatedly."""

    def __init__(self, client: Client, run_id: str) -> None:
        self._client = client
        self._run_id = run_id
        self._checks: dict[Capability.ValueType, int] = {}
        self._hinted: set[Capability.ValueType] = set()

    async def check(self, *, reserved: bool = False) -> None:
        """Warns about work that stays open although no agent with its capability is busy."""
        states = (ASSIGNMENT_STATE_OPEN,)
        waiting = {item.capability async for item in self._client.agents.assignments(self._run_id, states)}
        self._checks = {kind: self._checks.get(kind, 0) + 1 for kind in waiting}
        late = {kind for kind, checks in self._checks.items() if checks >= PATIENCE_CHECKS} - self._hinted
        if not late:
            return
        there = [one async for one in self._client.agents.all() if one.state != AGENT_STATE_LOST]
        late -= {kind for one in there if one.state == AGENT_STATE_WORKING for kind in one.capabilities}
        self._hinted |= late
        if reserved:
            self._say_reserved(late)
            return
        idle = {kind: [one.id for one in there if {kind, INSTEAD.get(kind)} & {*one.capabilities}] for kind in late}
        for line in (*hints(kind for kind in late if not idle[kind]), *_idle_agent_lines(idle)):
            print(line, file=sys.stderr)

    def _say_reserved(self, late: Iterable[Capability.ValueType]) -> None:
        """Says how to bring the crew of a run back, whose work nobody else is given."""
        missing = ", ".join(sorted((BUILT_IN | BY_COMMAND)[kind] for kind in late))
        if missing:
            alone = f"its own {missing} is not there, and its work is for its crew alone"
            print(f"{alone}; go on {with_its_crew(self._run_id)}", file=sys.stderr)


def with_its_crew(run_id: str) -> str:
    """How to bring the crew of a run back: only who started it knows who that was."""
    return f"with the agents of its `run`: pointsman watch {run_id} --repo . --agent NAME (or --coder 'cmd:COMMAND')"


def _idle_agent_lines(idle: Mapping[Capability.ValueType, Sequence[str]]) -> Iterator[str]:
    """Lines about open work that idle agents with the capability do not take."""
    for kind, agents in idle.items():
        if agents:
            yield (
                f"{', '.join(agents)} can do the work of a {(BUILT_IN | BY_COMMAND)[kind]} and is there, but does not take "
                "it: it has another repository (--repo), wrote the work itself, or uses another control plane (--server)"
            )


def hints(late: Iterable[Capability.ValueType]) -> list[str]:
    """How to start an agent for each capability without one."""
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
