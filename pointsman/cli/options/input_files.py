"""Input files: a named file, or standard input."""

import sys
from pathlib import Path

import typer


def read_bytes(name: str) -> bytes:
    """Reads a file, or standard input for `-`; a file that cannot be read is a usage error."""
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).expanduser().read_bytes()
    except OSError as error:
        raise typer.BadParameter(f"cannot read '{name}': {error.strerror}") from None
    except (ValueError, RuntimeError) as error:
        raise typer.BadParameter(f"cannot read '{name}': {error}") from None


def read_text(name: str) -> str:
    """Reads a text file; a file that is not UTF-8 is a usage error."""
    try:
        return read_bytes(name).decode()
    except UnicodeDecodeError:
        raise typer.BadParameter(f"'{name}' is not UTF-8 text") from None
