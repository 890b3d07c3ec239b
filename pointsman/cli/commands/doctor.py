"""`pointsman doctor`: what is wrong with the set-up, and what to do about it."""

import asyncio
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import grpc
import typer
from grpc_health.v1 import health_pb2, health_pb2_grpc
from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from pointsman._shared.otlp import ENDPOINTS, GENAI, OPT_IN, exports_genai, exports_spans
from pointsman._shared.redaction import redact
from pointsman.cli.exit_codes import EXIT_FAILED
from pointsman.cli.options.extras import MODULES, how_to_install, is_installed
from pointsman.cli.session.service_check import try_services
from pointsman.credentials.location import LOCK, owner_of
from pointsman.notify.place import Place
from pointsman.sandbox import probe, supports_grades
from pointsman.services.all_in_one import CONTEXTS, migrations_of
from pointsman.services.chassis.core.config import (
    DatabaseFeatures,
    PeerSettings,
    ServerSettings,
    StoreSettings,
    load,
)
from pointsman.services.chassis.core.errors import Refusal
from pointsman.services.chassis.rpc.client import open_channel
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.migrate import MigrationState, migration_states
from pointsman.services.chassis.storage.server_probe import OPTIONAL, REQUIRED, missing, version_of
from pointsman.services.gateway.config import GatewaySettings

LEAST_GIT = (2, 38)
"""The first git that can merge without a working tree."""
HEALTH_SECONDS = 10
"""Longer than a service of a busy machine takes to answer."""
OF_OTHERS = 0o077
NOT_ISOLATED = (
    "install bubblewrap, or use a kernel with Landlock: an agent's command can read your credentials, "
    "and nothing proven here counts for more than a person's word"
)

