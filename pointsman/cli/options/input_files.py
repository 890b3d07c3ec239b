"""What commands read: a file that is named, or standard input."""

import sys
from pathlib import Path

import typer


def read_bytes(name: str) -> bytes:
    """What is in a file, or for `-` on standard input; a file that cannot be read ends the command as a wrong use."""
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).expanduser().read_bytes()
    except OSError as error:
        raise typer.BadParameter(f"cannot read '{name}': {error.strerror}") from None
    except (ValueError, RuntimeError) as error:
        raise typer.BadParameter(f"cannot read '{name}': {error}") from None


def read_text(name: str) -> str:
    """The text of a file; one that is no text ends the command."""
    try:
        return read_bytes(name).decode()
    except UnicodeDecodeError:
        raise typer.BadParameter(f"'{name}' is not UTF-8 text") from None
