"""Work that nobody takes: said once for each kind, with the command that starts somebody."""

import sys
from collections.abc import Iterable

from pointsman.api.orchestrator.v1.agent_pb2 import AGENT_STATE_WORKING
from pointsman.api.orchestrator.v1.assignment_pb2 import (
    ASSIGNMENT_STATE_OPEN,
    CAPABILITY_CODE,
    CAPABILITY_DEBATE,
    CAPABILITY_DESIGN,
    CAPABILITY_PLAN,
    CAPABILITY_RESEARCH,
    CAPABILITY_REVIEW,
    CAPABILITY_VERIFY,
    Capability,
)
from pointsman.client import Client

PATIENCE_LOOKS = 8
BUILT_IN = {CAPABILITY_VERIFY: "verifier", CAPABILITY_RESEARCH: "surveyor"}
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
        """Say what stays open although nobody who could do it is busy with something else."""
        states = (ASSIGNMENT_STATE_OPEN,)
        waiting = {item.capability async for item in self._client.agents.assignments(self._run_id, states)}
        self._looks = {kind: self._looks.get(kind, 0) + 1 for kind in waiting}
        late = {kind for kind, looks in self._looks.items() if looks >= PATIENCE_LOOKS} - self._hinted
        if not late:
            return
        busy = [one.capabilities async for one in self._client.agents.all() if one.state == AGENT_STATE_WORKING]
        late -= {kind for kinds in busy for kind in kinds}
        self._hinted |= late
        for line in hints(late):
            print(line, file=sys.stderr)


def hints(late: Iterable[Capability.ValueType]) -> list[str]:
    """How to start whoever is missing."""
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
