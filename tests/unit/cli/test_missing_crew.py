"""A reserved run whose crew is gone says how to bring the crew back, not to start an agent that gets nothing."""

from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from pointsman.api.orchestrator.v1.agent_pb2 import Agent
from pointsman.api.orchestrator.v1.assignment_pb2 import CAPABILITY_CODE, Assignment
from pointsman.cli.session.missing_agents import PATIENCE_CHECKS, MissingAgents
from pointsman.client import Client


class Waiting:
    """Agents of a control plane with one piece of work that nobody takes."""

    async def assignments(self, _run_id: str, _states: Any) -> AsyncIterator[Assignment]:
        yield Assignment(capability=CAPABILITY_CODE)

    async def all(self) -> AsyncIterator[Agent]:
        yield Agent(id="box-coder", capabilities=[CAPABILITY_CODE])


class Plane:
    agents = Waiting()


@pytest.mark.parametrize(
    ("reserved", "words"),
    [(True, "its own coder is not there"), (False, "box-coder can do the work of a coder and is there")],
)
async def test_who_is_missing_is_said_with_the_way_out(
    reserved: bool, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = MissingAgents(cast("Client", Plane()), "run_1")
    for _ in range(PATIENCE_CHECKS + 1):
        await missing.check(reserved=reserved)
    said = capsys.readouterr().err
    assert said.count(words) == 1
    assert ("pointsman watch run_1 --repo ." in said) is reserved
