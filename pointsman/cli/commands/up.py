"""`pointsman up`: every service in one process."""

import asyncio
import json
from pathlib import Path
from typing import Annotated

import typer

from pointsman.cli.options.sandbox_options import IsolationOption
from pointsman.cli.options.server import server_settings
from pointsman.cli.session.embedding import claim_for_up
from pointsman.credentials.location import LOCK
from pointsman.services.all_in_one import CONTEXTS, build_with_gateway
from pointsman.services.chassis.core.config import ServerSettings, StoreSettings, load
from pointsman.services.chassis.rpc.loopback import loopback_credentials
from pointsman.services.chassis.runtime.service import Running, serve_until_stopped
from pointsman.services.chassis.telemetry.logs import configure_logs
from pointsman.services.gateway.__main__ import GatewayServer
from pointsman.services.gateway.config import GatewaySettings

app = typer.Typer(add_completion=False)


@app.command()
def up(  # noqa: PLR0913 - one parameter per option
    *,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0 lets the system choose.")] = None,
    data: Annotated[Path | None, typer.Option(help="Directory of the stores (default: POINTSMAN_DATA).")] = None,
    console_port: Annotated[int | None, typer.Option(help="Port of the web console and HTTP; 0 as for --port.")] = None,
    _isolation: IsolationOption = "",
    log_json: Annotated[bool, typer.Option("--log-json", help="Logs as JSON lines.")] = False,
    insecure_loopback: Annotated[
        bool, typer.Option("--insecure-loopback", help="Ask nobody on this machine for a credential; for tests only.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Where it serves, as a line of JSON.")] = False,
) -> None:
    """Start all services in this process and serve until stopped."""
    configure_logs(as_json=log_json)
    stores = load(StoreSettings, **({"data": data} if data is not None else {}))
    settings = server_settings(port, insecure_loopback=insecure_loopback)
    chosen = console_port if console_port is not None else 0 if port == 0 else None
    asyncio.run(_serve(stores, settings, chosen, as_json))


async def _serve(stores: StoreSettings, settings: ServerSettings, console_port: int | None, as_json: bool) -> None:
    with await claim_for_up(stores.directory / LOCK) as claim:
        chosen = load(GatewaySettings, **({"port": console_port} if console_port is not None else {}))
        gateway = GatewayServer(chosen, loopback_credentials(settings, stores.directory))

        def greet(running: Running) -> None:
            claim.announce(running.local_address, running.address, gateway.address)
            if as_json:
                shown = {"address": running.address, "services": CONTEXTS, "console": gateway.address}
                print(json.dumps(shown), flush=True)
                return
            print(f"Pointsman is up at {running.address} (gRPC: {', '.join(CONTEXTS)}).", flush=True)
            print(f"Console and HTTP at {gateway.address}. Ctrl-C stops it.", flush=True)
            if gateway.console_link() != gateway.address:
                print(f"Open the console, once: {gateway.console_link()}", flush=True)
                print("`pointsman console` opens it again; `pointsman token --env` is for clients.", flush=True)

        await serve_until_stopped(build_with_gateway(stores, gateway), settings, greet, stores.directory)