app = typer.Typer(add_completion=False)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was checked."""

    check: str
    ok: bool
    detail: str
    advice: str = ""


@app.command()
def doctor(as_json: Annotated[bool, typer.Option("--json", help="Findings as JSON.")] = False) -> None:
    """Check Python, git, data directory, isolation, services, databases, migrations, ports and peers; exit 1 if something needs fixing."""
    findings = [*_machine(), *_services(), *_extras(), *_stores(), *_serving()]
    if as_json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        for finding in findings:
            mark = "ok  " if finding.ok else "FIX "
            print(
                f"{mark} {finding.check}: {finding.detail}" + (f"\n     → {finding.advice}" if finding.advice else "")
            )
    sys.exit(0 if all(finding.ok for finding in findings) else EXIT_FAILED)


def _machine() -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    yield Finding("python", sys.version_info >= (3, 11), version)
    yield _git()
    folder = load(StoreSettings).directory
    present = folder if folder.exists() else next(parent for parent in folder.parents if parent.exists())
    writable = present.is_dir() and os.access(present, os.W_OK)
    advice = "" if writable else "make it a directory that you can write, or set POINTSMAN_DATA to another"
    private = not folder.is_dir() or folder.stat().st_mode & OF_OTHERS == 0
    if writable and not private:
        advice = f"other users can look into it: chmod 700 {shlex.quote(str(folder))}"
    yield Finding("data directory", writable and private, str(folder), advice)
    yield from _isolation(folder)


def _extras() -> Iterator[Finding]:
    """What of the optional edges is installed; none is needed."""
    for extra in MODULES:
        detail = "installed" if is_installed(extra) else f"not installed ({how_to_install(extra)})"
        yield Finding(f"extra {extra}", ok=True, detail=detail)
    for path in sorted(load(StoreSettings).directory.glob("notify-*.json")):
        notified = len(Place.read(path).notified)
        yield Finding(
            "notices", ok=True, detail=f"{path.stem.removeprefix('notify-')}: notified of {notified} questions"
        )
    if load(GatewaySettings).mcp:
        advice = "" if is_installed("mcp") else how_to_install("mcp")
        yield Finding("/mcp of the gateway", is_installed("mcp"), "asked for by POINTSMAN_GATEWAY_MCP", advice)
    yield _genai_spans()


def _genai_spans() -> Finding:
    """Whether spans have what the GenAI conventions want; asked for without a collector, they go nowhere."""
    name = "GenAI spans"
    if not exports_genai():
        return Finding(name, ok=True, detail=f"off ({OPT_IN}={GENAI} asks for them)")
    if exports_spans():
        return Finding(name, ok=True, detail="sent with the trace")
    return Finding(name, ok=False, detail="asked for, but no collector is named", advice=f"name one in {ENDPOINTS[0]}")


def _isolation(data_directory: Path) -> Iterator[Finding]:
    """What a probe inside the sandbox of agents and proofs could do, line by line."""
    report = probe(data_directory)
    advice = "" if supports_grades(report.level) else NOT_ISOLATED
    yield Finding("isolation", ok=True, detail=str(report.level), advice=advice)
    for reason in report.missing:
        yield Finding("isolation", ok=True, detail=f"not {reason}")
    for finding in report.findings:
        refused = "refused" if finding.refused else "possible"
        yield Finding("isolation probe", ok=True, detail=f"{finding.text}: {refused}")


def _services() -> Iterator[Finding]:
    """Whether the services that the project file here names start beside a proof; each is started."""
    for name, problem in asyncio.run(try_services(Path.cwd())).items():
        yield Finding(f"service {name}", not problem, problem or "starts beside a command of a proof")


def _git() -> Finding:
    advice = f"install git {'.'.join(map(str, LEAST_GIT))} or newer: agents work in worktrees, and results are branches"
    command = shutil.which("git")
    if command is None:
        return Finding("git", ok=False, detail="not found", advice=advice)
    printed = subprocess.run([command, "--version"], capture_output=True, text=True, check=False).stdout.strip()  # noqa: S603 - git itself
    version = re.search(r"(\d+)\.(\d+)", printed)
    recent = version is not None and tuple(map(int, version.groups())) >= LEAST_GIT
    return Finding("git", recent, printed.removeprefix("git version "), "" if recent else advice)


def _stores() -> Iterator[Finding]:
    stores = load(StoreSettings)
    for name in CONTEXTS:
        if not stores.database_url and not (stores.directory / f"{name}.db").exists():
            yield Finding(f"{name} store", ok=True, detail="not there yet; the first start creates it")
            continue
        yield _store(name, stores)


def _store(name: str, stores: StoreSettings) -> Finding:
    try:
        with closing(Database(stores.url_for(name), name)) as database:
            database.read_now(lambda connection: connection.execute(text("SELECT 1")))
            found = _migrated(name, migration_states(database, migrations_of(name)))
            return database.read_now(lambda connection: _served(found, connection)) if stores.database_url else found
    except (SQLAlchemyError, Refusal) as error:
        cause = error.__cause__ or error
        reason = redact(str(getattr(cause, "orig", cause)).strip().splitlines()[0])
        by_url = "check POINTSMAN_DATABASE_URL and that the server runs"
        by_file = f"check that {stores.directory / f'{name}.db'} is a store of Pointsman and that you can read it"
        return Finding(f"{name} store", ok=False, detail=reason, advice=by_url if stores.database_url else by_file)


def _served(found: Finding, connection: Connection) -> Finding:
    """The finding with what the server of a store is, unless it lacks what the store uses."""
    version, portable = version_of(connection), load(StoreSettings).database_features is DatabaseFeatures.PORTABLE
    if lacking := missing(connection, REQUIRED):
        advice = "use a server that has it; docs/scale.md says what the stores need"
        return Finding(found.check, ok=False, detail=f"{version} lacks {', '.join(lacking)}", advice=advice)
    if not portable and (lacking := missing(connection, OPTIONAL)):
        advice = "set POINTSMAN_DATABASE_FEATURES=portable"
        return Finding(found.check, ok=False, detail=f"{version} lacks {', '.join(lacking)}", advice=advice)
    mode = ", portable SQL at SERIALIZABLE" if portable else ""
    return replace(found, detail=f"{found.detail}; {version}{mode}")


def _migrated(name: str, states: list[MigrationState]) -> Finding:
    missing = [state.line for state in states if not state.is_current]
    if missing:
        detail, advice = f"reachable; migrations missing: {', '.join(missing)}", "run `pointsman migrate`"
    elif any(state.is_ahead for state in states):
        detail, advice = "reachable; migrated by a newer version, which this one can serve beside", ""
    else:
        detail, advice = "reachable, migrations current", ""
    return Finding(f"{name} store", not missing, detail, advice)


def _serving() -> Iterator[Finding]:
    owner = owner_of(load(StoreSettings).directory / LOCK)
    address = os.environ.get("POINTSMAN_SERVER", "") or (owner.address if owner else "")
    peers = load(PeerSettings).all_at(address)
    if address or any(getattr(peers, name) for name in CONTEXTS):
        for name in CONTEXTS:
            yield asyncio.run(_health(name, getattr(peers, name)))
        return
    server, gateway = load(ServerSettings), load(GatewaySettings)
    yield _port(
        "port", server.host, server.port, "POINTSMAN_SERVER_PORT, or POINTSMAN_SERVER if that is a control plane"
    )
    yield _port("console port", gateway.host, gateway.port, "POINTSMAN_GATEWAY_PORT")


def _port(check: str, host: str, port: int, setting: str) -> Finding:
    with socket.socket() as probe:
        free = port == 0 or probe.connect_ex((host, port)) != 0
    return Finding(check, free, f"{host}:{port} is {'free' if free else 'taken'}", "" if free else f"set {setting}")


async def _health(name: str, address: str) -> Finding:
    async with open_channel(address) as channel:
        service = f"pointsman.api.{name}.v1.{name.capitalize()}Service"
        try:
            request = health_pb2.HealthCheckRequest(service=service)
            answer = await health_pb2_grpc.HealthStub(channel).Check(request, timeout=HEALTH_SECONDS)
        except grpc.aio.AioRpcError as error:
            return Finding(
                f"{name} service",
                ok=False,
                detail=f"{address}: {error.code().name}",
                advice="start it, or set POINTSMAN_PEERS_*",
            )
    serving = answer.status == health_pb2.HealthCheckResponse.SERVING
    return Finding(f"{name} service", serving, f"{address}: {'serving' if serving else 'not serving'}")
