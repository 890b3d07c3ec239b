"""What commands write: files that are whole or not there."""

from pathlib import Path

import typer

from pointsman._shared.files import atomic_write


def write_file(name: str | Path, text: str) -> None:
    """Write a file atomically; one that cannot be written ends the command as a wrong use."""
    try:
        atomic_write(Path(name).expanduser(), text)
    except OSError as error:
        raise typer.BadParameter(f"cannot write '{name}': {error.strerror}") from None
    except (ValueError, RuntimeError) as error:
        raise typer.BadParameter(f"cannot write '{name}': {error}") from None
