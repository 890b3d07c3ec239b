"""Credentials as users have them: real processes, a real impostor on the port, tokens and codes from the command line."""

import asyncio
import json
import re
import shlex
import socket
import ssl
import stat
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from pointsman.client import Unavailable, connect
from pointsman.client.calls import Terms
from pointsman.client.errors import NotAllowed
from pointsman.credentials.folder import CredentialFolder, CredentialRole
from pointsman.credentials.location import LOCK, owner_of
from pointsman.sandbox import Level, available_level
from pointsman.worker.git import git
from tests.helpers.certificates import Authority
from tests.helpers.eventually import eventually_now
from tests.helpers.hello_repository import example_repository
from tests.helpers.limits import scaled
from tests.helpers.loopback import INSECURE
from tests.scenarios.commands import POINTSMAN, Running, finished, running, until_killed

CURIOUS = Path(__file__).parent / "agents" / "curious.py"
BRIEFLY = Terms(patience_seconds=1.0, deadline_seconds=5.0)


@pytest.fixture(autouse=True)
def as_users_have_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in INSECURE:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("POINTSMAN_DATA", str(tmp_path))


@contextmanager
def up(data: Path, *options: str, program: tuple[str, ...] = ()) -> Iterator[tuple[Running, dict[str, str]]]:
    """A control plane in a process of its own, and where it serves."""
    arguments = ("up", "--port", "0", "--json", *options)
    with until_killed(Running(arguments, {"POINTSMAN_DATA": str(data)}, program=program)) as process:
        yield process, json.loads(process.line_with('"address"'))


async def list_runs(address: str = "", role: str = "operator") -> int:
    async with connect(address, BRIEFLY, role=role) as client:
        return len([run async for run in client.runs.all()])


def test_a_client_finds_the_control_plane_of_its_data_directory_by_itself(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="pointsman up"):
        asyncio.run(list_runs())
    with up(tmp_path) as (_, served):
        assert asyncio.run(list_runs()) == 0
        assert asyncio.run(list_runs(served["address"], "reviewer/box-1")) == 0
        owner = owner_of(tmp_path / LOCK)
        assert owner is not None
        assert (owner.address.startswith("unix:"), owner.tcp) == (True, served["address"])


def exported(printed: str) -> dict[str, str]:
    return dict(re.findall(r"^export (\w+)='?([^'\n]+)'?$", printed, re.MULTILINE))


def test_token_prints_what_a_client_in_another_language_needs(tmp_path: Path) -> None:
    where = {"POINTSMAN_DATA": str(tmp_path)}
    with up(tmp_path) as (_, served):
        code, printed = finished("token", "coder", "--agent", "box-1", "--env", "--expires", "30m", **where)
        assert code == 0, printed
        given = exported(printed)
        assert given["POINTSMAN_SERVER"] == served["address"]
        file = Path(given["POINTSMAN_CLIENT_TOKEN"])
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert file.read_text().strip() not in printed
        assert refusal_with(given, "/pointsman.api.orchestrator.v1.OrchestratorService/ListRuns") == "OK"
        assert refusal_with(given, "/pointsman.api.orchestrator.v1.OrchestratorService/Submit") == "PERMISSION_DENIED"
        _, as_json = finished("token", "--json", **where)
        assert json.loads(as_json)["POINTSMAN_CLIENT_TOKEN"].endswith("operator.token")
        _, token = finished("token", **where)
        request = urllib.request.Request(f"{served['console']}/api/v1/orchestrator.OrchestratorService/ListRuns")
        request.add_header("authorization", f"Bearer {token.strip()}")
        with urllib.request.urlopen(request, timeout=scaled(20)) as answer:
            assert answer.status == 200
        code, printed = finished("token", "coder", "--rotate", **where)
        assert code == 0, printed
        assert refusal_with(given, "/pointsman.api.orchestrator.v1.OrchestratorService/ListRuns") == "UNAUTHENTICATED"
    code, printed = finished("token", "--env", **where)
    assert (code, "pointsman up" in printed) == (3, True)
    assert finished("token", "root", **where)[0] == 2
    assert finished("token", "--expires", "soon", **where)[0] == 2


def refusal_with(given: dict[str, str], method: str) -> str:
    """The code of a call that a client in another language makes with what was printed."""
    authority = Path(given["POINTSMAN_CLIENT_AUTHORITY"]).read_bytes()
    token = Path(given["POINTSMAN_CLIENT_TOKEN"]).read_text().strip()
    with grpc.secure_channel(given["POINTSMAN_SERVER"], grpc.ssl_channel_credentials(authority)) as channel:
        call: Any = channel.unary_unary(method)
        try:
            call(b"", metadata=(("authorization", f"Bearer {token}"),), timeout=scaled(20))
        except grpc.RpcError as error:
            failed: Any = error
            return str(failed.code().name)
    return "OK"


def opened(link: str) -> int:
    try:
        with urllib.request.urlopen(link, timeout=scaled(20)) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_up_prints_a_link_that_opens_the_console_once_and_console_makes_another(tmp_path: Path) -> None:
    where = {"POINTSMAN_DATA": str(tmp_path)}
    code, printed = finished("console", "--no-browser", **where)
    assert (code, "pointsman up" in printed) == (3, True)
    with running("up", "--port", "0", **where) as process:
        link = process.line_with("/login?code=").rpartition(" ")[2].strip()
        assert opened(link.partition("/login")[0]) == 401
        assert [opened(link), opened(link)] == [200, 401]
        code, printed = finished("console", "--no-browser", **where)
        assert code == 0, printed
        assert opened(printed.strip()) == 200
        _, shown = finished("console", "--json", **where)
        assert json.loads(shown) == {"console": link.partition("/login")[0]}
        process.stop()
        assert not any("/login" in line for line in process.lines if line.startswith("{")), "no code in a log line"


