"""`pointsman serve <service>`: one service in a process of its own."""

import asyncio
import json
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated

import typer

from pointsman.services.all_in_one import CONTEXTS, build_all
from pointsman.services.chassis.core.config import DEFAULT_PORT, PeerSettings, ServerSettings, StoreSettings, load
from pointsman.services.chassis.runtime.service import serve_until_stopped
from pointsman.services.chassis.telemetry.logs import configure_logs

GATEWAY = "gateway"
app = typer.Typer(add_completion=False)
ServiceName = StrEnum("ServiceName", (*CONTEXTS, GATEWAY))  # type: ignore[misc]


@app.command()
def serve(
    service: Annotated[ServiceName, typer.Argument(help="Which one.")],
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0 lets the system choose.")] = None,
    log_json: Annotated[bool, typer.Option("--log-json", help="Logs as JSON lines.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Where it serves, as a line of JSON.")] = False,
) -> None:
    """Start one service and serve until stopped; POINTSMAN_PEERS_* say where the others are."""
    configure_logs(as_json=log_json)
    name = str(service)

    def greet(address: str) -> None:
        line = f"{name} is up at {address}. Ctrl-C stops it."
        print(json.dumps({"address": address, "services": [name]}) if as_json else line, flush=True)

    if name == GATEWAY:
        _serve_gateway(port, greet)
        return
    stores = load(StoreSettings)
    settings = load(ServerSettings, **({"port": port} if port is not None else {}))

    asyncio.run(serve_until_stopped(build_all(stores, [name]), settings, greet))


def _serve_gateway(port: int | None, greet: Callable[[str], None]) -> None:
    from pointsman.services.gateway.__main__ import serve_gateway
    from pointsman.services.gateway.config import GatewaySettings

    peers = load(PeerSettings).all_at(f"127.0.0.1:{DEFAULT_PORT}")
    asyncio.run(serve_gateway(load(GatewaySettings, **({"port": port} if port is not None else {})), peers, greet))
