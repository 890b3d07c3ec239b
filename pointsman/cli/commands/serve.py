"""`pointsman serve <service>`: one service in a process of its own."""

import asyncio
import json
from collections.abc import Callable
from contextlib import ExitStack, suppress
from enum import StrEnum
from typing import Annotated

import typer

from pointsman.cli.options.server import server_settings
from pointsman.credentials.channel import UNIX
from pointsman.credentials.location import CONSOLE_LOCK
from pointsman.services.all_in_one import CONTEXTS, build_all
from pointsman.services.chassis.core.config import DEFAULT_PORT, PeerSettings, ServerSettings, StoreSettings, load
from pointsman.services.chassis.core.errors import Refusal
from pointsman.services.chassis.rpc.loopback import loopback_credentials
from pointsman.services.chassis.runtime.service import serve_until_stopped
from pointsman.services.chassis.storage.file_lock import StoreLock
from pointsman.services.chassis.telemetry.logs import configure_logs

GATEWAY = "gateway"
app = typer.Typer(add_completion=False)
ServiceName = StrEnum("ServiceName", (*CONTEXTS, GATEWAY))  # type: ignore[misc]


@app.command()
def serve(
    service: Annotated[ServiceName, typer.Argument(help="Which one.")],
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0 lets the system choose.")] = None,
    log_json: Annotated[bool, typer.Option("--log-json", help="Logs as JSON lines.")] = False,
    insecure_loopback: Annotated[
        bool, typer.Option("--insecure-loopback", help="Ask nobody on this machine for a credential; for tests only.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Where it serves, as a line of JSON.")] = False,
) -> None:
    """Start one service and serve until stopped; POINTSMAN_PEERS_* say where the others are."""
    configure_logs(as_json=log_json)
    name = str(service)

    def greet(address: str) -> None:
        line = f"{name} is up at {address}. Ctrl-C stops it."
        print(json.dumps({"address": address, "services": [name]}) if as_json else line, flush=True)

    if name == GATEWAY:
        _serve_gateway(port, greet, server_settings(None, insecure_loopback=insecure_loopback))
        return
    stores, settings = load(StoreSettings), server_settings(port, insecure_loopback=insecure_loopback)
    asyncio.run(serve_until_stopped(build_all(stores, [name]), settings, lambda running: greet(running.address)))


def _serve_gateway(port: int | None, greet: Callable[[str], None], services: ServerSettings) -> None:
    from pointsman.services.gateway.__main__ import GatewayServer, serve_gateway
    from pointsman.services.gateway.config import GatewaySettings

    directory = load(StoreSettings).directory
    peers = load(PeerSettings).all_at(f"127.0.0.1:{DEFAULT_PORT}")
    settings = load(GatewaySettings, **({"port": port} if port is not None else {}))
    server = GatewayServer(settings, loopback_credentials(services, directory))
    with ExitStack() as locks:
        # A second gateway of the same directory serves as well; `pointsman console` opens the first.
        with suppress(Refusal):
            lock = locks.enter_context(StoreLock(directory / CONSOLE_LOCK))
            lock.announce(UNIX if server.console_link() != server.address else "", console=server.address)
        asyncio.run(serve_gateway(server, settings, peers, greet))
