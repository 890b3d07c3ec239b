"""The clients in other languages, built from the protos and run against a real server by one shared scenario."""

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pointsman.api.common.v1.common_pb2 import ErrorReason
from pointsman.api.orchestrator.v1.run_pb2 import RUN_STATE_COMPLETE
from pointsman.client import connect
from pointsman.client.calls import Terms
from pointsman.services.chassis.config import ServerSettings
from pointsman.services.chassis.refusals import CODE_OF, Reason
from pointsman.services.chassis.service import start
from pointsman.services.orchestrator.config import MockSettings, OrchestratorSettings
from tests.scenarios.planes import builder

ROOT = Path(__file__).resolve().parents[2]
CLIENTS = ROOT / "clients"
SCENARIO = CLIENTS / "scenario.json"
BUF = ROOT / ".venv" / "bin" / "buf"
BUILD_SECONDS = 600


async def run(folder: Path, *command: str, **environment: str) -> str:
    """Run a command to its end; what it printed."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env={**os.environ, **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    assert process.returncode == 0, f"{' '.join(command)}:\n{output.decode()}\n{errors.decode()}"
    return output.decode()


def require(*programs: str) -> None:
    """Skip, loudly, where a toolchain is missing."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        pytest.skip(f"NOT CHECKED: {', '.join(missing)} not on this machine, so this client was neither built nor run")


async def fetched(folder: Path, *command: str, **environment: str) -> None:
    """Fetch dependencies; skip, loudly, where no package registry can be reached."""
    try:
        await run(folder, *command, **environment)
    except AssertionError as failure:
        pytest.skip(f"NOT CHECKED: the dependencies of {folder.name} could not be fetched: {str(failure)[-500:]}")


async def go_client() -> Sequence[str]:
    """Build and test the Go client; the command that runs it."""
    require("go")
    folder = CLIENTS / "go"
    offline = {"GOTOOLCHAIN": "local", "GOBIN": str(folder / "bin")}
    await fetched(folder, "go", "install", "tool", **offline)
    await run(folder, str(BUF), "generate", "../../protos")
    await run(folder, "go", "vet", "./pointsman/", "./cmd/...", **offline)
    await run(folder, "go", "test", "./pointsman/", **offline)
    await run(folder, "go", "build", "-o", "bin/", "./cmd/...", **offline)
    return [str(folder / "bin" / "pointsman-agent")]


async def typescript_client() -> Sequence[str]:
    """Build and test the TypeScript client; the command that runs it."""
    require("node", "npm")
    folder = CLIENTS / "typescript"
    installed = folder / "node_modules" / ".package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < (folder / "package-lock.json").stat().st_mtime:
        await fetched(folder, "npm", "ci", "--no-progress")
    await run(folder, str(BUF), "generate")
    await run(folder, "npm", "run", "build")
    await run(folder, "npm", "test")
    return ["node", str(folder / "dist" / "src" / "main.js")]


@asynccontextmanager
async def server(data: Path) -> AsyncIterator[str]:
    """A control plane without agents of its own; its address."""
    running = await start(
        builder(data, MockSettings(), OrchestratorSettings()), ServerSettings(port=0, drain_seconds=0.2)
    )
    try:
        yield running.address
    finally:
        await running.stop()


@pytest.mark.timeout(BUILD_SECONDS)
@pytest.mark.parametrize("build", [go_client, typescript_client])
async def test_a_client_in_another_language_plays_the_scenario(build: Any, tmp_path: Path) -> None:
    command = await build()
    async with server(tmp_path) as address:
        where = ["--server", address, "--project", "conformance", "--scenario", str(SCENARIO)]
        shown = json.loads(await run(CLIENTS, *command, "conform", *where))
        async with connect(address, Terms(project="conformance")) as client:
            run_there = await client.runs.get(shown["run_id"])
    assert run_there.state == RUN_STATE_COMPLETE
    assert shown["end"] == "RUN_STATE_COMPLETE"
    assert shown["seqs"] == list(range(1, run_there.seq + 1))
    assert shown["claims"] > 0


def test_the_scenario_speaks_of_every_code_and_of_reasons_that_exist() -> None:
    scenario = json.loads(SCENARIO.read_text())
    cases = [*scenario["advice"], *scenario["refusals"]]
    assert {case["code"] for case in cases} == {code.value for code in CODE_OF.values()}
    known = {name.removeprefix("ERROR_REASON_"): number for name, number in ErrorReason.items()}
    for case in cases:
        if case["reason"] not in ("", "A_REASON_OF_THE_FUTURE"):
            assert known[case["reason"]] > 0
            assert CODE_OF[Reason[case["reason"]]].value == case["code"]
