"""Options about the terms of a run."""

from typing import Annotated

import typer

from pointsman.cli.options.run_options import BUDGET_FIELDS

BarrierTimeoutOption = Annotated[
    float | None,
    typer.Option("--barrier-timeout", help="Seconds that a barrier waits; default: the pipeline service's setting."),
]
LenientOption = Annotated[
    bool, typer.Option("--lenient", help="Go on past a judge that cannot be read, instead of asking you.")
]
AcceptOption = Annotated[
    list[str] | None,
    typer.Option("--accept", help="What must hold besides, in words, several times; each needs a claim that stands."),
]
BudgetOption = Annotated[
    str, typer.Option("--budget", help=f"For example assignments=50,minutes=30; also {', '.join(BUDGET_FIELDS)}.")
]
IncludeChangesOption = Annotated[bool, typer.Option("--include-changes", help="Start from uncommitted changes too.")]
