"""The clients in other languages, built from the protos and run against a real server by one shared scenario.

`make clients` builds and plays all of them. `make test` builds the cheap one, plays every one that was built before, and says
loudly which it left alone: a compiler's first build on a fresh machine costs minutes.
"""

import asyncio
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pointsman.api.common.v1.common_pb2 import ErrorReason
from pointsman.api.orchestrator.v1.run_pb2 import RUN_STATE_COMPLETE
from pointsman.client import connect
from pointsman.client.calls import Terms
from pointsman.credentials.folder import CredentialFolder, CredentialRole
from pointsman.credentials.tokens import Identity, mint
from pointsman.services.chassis.core.config import ServerSettings
from pointsman.services.chassis.core.errors import CODE_OF, Reason
from pointsman.services.chassis.runtime.service import start
from pointsman.services.orchestrator.config import MockSettings, OrchestratorSettings
from tests.helpers.loopback import INSECURE
from tests.scenarios.planes import builder

ROOT = Path(__file__).resolve().parents[2]
CLIENTS = ROOT / "clients"
PROTOS = ROOT / "protos"
SCENARIO = CLIENTS / "scenario.json"
BUF = str(Path(sys.executable).with_name("buf"))
BUILD_SECONDS = 600
ASKED_FOR = "POINTSMAN_BUILD_CLIENTS"
MADE = {"gen", "bin", "node_modules", "dist", "target", ".built"}


@dataclass(frozen=True, slots=True)
class Example:
    """A client in one language: what its toolchain is, how it is built and tested, what runs it."""

    language: str
    programs: tuple[str, ...]
    fetch: tuple[str, ...]
    """Brings the dependencies here and looks at nothing that is ours but the list of them."""
    reach: tuple[str, ...]
    """Asks the registry for something that is not ours: whether it can be reached at all."""
    build: tuple[tuple[str, ...], ...]
    command: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    cheap: bool = False

    @property
    def folder(self) -> Path:
        """Where it is."""
        return CLIENTS / self.language

    @property
    def built(self) -> Path:
        """Holds the digest of what it was built from last."""
        return self.folder / ".built"

    def digest(self) -> str:
        """Of everything that it is built from."""
        own = [path for path in self.folder.rglob("*") if not MADE & {*path.relative_to(self.folder).parts}]
        digest = hashlib.sha256()
        for path in sorted(path for path in (*own, *PROTOS.rglob("*.proto")) if path.is_file()):
            digest.update(f"{os.path.relpath(path, CLIENTS)}\0".encode() + path.read_bytes())
        return digest.hexdigest()


EXAMPLES = (
    Example(
        language="go",
        programs=("go",),
        fetch=("go", "mod", "download"),
        reach=("go", "list", "-m", "google.golang.org/protobuf@latest"),
        build=(
            ("go", "install", "tool"),
            (BUF, "generate", "../../protos"),
            ("go", "vet", "./pointsman/", "./cmd/..."),
            ("go", "test", "./pointsman/"),
            ("go", "build", "-o", "bin/", "./cmd/..."),
        ),
        command=(str(CLIENTS / "go" / "bin" / "pointsman-agent"),),
        environment={"GOTOOLCHAIN": "local", "GOBIN": str(CLIENTS / "go" / "bin")},
    ),
    Example(
        language="java",
        programs=("javac", "mvn"),
        fetch=("mvn", "-q", "-B", "-ntp", "dependency:resolve", "dependency:resolve-plugins"),
        reach=("mvn", "-q", "-B", "-ntp", "-Dmaven.repo.local=.", "dependency:help"),
        build=(("mvn", "-q", "-B", "-ntp", "package"),),
        command=("java", "-jar", str(CLIENTS / "java" / "target" / "pointsman-agent.jar")),
    ),
    Example(
        language="typescript",
        programs=("node", "npm"),
        fetch=("npm", "ci", "--no-progress"),
        reach=("npm", "view", "--prefer-online", "typescript", "version"),
        build=((BUF, "generate"), ("npm", "run", "build"), ("npm", "test")),
        command=("node", str(CLIENTS / "typescript" / "dist" / "src" / "main.js")),
        cheap=True,
    ),
)


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


async def build(example: Example) -> None:
    """Build and test a client, unless that is done or would cost too much for this run; skip loudly then."""
    missing = [program for program in example.programs if shutil.which(program) is None]
    if missing:
        pytest.skip(
            f"NOT CHECKED: {', '.join(missing)} not on this machine: {example.language} was not built or played"
        )
    if example.built.exists() and example.built.read_text() == example.digest():
        return
    if not (example.cheap or example.built.exists() or os.environ.get(ASKED_FOR)):
        pytest.skip(f"NOT CHECKED: clients/{example.language} was never built here; `make clients` builds and plays it")
    await fetch(example)
    for step in example.build:
        await run(example.folder, *step, **example.environment)
    example.built.write_text(example.digest())


