"""Options about what a command may see, and how strongly it is isolated."""

from pathlib import Path
from typing import Annotated

import typer

from pointsman.cli.options.usage import fail_usage
from pointsman.sandbox import Level, TooWeak, UnknownLevel, level_named, require


def require_isolation(given: str) -> str:
    """Checks --require-isolation: ends the command on a machine that isolates less."""
    try:
        least = level_named(given or Level.NONE.name)
        if least > Level.NONE:
            require(least)
    except UnknownLevel as error:
        fail_usage(f"--require-isolation: {error}")
    except TooWeak as error:
        fail_usage(f"--require-isolation: {error}; `pointsman doctor` shows what was tried")
    return given


RepositoryOption = Annotated[
    Path | None, typer.Option("--repo", help="The git repository to work on; default: here, if here is one.")
]
OfferedOption = Annotated[
    Path | None,
    typer.Option(
        "--repo",
        help="The git repository to work on; without agents of your own, also the name of one that a worker offers; "
        "default: here, if here is one.",
    ),
]
EnvironmentOption = Annotated[
    list[str] | None, typer.Option("--env", help="A variable to pass on to the coder, several times.")
]
ReadOption = Annotated[
    list[Path] | None, typer.Option("--read", help="A file or folder that the coder may read, several times.")
]
IsolationOption = Annotated[
    str,
    typer.Option(
        "--require-isolation",
        callback=require_isolation,
        help=f"Refuse to start where commands are isolated less than this: {', '.join(map(str, Level))}.",
    ),
]
BaselineOption = Annotated[
    bool, typer.Option("--no-baseline", help="Do not try set-up and proof on the base before anything is submitted.")
]
