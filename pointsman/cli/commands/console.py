"""`pointsman console`: opens the web console with a one-time code."""

import json
import os
import sys
import webbrowser
from html import escape
from pathlib import Path
from typing import Annotated

import typer

from pointsman._shared.files import atomic_write
from pointsman.cli.exit_codes import EXIT_UNREACHABLE
from pointsman.credentials.channel import UNIX
from pointsman.credentials.console_code import login_link
from pointsman.credentials.folder import CredentialFolder, CredentialRole
from pointsman.credentials.location import CONSOLE_LOCK, LOCK, Owner, data_directory, is_alive, owner_of

app = typer.Typer(add_completion=False)
OPENED = "console.html"
PAGE = (
    '<!doctype html><title>Pointsman</title><meta http-equiv="refresh" content="0;url={link}"><a href="{link}">Open</a>'
)


@app.command()
def console(
    *,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the link.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Where the console is, as JSON; without a code.")] = False,
) -> None:
    """Open the console in a browser; the link counts once, and for five minutes."""
    directory = data_directory()
    owner = _owner(directory)
    if as_json:
        print(json.dumps({"console": owner.console}))
        return
    folder = CredentialFolder.of(directory)
    is_open = not owner.address.startswith(UNIX)
    link = owner.console if is_open else login_link(folder.read_secret(CredentialRole.GATEWAY), owner.console)
    print(link, flush=True)
    if not no_browser and _has_display():
        webbrowser.open(link if is_open else _page(folder, link).as_uri())


def _owner(directory: Path) -> Owner:
    """The process whose console it is."""
    for lock in (LOCK, CONSOLE_LOCK):
        owner = owner_of(directory / lock)
        if owner is not None and owner.console and is_alive(owner.pid):
            return owner
    print(f"pointsman: no console runs on {directory}; start one: pointsman up", file=sys.stderr)
    sys.exit(EXIT_UNREACHABLE)


def _page(folder: CredentialFolder, link: str) -> Path:
    """A page that leads to the link: the arguments of a browser can be read by everybody on the machine."""
    path = folder.path / OPENED
    atomic_write(path, PAGE.format(link=escape(link)))
    return path


def _has_display() -> bool:
    """Whether a browser would open beside the terminal, not in it."""
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
