"""`pointsman up`: every service in one process."""

import asyncio
import json
from pathlib import Path
from typing import Annotated

import typer

from pointsman.cli.options.sandbox_options import IsolationOption
from pointsman.cli.session.control_plane import LOCK
from pointsman.cli.session.embedding import claim_for_up
from pointsman.services.all_in_one import CONTEXTS, build_with_gateway
from pointsman.services.chassis.core.config import ServerSettings, StoreSettings, load
from pointsman.services.chassis.runtime.service import serve_until_stopped
from pointsman.services.chassis.telemetry.logs import configure_logs
from pointsman.services.gateway.__main__ import GatewayServer
from pointsman.services.gateway.config import GatewaySettings

app = typer.Typer(add_completion=False)


@app.command()
def up(
    *,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0 lets the system choose.")] = None,
    data: Annotated[Path | None, typer.Option(help="Directory of the stores (default: POINTSMAN_DATA).")] = None,
    console_port: Annotated[int | None, typer.Option(help="Port of the web console and HTTP; 0 as for --port.")] = None,
    _isolation: IsolationOption = "",
    log_json: Annotated[bool, typer.Option("--log-json", help="Logs as JSON lines.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Where it serves, as a line of JSON.")] = False,
) -> None:
    """Start all services in this process and serve until stopped."""
    configure_logs(as_json=log_json)
    stores = load(StoreSettings, **({"data": data} if data is not None else {}))
    settings = load(ServerSettings, **({"port": port} if port is not None else {}))
    chosen = console_port if console_port is not None else 0 if port == 0 else None
    asyncio.run(_serve(stores, settings, chosen, as_json))


async def _serve(stores: StoreSettings, settings: ServerSettings, console_port: int | None, as_json: bool) -> None:
    with await claim_for_up(stores.directory / LOCK) as claim:
        gateway = GatewayServer(load(GatewaySettings, **({"port": console_port} if console_port is not None else {})))

        def greet(address: str) -> None:
            claim.announce(address)
            if as_json:
                print(json.dumps({"address": address, "services": CONTEXTS, "console": gateway.address}), flush=True)
                return
            print(f"Pointsman is up at {address} (gRPC: {', '.join(CONTEXTS)}).", flush=True)
            print(f"Console and HTTP at {gateway.address}. Ctrl-C stops it.", flush=True)

        await serve_until_stopped(build_with_gateway(stores, gateway), settings, greet)
