"""`pointsman token`: a token of a role, for clients in other languages and for HTTP."""

import json
import os
import re
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from pointsman._shared.files import atomic_write
from pointsman.cli.exit_codes import EXIT_UNREACHABLE
from pointsman.cli.options.usage import fail_usage
from pointsman.credentials.channel import UNIX
from pointsman.credentials.folder import CredentialFolder, CredentialRole
from pointsman.credentials.location import LOCK, data_directory, is_alive, owner_of
from pointsman.credentials.tokens import Identity, mint

app = typer.Typer(add_completion=False)
DURATION = re.compile(r"(\d{1,6})([smhd])")
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
MAX_SECONDS = 3650 * 86400


@app.command()
def token(  # noqa: PLR0913 - one parameter per option
    role: Annotated[str, typer.Argument(help=f"Whose: {', '.join(CredentialRole)}.")] = CredentialRole.OPERATOR,
    *,
    agent: Annotated[str, typer.Option(help="Only for the agent of this id: a principal of its own, ROLE/ID.")] = "",
    expires: Annotated[str, typer.Option(help="How long it lives: 30m, 12h, 7d.")] = "12h",
    env: Annotated[
        bool, typer.Option("--env", help="Write it to a file; print address, authority and file as export lines.")
    ] = False,
    rotate: Annotated[
        bool, typer.Option("--rotate", help="Write a new secret for the role: its tokens and streams end.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As --env, as JSON.")] = False,
) -> None:
    """Print a bearer token of a role; --env prints what a client needs to connect with it."""
    if role not in list(CredentialRole):
        fail_usage(f"there is no role '{role}'; known are {', '.join(CredentialRole)}")
    folder = CredentialFolder.of(data_directory())
    identity = Identity(folder, CredentialRole(role), agent)
    if rotate:
        folder.read_secret(identity.role)
        folder.rotate(identity.role)
        print(f"{role} has a new secret; its old tokens have ended", file=sys.stderr)
    seconds = _seconds(expires)
    if not env and not as_json:
        print(mint(identity, seconds))
        return
    variables = _variables(identity, seconds)
    if as_json:
        print(json.dumps(variables, indent=2))
        return
    for name, value in variables.items():
        print(f"export {name}={shlex.quote(value)}")


def _seconds(expires: str) -> int:
    found = DURATION.fullmatch(expires)
    seconds = int(found[1]) * SECONDS[found[2]] if found else 0
    if not 0 < seconds <= MAX_SECONDS:
        fail_usage("--expires is a number with s, m, h or d, such as 30m, 12h or 7d; ten years at most")
    return seconds


def _variables(identity: Identity, seconds: int) -> dict[str, str]:
    """What a client's environment needs; the token stays in a file that only its owner can read."""
    server, is_insecure = _server()
    if is_insecure:
        return {"POINTSMAN_SERVER": server, "POINTSMAN_CLIENT_INSECURE_LOOPBACK": "true"}
    path = identity.folder.path / "tokens" / f"{identity.principal.replace('/', '@')}.token"
    path.parent.mkdir(mode=0o700, exist_ok=True)
    atomic_write(path, mint(identity, seconds) + "\n")
    return {
        "POINTSMAN_SERVER": server,
        "POINTSMAN_CLIENT_AUTHORITY": str(identity.folder.authority),
        "POINTSMAN_CLIENT_TOKEN": str(path),
    }


def _server() -> tuple[str, bool]:
    """The TCP address of the control plane, and whether it takes no credentials."""
    named = os.environ.get("POINTSMAN_SERVER", "")
    if named:
        return named, False
    directory: Path = data_directory()
    for lock in (LOCK, "orchestrator.lock"):
        owner = owner_of(directory / lock)
        if owner is not None and owner.tcp and is_alive(owner.pid):
            return owner.tcp, not owner.address.startswith(UNIX)
    print(f"pointsman: no control plane runs on {directory}; start one: pointsman up", file=sys.stderr)
    sys.exit(EXIT_UNREACHABLE)