def test_an_insecure_loopback_says_so_and_serves_everybody(tmp_path: Path) -> None:
    CredentialFolder.of(tmp_path).make()
    with up(tmp_path, "--insecure-loopback") as (process, served):
        assert "INSECURE" in process.line_with("INSECURE")
        with grpc.insecure_channel(served["address"]) as channel:
            method: Any = channel.unary_unary("/pointsman.api.orchestrator.v1.OrchestratorService/ListRuns")
            assert method(b"", timeout=scaled(20)) is not None
        assert asyncio.run(list_runs()) == 0, "a client sees in the lock file that nothing is asked for"
        assert finished("runs", POINTSMAN_DATA=str(tmp_path))[0] == 0


class Impostor:
    """Whoever binds a port after its owner died, with or without a certificate, and keeps what it is told."""

    def __init__(self, address: str, context: ssl.SSLContext | None) -> None:
        host, _, port = address.rpartition(":")
        self.heard: list[bytes] = []
        self._context = context
        self._socket = socket.create_server((host, int(port)))
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._hear, args=(connection,), daemon=True).start()

    def _hear(self, connection: socket.socket) -> None:
        connection.settimeout(scaled(5))
        try:
            if self._context is not None:
                connection = self._context.wrap_socket(connection, server_side=True)
            while part := connection.recv(65536):
                self.heard.append(part)
        except OSError as error:
            self.heard.append(str(error).encode())
        finally:
            connection.close()

    def close(self) -> None:
        self._socket.close()


@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "with a certificate of its own"])
def test_whoever_binds_the_port_after_a_crash_collects_nothing(tmp_path: Path, *, encrypted: bool) -> None:
    with up(tmp_path) as (process, served):
        assert finished("runs", "--server", served["address"], POINTSMAN_DATA=str(tmp_path))[0] == 0
        process.kill()
    context = None
    if encrypted:
        (tmp_path / "theirs").mkdir()
        pair = Authority(tmp_path / "theirs").issue("localhost")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols(["h2"])
        context.load_cert_chain(pair.certificate, pair.key)
    impostor = Impostor(served["address"], context)
    try:
        code, printed = finished("runs", "--server", served["address"], POINTSMAN_DATA=str(tmp_path))
        assert code == 3, printed
        with pytest.raises(Unavailable):
            asyncio.run(list_runs(served["address"]))
        with pytest.raises(Unavailable):
            asyncio.run(list_runs())
        eventually_now(lambda: bool(impostor.heard))
    finally:
        impostor.close()
    heard = b"".join(impostor.heard).lower()
    for word in (b"bearer", b"authorization", b"eyj", b"pointsman"):
        assert word not in heard, heard[:2000]


def test_no_secret_stands_in_a_process_list_an_environment_or_an_output(tmp_path: Path) -> None:
    with up(tmp_path, program=POINTSMAN) as (process, _):
        finished("runs", "--json", POINTSMAN_DATA=str(tmp_path))
        folder = CredentialFolder.of(tmp_path)
        secrets = {folder.read_secret(role) for role in CredentialRole}
        seen = b"".join(Path(f"/proc/{process.pid}/{name}").read_bytes() for name in ("cmdline", "environ"))
        seen += "".join(process.lines).encode() + (tmp_path / LOCK).read_bytes()
        stores = b"".join(path.read_bytes() for path in tmp_path.glob("*.db*"))
        assert not [secret for secret in secrets if secret in seen or secret in stores]
        assert b"eyJ" not in seen


def test_a_coder_is_refused_what_only_an_operator_may_do(tmp_path: Path) -> None:
    async def cancel() -> None:
        async with connect("", BRIEFLY, role="coder/box-1") as client:
            await client.runs.cancel("run_1")

    with up(tmp_path), pytest.raises(NotAllowed):
        asyncio.run(cancel())


@pytest.mark.timeout(240)
async def test_an_agent_finds_no_credential_and_no_way_in_without_one(tmp_path: Path) -> None:
    repository, data = await example_repository(tmp_path), tmp_path / "data"
    where = {"POINTSMAN_DATA": str(data)}
    with up(data) as (_, served):
        spying = (sys.executable, "-I", str(CURIOUS), str(data), served["console"], served["address"])
        task = ("run", "add a greeting to the hello module", "--action", "--repo", str(repository))
        code, printed = await asyncio.to_thread(finished, *task, "--command", shlex.join(spying), **where)
        assert code == 0, printed
    branch = next(word for word in printed.split() if word.startswith("pointsman/run_"))
    findings = json.loads(await git(repository, "show", f"{branch}:findings.json"))
    assert findings["variables"] == []
    assert bool(findings["files"]) is (available_level() is Level.NONE), "only where nothing confines a command"
    assert findings["page"] in ("401", "out of reach")
    assert findings["call"] in ("401", "out of reach")
    assert findings["grpc"] in ("no HTTP/2", "out of reach")
