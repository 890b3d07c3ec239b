"""Output files, written atomically."""

from pathlib import Path

import typer

from pointsman._shared.files import atomic_write


def write_file(name: str | Path, text: str) -> None:
    """Writes a file atomically; a file that cannot be written is a usage error."""
    try:
        atomic_write(Path(name).expanduser(), text)
    except OSError as error:
        raise typer.BadParameter(f"cannot write '{name}': {error.strerror}") from None
    except (ValueError, RuntimeError) as error:
        raise typer.BadParameter(f"cannot write '{name}': {error}") from None
