"""`pointsman up`: every service in one process."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from pointsman.cli.options.crew_options import (
    AgentOption,
    CoderOption,
    CommandOption,
    ParallelOption,
    PlannerOption,
    ResearcherOption,
    ReviewerOption,
)
from pointsman.cli.options.sandbox_options import EnvironmentOption, IsolationOption, ReadOption, RepositoryOption
from pointsman.cli.options.server import server_settings
from pointsman.cli.options.usage import ProjectOption, fail_usage
from pointsman.cli.session.crew import CrewOptions
from pointsman.cli.session.embedding import claim_for_up
from pointsman.cli.session.resident_crew import NO_CREW, ResidentCrew, resident_crew
from pointsman.cli.session.resident_notifier import resident_notifier
from pointsman.credentials.location import LOCK
from pointsman.services.all_in_one import CONTEXTS, build_with_gateway
from pointsman.services.chassis.core.config import ServerSettings, StoreSettings, load
from pointsman.services.chassis.rpc.loopback import loopback_credentials
from pointsman.services.chassis.runtime.service import Running, serve_until_stopped
from pointsman.services.chassis.telemetry.logs import configure_logs
from pointsman.services.gateway.__main__ import GatewayServer
from pointsman.services.gateway.config import GatewaySettings

app = typer.Typer(add_completion=False)


@dataclass(frozen=True, slots=True)
class UpOptions:
    """The options of `pointsman up` that say what else it starts, and how it speaks."""

    console_port: int | None
    repo: Path | None
    crew: CrewOptions | None
    """None for no workers."""
    project: str
    as_json: bool
    notifies: bool = True


@app.command()
def up(  # noqa: PLR0913 - one parameter per option
    *,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0 lets the system choose.")] = None,
    data: Annotated[Path | None, typer.Option(help="Directory of the stores (default: POINTSMAN_DATA).")] = None,
    console_port: Annotated[int | None, typer.Option(help="Port of the web console and HTTP; 0 as for --port.")] = None,
    no_crew: Annotated[bool, typer.Option("--no-crew", help="Start no workers, whatever pointsman.toml says.")] = False,
    no_notify: Annotated[
        bool, typer.Option("--no-notify", help="Notify nobody, whatever pointsman.toml says.")
    ] = False,
    repo: RepositoryOption = None,
    agent: AgentOption = "",
    command: CommandOption = "",
    planner: PlannerOption = "",
    researcher: ResearcherOption = "",
    coder: CoderOption = "",
    reviewer: ReviewerOption = "",
    parallel: ParallelOption = 0,
    env: EnvironmentOption = None,
    read: ReadOption = None,
    project: ProjectOption = "local",
    _isolation: IsolationOption = "",
    log_json: Annotated[bool, typer.Option("--log-json", help="Logs as JSON lines.")] = False,
    insecure_loopback: Annotated[
        bool, typer.Option("--insecure-loopback", help="Ask nobody on this machine for a credential; for tests only.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Where it serves, as a line of JSON.")] = False,
) -> None:
    """Start all services in this process, and the crew of the repository here; serve until stopped."""
    configure_logs(as_json=log_json)
    stores = load(StoreSettings, **({"data": data} if data is not None else {}))
    os.environ["POINTSMAN_DATA"] = str(stores.directory)  # the workers of this process find it there
    settings = server_settings(port, insecure_loopback=insecure_loopback)
    chosen = console_port if console_port is not None else 0 if port == 0 else None
    roles = {"planner": planner, "researcher": researcher, "coder": coder, "reviewer": reviewer}
    crew = CrewOptions(agent, command, roles, parallel, env=tuple(env or ()), read=tuple(read or ()))
    if no_crew and crew.named():
        fail_usage("--no-crew starts no workers, and other options name some; leave one of them out")
    options = UpOptions(chosen, repo, None if no_crew else crew, project, as_json, not no_notify)
    asyncio.run(_serve(stores, settings, options))


async def _serve(stores: StoreSettings, settings: ServerSettings, options: UpOptions) -> None:
    crew = await resident_crew(options.repo, options.crew) if options.crew is not None else None
    notifier = await resident_notifier(options.repo, options.project) if options.notifies else None
    lock = stores.directory / LOCK
    with await claim_for_up(lock) as claim:
        port = {"port": options.console_port} if options.console_port is not None else {}
        gateway = GatewayServer(load(GatewaySettings, **port), loopback_credentials(settings, stores.directory))

        def greet(running: Running) -> None:
            claim.announce(running.local_address, running.address, gateway.address)
            _greet(running, gateway, crew, options)
            if notifier is not None and not options.as_json:
                print(notifier.line, flush=True)

        @asynccontextmanager
        async def beside() -> AsyncIterator[None]:
            async with AsyncExitStack() as stack:
                if crew is not None:
                    await stack.enter_async_context(crew.working(lock, options.project))
                if notifier is not None:
                    await stack.enter_async_context(notifier.working(lock, gateway.address))
                yield

        await serve_until_stopped(build_with_gateway(stores, gateway), settings, greet, stores.directory, beside())


def _greet(running: Running, gateway: GatewayServer, crew: ResidentCrew | None, options: UpOptions) -> None:
    """Says where it serves, and who works here."""
    if options.as_json:
        agents = list(crew.worker.agent_ids) if crew else []
        where = {"address": running.address, "services": CONTEXTS, "console": gateway.address, "agents": agents}
        print(json.dumps(where), flush=True)
        return
    print(f"Pointsman is up at {running.address} (gRPC: {', '.join(CONTEXTS)}).", flush=True)
    print(f"Console and HTTP at {gateway.address}. Ctrl-C stops it.", flush=True)
    if gateway.console_link() != gateway.address:
        print(f"Open the console, once: {gateway.console_link()}", flush=True)
        print("`pointsman console` opens it again; `pointsman token --env` is for clients.", flush=True)
    for line in crew.lines() if crew else [NO_CREW] if options.crew is not None else []:
        print(line, flush=True)
