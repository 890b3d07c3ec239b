"""`pointsman evidence run -- COMMAND`: run a command and keep what it proves; agents call it."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from pointsman.worker.evidence import capture, entry

app = typer.Typer(add_completion=False)


@app.callback()
def evidence() -> None:
    """Take evidence."""


@app.command()
def run(
    *,
    command: Annotated[list[str], typer.Argument(help="The command, after `--`.")],
    evidence_id: Annotated[str, typer.Option("--id", help="Its id; default: E1, E2, …")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="As it is anyway.")] = True,  # noqa: ARG001 - every command takes it
) -> None:
    """Run a command here; its exit code, digest, excerpt and tree go into the handoff folder and to standard output."""
    taken = asyncio.run(capture(command, Path(), evidence_id))
    print(json.dumps(entry(taken), ensure_ascii=False))
    sys.exit(taken.exit_code if 0 <= taken.exit_code <= 255 else 1)
