"""`pointsman notify`: tells a person about every question of a run, by webhook, Slack, ntfy or a command."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from pointsman.cli.options.usage import fail_usage, project_name, split_command
from pointsman.cli.session.control_plane import Absent, control_plane
from pointsman.client import Terms
from pointsman.notify.delivery import Channel
from pointsman.notify.follower import Place, follow
from pointsman.notify.notice import Receiver
from pointsman.services.chassis.core.config import StoreSettings, load

app = typer.Typer(add_completion=False)
PATIENCE_SECONDS = 3600.0
WEB = ("http://", "https://")


@app.command()
def notify(  # noqa: PLR0913 - one parameter per option
    *,
    webhook: Annotated[str, typer.Option(help="Address that takes JSON; signed with --secret-file.")] = "",
    slack: Annotated[str, typer.Option(help="Address of an incoming webhook of Slack.")] = "",
    ntfy: Annotated[str, typer.Option(help="Address of a topic of ntfy.")] = "",
    command: Annotated[str, typer.Option(help="A command that gets the notice as its last argument.")] = "",
    secret_file: Annotated[Path | None, typer.Option(help="File with the secret that signs notices.")] = None,
    console: Annotated[str, typer.Option(help="Address of the console, for links to the question.")] = "",
    server: Annotated[str, typer.Option(help="Address of the control plane.")] = "",
    project: Annotated[str, typer.Option(help="The project.", callback=project_name)] = "local",
    as_json: Annotated[bool, typer.Option("--json", help="Nothing is printed.")] = False,  # noqa: ARG001 - every command takes it
) -> None:
    """Follow all runs and tell about each question, at least once and with the question's id; runs until it is stopped."""
    named = {Receiver.WEBHOOK: webhook, Receiver.SLACK: slack, Receiver.NTFY: ntfy}
    given = [(receiver, address) for receiver, address in named.items() if address]
    if len(given) > 1 or not (given or command):
        fail_usage("name one of --webhook, --slack and --ntfy, or --command, or a command beside an address")
    receiver, address = given[0] if given else (Receiver.WEBHOOK, "")
    if address and not address.startswith(WEB):
        fail_usage(f"--{receiver} takes an address that begins with http:// or https://")
    secret = secret_file.read_text().strip() if secret_file is not None else ""
    channel = Channel(address, receiver, secret, split_command(command, "--command") if command else ())
    place = Place.read(load(StoreSettings).directory / f"notify-{project}-{receiver}.json")
    asyncio.run(_follow(channel, place, console, (server, project)))


async def _follow(channel: Channel, place: Place, console: str, where: tuple[str, str]) -> None:
    server, project = where
    async with control_plane(server, absent=Absent.WAIT) as plane:
        await follow(plane.client(Terms(project=project, patience_seconds=PATIENCE_SECONDS)), place, channel, console)
