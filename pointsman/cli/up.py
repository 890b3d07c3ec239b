"""`pointsman up`: every service in one process."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from pointsman.cli.plane import CONTEXTS, LOCK, build_all
from pointsman.services.chassis.config import ServerSettings, StoreSettings, load
from pointsman.services.chassis.owner import Claim
from pointsman.services.chassis.service import serve_until_stopped
from pointsman.services.chassis.telemetry import configure_logs

app = typer.Typer(add_completion=False)


@app.command()
def up(
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0 lets the system choose.")] = None,
    data: Annotated[Path | None, typer.Option(help="Directory of the stores (default: POINTSMAN_DATA).")] = None,
    log_json: Annotated[bool, typer.Option("--log-json", help="Logs as JSON lines.")] = False,
) -> None:
    """Start all services in this process and serve until stopped."""
    configure_logs(as_json=log_json)
    stores = load(StoreSettings, **({"data": data} if data is not None else {}))
    settings = load(ServerSettings, **({"port": port} if port is not None else {}))
    with Claim(stores.directory / LOCK) as claim:
        asyncio.run(serve_until_stopped(build_all(stores, CONTEXTS), settings, lambda address: _greet(claim, address)))


def _greet(claim: Claim, address: str) -> None:
    claim.announce(address)
    print(f"Pointsman is up at {address} (gRPC: {', '.join(CONTEXTS)}). Ctrl-C stops it.", flush=True)
