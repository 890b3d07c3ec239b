"""Options that both commands of `pointsman proof` take."""

from pathlib import Path
from typing import Annotated

import typer

BaseRef = Annotated[
    str,
    typer.Option("--base", metavar="REF", help="Where the work started. Default: HEAD, or where the branch left main."),
]
TreeRef = Annotated[
    str,
    typer.Option("--tree", metavar="REF", help="The commit or branch to prove. Default: the working tree as it is."),
]
RepoAt = Annotated[Path | None, typer.Option("--repo", metavar="DIR", help="The repository. Default: the one here.")]
Verify = Annotated[
    list[str],
    typer.Option("--verify", metavar="COMMAND", help="What proves the work; repeatable. Default: pointsman.toml."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
