"""A permission that an agent asks for, while worker and control plane are killed at each step: asked once, answered once."""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

pytest.importorskip("acp", reason="the extra `pointsman[acp]` is not installed")

from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.api.orchestrator.v1.run_pb2 import Repository
from pointsman.client import Client, Order, Reply, connect
from pointsman.worker.git import repository_id, text
from tests.helpers.eventually import eventually
from tests.helpers.hello_repository import example_repository
from tests.helpers.limits import scaled
from tests.scenarios.commands import Running, until_killed

VERIFY = ("python3", "-m", "unittest", "discover", "-q")
AGENT = Path(__file__).parent / "agents" / "asking.py"


class Everything:
    """A control plane and a worker, each of which can be killed and started again."""

    def __init__(self, folder: Path, repository: Path, held: ExitStack) -> None:
        programs = folder / "programs"
        programs.mkdir()
        program = programs / "copilot"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {AGENT} "$@"\n')
        program.chmod(0o755)
        self.environment = {
            "POINTSMAN_DATA": str(folder / "data"),
            "POINTSMAN_GATEWAY_PORT": "0",
            "POINTSMAN_ORCHESTRATOR_LEASE_SECONDS": str(scaled(3)),
            "PATH": os.pathsep.join((str(programs), os.environ["PATH"])),
        }
        self._repository, self._held = repository, held

    def up(self) -> Running:
        """The control plane."""
        process = self._held.enter_context(
            until_killed(Running(("up", "--port", "0", "--no-crew"), self.environment, self._repository))
        )
        process.line_with("is up at")
        return process

    def worker(self, *options: str) -> Running:
        """A worker; what it prints is read line by line."""
        given = ("agent", "--repo", str(self._repository), *options)
        process = self._held.enter_context(until_killed(Running(given, self.environment, self._repository)))
        process.line_with("working as")
        return process

    def coder(self) -> Running:
        """The worker with the agent that asks."""
        return self.worker("--agent", "copilot-acp", "--read", str(AGENT), "--name", "box")


@pytest.fixture
def held() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


async def test_a_permission_is_asked_once_and_answered_once_however_often_everything_dies(
    tmp_path: Path, held: ExitStack
) -> None:
    repository = await example_repository(tmp_path)
    here = Everything(tmp_path, repository, held)
    up, coder = here.up(), here.coder()
    here.worker("--name", "judge")
    where = Repository(id=await repository_id(repository), base_commit=await text(repository, "rev-parse", "HEAD"))
    async with connect(data=tmp_path / "data") as client:
        order = Order("write the greeting", where, [VERIFY], template="fix", as_action=True)
        await client.runs.submit(order)
    coder.line_with("asks for a permission")
    coder.kill()
    up.kill()
    up = here.up()
    async with connect(data=tmp_path / "data") as client:
        run = await asked(client)
        first = run.question.id
        assert "Read the dictionary" in run.question.text
    coder = here.coder()
    coder.line_with("asks for a permission")
    coder.kill()
    async with connect(data=tmp_path / "data") as client:
        run = await asked(client)
        assert run.question.id == first
        await client.runs.answer(run.id, first, Reply(runs.ANSWER_KIND_ALLOW))
    up.kill()
    here.up()
    here.coder()
    async with connect(data=tmp_path / "data") as client:

        async def is_done() -> bool:
            return (await client.runs.get(run.id)).state == runs.RUN_STATE_COMPLETE

        await eventually(is_done, 120)
        journal = [one.event async for one in client.runs.transitions(run.id)]
        assert [journal.count(event) for event in ("permission_requested", "asked", "answered")] == [1, 1, 1]
        printed = "".join([chunk.text async for chunk in client.agents.output(run.id)])
        assert "the session goes on" in printed
        assert "begun before" in printed
        assert "answered: allow_once" in printed


async def asked(client: Client) -> runs.Run:
    """The run, once it asks."""
    found: list[runs.Run] = []

    async def asks() -> bool:
        found[:] = [run async for run in client.runs.all() if run.HasField("question")]
        return bool(found)

    await eventually(asks)
    return found[0]
