"""The secrets that the control plane itself makes: tokens, secrets of roles and leases, codes, cookies and proofs stay where they belong."""

import asyncio
import contextlib
import json
import logging
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import grpc
import pytest
import structlog
from prometheus_client import generate_latest

from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.credentials.folder import CredentialRole
from pointsman.credentials.tokens import Identity, mint
from pointsman.services.chassis.telemetry.logs import LIBRARY_LOGGERS, configure_logs
from pointsman.services.gateway import sessions
from tests.contract.access.loopbacks import Loopback, loopback
from tests.contract.gateway.gateways import Web
from tests.contract.gateway.test_sessions import LIST, Headers, code, log_in, web
from tests.contract.orchestrator.test_holders import beat, give_up, hand_in, poll
from tests.helpers.collector import collector
from tests.helpers.databases import break_stores
from tests.helpers.eventually import eventually
from tests.helpers.loopback import with_credentials
from tests.scenarios.planes import Plane, clients

RESEARCH = (assignments.CAPABILITY_RESEARCH,)


def leaks(secrets: Mapping[str, str], places: Mapping[str, str]) -> list[str]:
    """Which secret is seen where, whole or the greater half of it."""
    return [
        f"{kind} in {place}"
        for kind, secret in secrets.items()
        for place, text in places.items()
        if secret[: len(secret) * 2 // 3] in text or secret[len(secret) // 3 :] in text
    ]


async def _refused(here: Plane, run_id: str, token: str, said: list[str]) -> None:
    """Show a token, and name a thing by a secret: what comes back is kept."""
    shown = (("authorization", f"Bearer {token}"),)
    for request in (pb.GetRunRequest(run_id=run_id), pb.CancelRunRequest(request_id="c", run_id=run_id, reason=run_id)):
        method = here.runs.GetRun if isinstance(request, pb.GetRunRequest) else here.runs.CancelRun
        try:
            await method(request, metadata=shown)
        except grpc.aio.AioRpcError as error:
            said.append(f"{error.details()} {error.trailing_metadata()!r}")


async def _shown(there: Loopback, tokens: Iterable[str], secret: str, said: list[str]) -> None:
    """Every token, whole and cut, with calls that name things by secrets."""
    bare = clients(await there.bare())
    for token in tokens:
        await _refused(bare, token, token, said)
        await _refused(bare, secret, token[:-4], said)
        await _refused(bare, secret, token, said)


async def _leased(there: Loopback, said: list[str]) -> tuple[agent.Lease, dict[str, str]]:
    """A lease through its whole life, with wrong calls about it, and its secrets."""
    planner, coder, operator = [await there.acting_as(name) for name in ("planner/box-1", "coder/box-1", "operator")]
    waiting = asyncio.ensure_future(poll(planner, "box-1", RESEARCH, "first", 50))
    await operator.submit()
    (lease,) = await waiting
    (again,) = await poll(planner, "box-1", RESEARCH, "first", 0)
    said += [f"{await hand_in(coder, 'box-1', lease)}", f"{await give_up(coder, 'box-1', lease)}"]
    said += [f"{await beat(coder, 'box-1', lease)}", f"{await beat(planner, 'box-1', lease)}"]
    said.append(f"{await hand_in(planner, 'box-1', lease)}")
    listed = agent.ListAssignmentsRequest(run_id=lease.assignment.run_id)
    said.append(f"{await operator.agents.ListAssignments(listed)}")
    return lease, {"lease secret": lease.secret, "further lease secret": again.secret}


async def _console(browser: Web, given: str, session: Headers, said: list[str]) -> dict[str, str]:
    """A session that is used and misused; its secrets."""
    cookie, proof = session["cookie"].partition("=")[2], session[sessions.PROOF]
    for path, headers in (
        (f"/login?code={given}", {}),
        (LIST, {"cookie": session["cookie"]}),
        (LIST, session),
        (f"/{given}/{cookie}", session),
    ):
        answer = await browser.send("GET", path, headers=headers)
        said.append(f"{answer.status} {answer.headers} {answer.body!r}")
    return {"console code": given, "cookie": cookie, "proof": proof}


async def _printed(there: Loopback, *arguments: str) -> str:
    """What a command of the operator prints with --json."""
    named = ("--server", there.running.address, "--json")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "pointsman.cli", *arguments, *named,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        env=with_credentials(POINTSMAN_DATA=str(there.data)),
    )  # fmt: skip
    printed, _ = await process.communicate()
    assert process.returncode == 0, printed
    return printed.decode()


def _stored(data: Path) -> str:
    """All that is in the data directory but the credentials: journal, idempotency records, leases, and the rest."""
    files = [path for path in data.rglob("*") if path.is_file() and "credentials" not in path.parts]
    assert any(path.suffix == ".db" for path in files)
    return "\n".join(path.read_bytes().decode("latin-1") for path in files)


@contextlib.contextmanager
def _logging_everything() -> Iterator[None]:
    configure_logs(as_json=True, level="DEBUG")
    try:
        yield
    finally:
        structlog.reset_defaults()
        for name in LIBRARY_LOGGERS:
            logging.getLogger(name).handlers.clear()
            logging.getLogger(name).propagate = True


async def test_what_the_control_plane_makes_as_a_secret_is_seen_by_its_holder_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    said: list[str] = []
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")
    with _logging_everything():
        async with collector() as kept:
            monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://{kept.endpoint}")
            async with loopback(tmp_path, monkeypatch) as there:
                secrets = {f"secret of {role}": there.folder.read_secret(role).decode() for role in CredentialRole}
                tokens = {role: mint(Identity(there.folder, role)) for role in CredentialRole}
                secrets |= {f"token of {role}": token.rpartition(".")[2] for role, token in tokens.items()}
                lease, of_lease = await _leased(there, said)
                run_id, browser, given = lease.assignment.run_id, await web(there), code(there)
                session = await log_in(browser, given)
                secrets |= of_lease | await _console(browser, given, session, said)
                await _shown(there, tokens.values(), lease.secret, said)

                async def has_spans() -> bool:
                    return any(run_id in str(span) for span in kept.spans)

                await eventually(has_spans, 30)
                commands = (("runs",), ("show", run_id), ("agents",))
                printed = [await _printed(there, *command) for command in commands]
                stored = _stored(tmp_path)
                break_stores(tmp_path)
                await _console(browser, given, session, said)
                await _shown(there, tokens.values(), lease.secret, said)
    shown = capfd.readouterr()
    places = {
        "errors": "\n".join(said), "logs": shown.out + shown.err, "spans": "\n".join(map(str, kept.spans)),
        "metrics": generate_latest().decode(), "stores": stored, "--json": "\n".join(printed),
    }  # fmt: skip
    assert leaks(secrets, places) == []
    assert len(secrets) == 2 * len(CredentialRole) + 5
    assert run_id in stored
    logged = [json.loads(line)["event"] for line in shown.err.splitlines() if line.startswith("{")]
    assert logged.count("internal_error") > len(tokens), "each token was shown to a fault that is logged"
    assert all(run_id in text or command[0] == "agents" for command, text in zip(commands, printed, strict=True))


def test_who_looks_for_leaks_sees_one() -> None:
    assert leaks({"token": "abcdefghi"}, {"a log": "x abcdefg", "a span": "cdef"}) == ["token in a log"]
