"""Usage errors, and checks of option values that several commands share."""

import sys
from typing import Annotated, NoReturn

import typer

from pointsman.cli.exit_codes import EXIT_USAGE
from pointsman.project import command_line


def fail_usage(message: str) -> NoReturn:
    """Ends the command with the exit code for wrong use."""
    print(f"pointsman: {message}", file=sys.stderr)
    sys.exit(EXIT_USAGE)


def split_command(command: str, option: str) -> tuple[str, ...]:
    """Splits a command line into its arguments; no shell interprets it (`sh -c '…'` names one)."""
    if not command.strip():
        fail_usage(f"{option} needs a command")
    try:
        return command_line.split_command(command).arguments
    except command_line.InvalidCommand as error:
        fail_usage(f"{option} cannot be read: `{command}` {error}")


def project_name(given: str) -> str:
    """Refuses a project name that gRPC metadata cannot carry; the service checks the rest."""
    if not (given.isascii() and given.isprintable()):
        raise typer.BadParameter("a project's name has 1 to 64 letters, digits, '_', '.' or '-'")
    return given


ProjectOption = Annotated[
    str,
    typer.Option("--project", envvar="POINTSMAN_PROJECT", help="The project to work in.", callback=project_name),
]