async def fetch(example: Example) -> None:
    """Fetch a client's dependencies; skip loudly where its registry cannot be reached, and only there."""
    try:
        await run(example.folder, *example.fetch, **example.environment)
    except AssertionError:
        with tempfile.TemporaryDirectory() as elsewhere:
            try:
                await run(Path(elsewhere), *example.reach, **example.environment)
            except AssertionError as unreached:
                reason = str(unreached)[-500:]
                pytest.skip(f"NOT CHECKED: the registry of {example.language} cannot be reached: {reason}")
        raise


@asynccontextmanager
async def server(data: Path) -> AsyncIterator[str]:
    """A control plane without agents of its own; its address."""
    running = await start(
        builder(data, MockSettings(), OrchestratorSettings()), ServerSettings(port=0, drain_seconds=0.2), data
    )
    try:
        yield running.address
    finally:
        await running.stop()


def tokens(data: Path) -> Path:
    """A folder with a token of every role, each in the file that `pointsman token` would write."""
    folder = CredentialFolder.of(data)
    (data / "tokens").mkdir()
    for role in CredentialRole:
        (data / "tokens" / f"{role}.token").write_text(mint(Identity(folder, role)) + "\n")
    return data / "tokens"


@pytest.mark.timeout(BUILD_SECONDS)
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.language)
async def test_a_client_in_another_language_plays_the_scenario(
    example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await build(example)
    for name in INSECURE:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("POINTSMAN_DATA", str(tmp_path))
    async with server(tmp_path) as address:
        folder = CredentialFolder.of(tmp_path)
        where = ["--server", address, "--project", "conformance", "--scenario", str(SCENARIO)]
        pinned = {"POINTSMAN_CLIENT_AUTHORITY": str(folder.authority)}
        conform = (*example.command, "conform", *where, "--tokens", str(tokens(tmp_path)))
        shown = json.loads(await run(CLIENTS, *conform, **pinned))
        async with connect(address, Terms(project="conformance")) as client:
            run_there = await client.runs.get(shown["run_id"])
    assert run_there.state == RUN_STATE_COMPLETE
    assert shown["end"] == "RUN_STATE_COMPLETE"
    assert shown["seqs"] == list(range(1, run_there.seq + 1))
    assert shown["claims"] > 0


def in_shell(fetch: str, reach: str, build: str) -> Example:
    """A client whose toolchain is the shell."""
    command = ("sh", "-c")
    return Example("shell", ("sh",), (*command, fetch), (*command, reach), ((*command, build),), (), cheap=True)


@pytest.fixture
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of clients that has one in shell."""
    (tmp_path / "shell").mkdir()
    monkeypatch.setattr(f"{__name__}.CLIENTS", tmp_path)


@pytest.mark.usefixtures("somewhere")
@pytest.mark.parametrize(
    "broken",
    [in_shell("false", reach="true", build="true"), in_shell("true", reach="false", build="false")],
    ids=["the list of dependencies", "the sources"],
)
async def test_a_client_that_does_not_build_fails(broken: Example) -> None:
    with pytest.raises((AssertionError, pytest.skip.Exception)) as ending:
        await build(broken)
    assert ending.type is AssertionError, "a skip would be a pass"
    assert not broken.built.exists()


@pytest.mark.usefixtures("somewhere")
async def test_a_client_is_left_out_where_its_registry_is_out_of_reach() -> None:
    with pytest.raises(pytest.skip.Exception, match="cannot be reached"):
        await build(in_shell("false", reach="false", build="true"))


def test_no_client_is_compiled_where_its_dependencies_are_fetched() -> None:
    (java,) = [example for example in EXAMPLES if example.language == "java"]
    goals = [word for word in java.fetch[1:] if not word.startswith("-")]
    assert all(goal.startswith("dependency:") for goal in goals), "a phase builds what is before it"


def test_the_scenario_speaks_of_every_code_and_of_reasons_that_exist() -> None:
    scenario = json.loads(SCENARIO.read_text())
    cases = [*scenario["advice"], *scenario["refusals"]]
    assert {case["code"] for case in cases} == {code.value for code in CODE_OF.values()}
    known = {name.removeprefix("ERROR_REASON_"): number for name, number in ErrorReason.items()}
    for case in cases:
        if case["reason"] not in ("", "A_REASON_OF_THE_FUTURE"):
            assert known[case["reason"]] > 0
            assert CODE_OF[Reason[case["reason"]]].value == case["code"]


def test_the_scenario_gives_advice_for_every_reason() -> None:
    advised = {case["reason"] for case in json.loads(SCENARIO.read_text())["advice"]}
    assert advised - {"", "A_REASON_OF_THE_FUTURE"} == {
        name.removeprefix("ERROR_REASON_") for name, number in ErrorReason.items() if number
    }
