"""`pointsman route log` and `pointsman route stats`: what was decided, day by day and in numbers."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from pointsman._shared.files import atomic_write
from pointsman.cli.commands.route.options import AsJson, Project, Server, ask, usage
from pointsman.cli.session.router_client import RouterCalls


def log(
    day: Annotated[str, typer.Option(help="YYYY-MM-DD, in UTC; default: today.")] = "",
    write: Annotated[Path | None, typer.Option(help="Write memory/YYYY-MM-DD.md below this directory.")] = None,
    project: Project = "local",
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Print one day's decisions as markdown."""
    from pointsman.api.router.v1 import log_pb2
    from pointsman.services.chassis.core.clock import SystemClock

    wanted = day or f"{SystemClock().now():%Y-%m-%d}"

    async def export(calls: RouterCalls) -> str:
        parts = calls.stream("ExportLog", log_pb2.ExportLogRequest(day=wanted))
        return "".join([part.markdown async for part in parts])

    markdown = ask(server, project, export)
    if write is None:
        print(
            json.dumps({"day": wanted, "markdown": markdown}, ensure_ascii=False) + "\n" if as_json else markdown,
            end="",
        )
        return
    file = write / "memory" / f"{wanted}.md"
    try:
        atomic_write(file, markdown)
    except OSError as error:
        raise usage(f"--write: cannot write {file}: {error.strerror}; name a directory that you can write") from None
    print(json.dumps({"day": wanted, "file": str(file)}) if as_json else file)


def stats(
    days: Annotated[int, typer.Option(min=1, max=3650, help="How many days back, until now.")] = 30,
    project: Project = "local",
    server: Server = "",
    as_json: AsJson = False,
) -> None:
    """Print the rates of each mode, the confidence distribution and the override rate."""
    from pointsman.api.router.v1 import log_pb2
    from pointsman.cli.render.json_output import as_dict
    from pointsman.services.chassis.core.clock import SystemClock

    request = log_pb2.GetStatsRequest()
    request.window.start.FromDatetime(SystemClock().now() - timedelta(days=days))
    answer = ask(server, project, lambda calls: calls.call("GetStats", request))
    shown = as_dict(answer, whole=True)
    print(json.dumps(shown, indent=2) if as_json else "\n".join(f"{name:<15} {value}" for name, value in shown.items()))
