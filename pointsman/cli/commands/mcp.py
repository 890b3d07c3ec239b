"""`pointsman mcp`: an MCP server on standard input and output, for Claude Code, Codex, an editor (`pointsman[mcp]`)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from pointsman.cli.options.extras import require_extra
from pointsman.cli.options.usage import ProjectOption
from pointsman.cli.session.clone_workplace import CloneWorkplace
from pointsman.cli.session.usable_repository import find_repository
from pointsman.client import Terms, connect
from pointsman.mcp.workplace import Caller

app = typer.Typer(add_completion=False)
PATIENCE_SECONDS = 10.0


@app.command()
def mcp(
    *,
    repo: Annotated[Path | None, typer.Option(help="The git repository; default: the one here, if any.")] = None,
    server: Annotated[str, typer.Option(help="Address of the control plane; default: the running one.")] = "",
    project: ProjectOption = "local",
    as_json: Annotated[bool, typer.Option("--json", help="As it is anyway.")] = True,  # noqa: ARG001 - every command takes it
) -> None:
    """Serve runs as tools, tasks and resources to an MCP client, with the operator's credential; the client starts it."""
    require_extra("mcp")
    asyncio.run(_serve(repo, server, Terms(project=project, patience_seconds=PATIENCE_SECONDS)))


async def _serve(repo: Path | None, server: str, terms: Terms) -> None:
    from mcp.server.stdio import stdio_server

    from pointsman.mcp.server import build_server

    folder = await find_repository(repo)
    workplace = CloneWorkplace(folder) if folder is not None else None

    @asynccontextmanager
    async def open_caller(_request: Any) -> AsyncIterator[Caller]:
        """A connection for each call: the control plane may have moved since the one before."""
        async with connect(server, terms) as client:
            yield Caller(client, workplace)

    built = build_server(open_caller)
    async with stdio_server() as (reading, writing):
        await built.run(reading, writing, built.create_initialization_options())
