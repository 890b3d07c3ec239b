"""Options about the terms of a run."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pointsman.cli.options.run_options import BUDGET_FIELDS
from pointsman.cli.options.usage import fail_usage


class Requirement(StrEnum):
    """What work has to be worth."""

    PROVEN = "proven"
    UNBROKEN = "unbroken"


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
    str,
    typer.Option(
        "--budget",
        metavar="NAME=NUMBER,…",
        help=f"What it may use, separated by commas: minutes, {', '.join(BUDGET_FIELDS)}.",
    ),
]


def require_task(given: str) -> str:
    """Refuses an empty task."""
    if not given.strip():
        fail_usage('the task is empty: say what is wanted, for example `pointsman run "fix the failing test"`')
    return given


TaskArgument = Annotated[str, typer.Argument(help="What is wanted, in your words.", callback=require_task)]
VerifyOption = Annotated[
    list[str] | None,
    typer.Option("--verify", help="A command that proves the work, several times; each is proven apart."),
]
FixesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--fixes", metavar="ID", help="A test that fails now and must pass in what is delivered, several times."
    ),
]
VerifyFromOption = Annotated[
    str,
    typer.Option(
        "--verify-from", metavar="DIR|REF:PATH", help="Checks that no agent ever sees; they judge what is delivered."
    ),
]
RequireOption = Annotated[
    Requirement | None, typer.Option("--require", help="The least grade that is accepted without asking you.")
]
TestsMayChangeOption = Annotated[
    bool, typer.Option("--tests-may-change", help="Changed tests are asked about, not refused.")
]
VerboseOption = Annotated[bool, typer.Option("--verbose", help="Show the states of the machine too.")]
TasksOption = Annotated[
    Path | None,
    typer.Option(
        "--tasks",
        metavar="FILE",
        help="Your own plan: our tasks.md, spec-kit's, beads' issues.jsonl, `gh issue list --json …`, task-master's.",
        exists=True,
        dir_okay=False,
    ),
]
TagOption = Annotated[
    str, typer.Option("--tag", help="Which list of a tasks.json of task-master to take; default: master.")
]
IncludeChangesOption = Annotated[bool, typer.Option("--include-changes", help="Start from uncommitted changes too.")]
