"""Services beside a command: each command has its own, ready before it starts and gone when it ends."""

import asyncio
import shutil
import socket
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pointsman.project import ProjectFile, read_project_file
from pointsman.sandbox import (
    CommandResult,
    Level,
    Limits,
    SandboxSpec,
    Service,
    clean_environment,
    failed_service,
    proof_environment,
    run,
)
from pointsman.sandbox.service_runner import SERVER_FOLDERS
from pointsman.worker.ports import lease_services
from tests.helpers.levels import levels_here

HERE = levels_here()
STRONGEST = HERE[-1]
PYTHON = str(Path(sys.executable).resolve())
SERVER = """
import pathlib, socketserver, sys
class Answer(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.sendall(sys.argv[2].encode())
socketserver.TCPServer.allow_reuse_address = True
socketserver.TCPServer(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
"""
ASK = """
import os, socket
with socket.create_connection((os.environ["ECHO_HOST"], int(os.environ["ECHO_PORT"]))) as client:
    print(client.recv(1000).decode())
"""
HAS_SERVER = bool(shutil.which("initdb") or any(list(Path("/").glob(place[1:])) for place in SERVER_FOLDERS))


def echo(port: int, word: str) -> Service:
    return Service("echo", (PYTHON, "-I", "-S", "-c", SERVER, "{port}", word), port)


def spec(folder: Path, services: tuple[Service, ...], level: Level = STRONGEST, network: bool = False) -> SandboxSpec:
    command, seconds = (PYTHON, "-I", "-S", "-c", ASK), Limits(seconds=300.0)
    environment = clean_environment({"TMPDIR": str(folder)}) if network else proof_environment(folder)
    readable = (Path(sys.base_prefix),)
    return SandboxSpec(
        command, folder, environment, (folder,), readable, network=network, limits=seconds, level=level, services=services
    )  # fmt: skip


def left_in(folder: Path) -> list[Path]:
    return list(folder.glob("services-*"))


def of(text: str) -> ProjectFile:
    return read_project_file(text.encode())


@pytest.mark.parametrize("level", HERE)
async def test_a_service_takes_connections_before_the_command_starts_and_is_gone_after_it(
    level: Level, tmp_path: Path
) -> None:
    with lease_services(of('[workspace]\nservices.echo = "echo {port}"').workspace) as leased:
        port = leased.services[0].port
        ended = await run(spec(tmp_path, (echo(port, "hello"),), level, network=True))
        assert (ended.exit_code, ended.output, ended.strays) == (0, b"hello\n", 0)
        with socket.socket() as client:
            assert client.connect_ex(("127.0.0.1", port)) != 0
    assert left_in(tmp_path) == []


async def test_twenty_commands_at_once_have_a_service_of_their_own_each(tmp_path: Path) -> None:
    asked = of('[workspace]\nports = 2\nservices.echo = "echo {port}"').workspace

    async def one(number: int) -> CommandResult:
        folder = tmp_path / str(number)
        folder.mkdir()
        with lease_services(asked) as leased:
            return await run(spec(folder, (echo(leased.services[0].port, f"of {number}"),), Level.NONE, network=True))

    ended = await asyncio.gather(*map(one, range(20)))
    assert [result.output for result in ended] == [f"of {number}\n".encode() for number in range(20)]


async def test_the_exit_code_of_the_command_counts_and_not_that_of_its_services(tmp_path: Path) -> None:
    asked = spec(tmp_path, (echo(20_000, "hello"),))
    failing = await run(replace(asked, command=("sh", "-c", "exit 3")))
    missing = await run(replace(asked, command=("sh", "-c", "exec no-such-program")))
    assert (failing.exit_code, failed_service(failing)) == (3, "")
    assert (missing.exit_code, failed_service(missing)) == (127, "")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("no-such-server", "{port}"), "cannot start the service echo: no-such-server: No such file or directory"),
        (("sh", "-c", "echo no licence; exit 2", "{port}"), "it ended with exit code 2\nno licence"),
    ],
)
async def test_a_service_that_does_not_start_is_named_and_the_command_is_not_run(
    command: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    ended = await run(spec(tmp_path, (Service("echo", command, 20_000),)))
    assert said in failed_service(ended)


@pytest.mark.skipif(Level.LANDLOCK not in HERE, reason="there is no Landlock here")
async def test_a_proof_without_sockets_says_what_its_service_needs(tmp_path: Path) -> None:
    ended = await run(spec(tmp_path, (echo(20_000, "hello"),), Level.LANDLOCK))
    assert "no sockets at isolation landlock; install bubblewrap" in failed_service(ended)


@pytest.mark.skipif(not HAS_SERVER or STRONGEST < Level.NAMESPACES, reason="needs PostgreSQL's server and bubblewrap")
@pytest.mark.parametrize("network", [False, True], ids=["proof", "agent"])
async def test_a_database_is_new_asks_for_a_password_and_is_the_commands_own(network: bool, tmp_path: Path) -> None:
    with lease_services(of("[workspace]\nservices = { postgres = true }").workspace) as leased:
        asked = spec(tmp_path, leased.services, network=network)
        script = 'psql -Atc "create table t (x int); select count(*) from t"; PGPASSWORD=x psql -c "select 1"; env | grep -c "^DATABASE_URL=postgresql://"'
        ended = await run(replace(asked, command=("sh", "-c", script)))
    lines = ended.output.decode().splitlines()
    assert lines[:2] == ["CREATE TABLE", "0"]
    assert "password authentication failed" in ended.output.decode()
    assert lines[-1] == "1"
    assert ended.strays == 0


@pytest.mark.skipif(not HAS_SERVER or STRONGEST < Level.NAMESPACES, reason="needs PostgreSQL's server and bubblewrap")
async def test_twenty_agents_at_once_have_a_database_of_their_own_each(tmp_path: Path) -> None:
    asked = of("[workspace]\nservices = { postgres = true }").workspace

    async def one(number: int) -> CommandResult:
        folder = tmp_path / str(number)
        folder.mkdir()
        script = f'psql -qAtc "create table t as select {number} as x"; psql -Atc "select x from t"'
        with lease_services(asked) as leased:
            return await run(replace(spec(folder, leased.services, network=True), command=("sh", "-c", script)))

    ended = await asyncio.gather(*map(one, range(20)))
    assert [result.output for result in ended] == [f"{number}\n".encode() for number in range(20)]
