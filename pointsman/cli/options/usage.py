"""Usage errors, and checks of option values that several commands share."""

import shlex
import sys
from typing import NoReturn

import typer

from pointsman.cli.exit_codes import EXIT_USAGE


def fail_usage(message: str) -> NoReturn:
    """Ends the command with the exit code for wrong use."""
    print(f"pointsman: {message}", file=sys.stderr)
    sys.exit(EXIT_USAGE)


def split_command(command: str, option: str) -> tuple[str, ...]:
    """Splits a command line into its arguments; no shell interprets it (`sh -c '…'` names one)."""
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        fail_usage(f"{option} cannot be read: {error}: {command}")
    if not words:
        fail_usage(f"{option} needs a command")
    return words


def project_name(given: str) -> str:
    """Refuses a project name that gRPC metadata cannot carry; the service checks the rest."""
    if not (given.isascii() and given.isprintable()):
        raise typer.BadParameter("a project's name has 1 to 64 letters, digits, '_', '.' or '-'")
    return given
