"""Options that say who plays which role of a run."""

from typing import Annotated

import typer

_WHO = "an agent's name, or cmd:COMMAND LINE"
AgentOption = Annotated[
    str,
    typer.Option(
        "--agent",
        help="Who plays planner, researcher, coder and reviewer: claude, codex, gemini, aider, opencode.",
    ),
]
CONTRACT = (
    "It finds its task in $POINTSMAN_HANDOFF/prompt.md, changes the files of its working directory, and writes "
    "claims.json, evidence.json and changed_files.json into $POINTSMAN_HANDOFF (docs/agents.md)."
)
"""What a command line of one's own gets as a coder, and what it has to leave."""
CommandOption = Annotated[str, typer.Option("--command", help=f"The coder, as a command line of your own. {CONTRACT}")]
PlannerOption = Annotated[str, typer.Option("--planner", help=f"Who plans: {_WHO}.")]
ResearcherOption = Annotated[str, typer.Option("--researcher", help=f"Who answers the plan's questions: {_WHO}.")]
CoderOption = Annotated[str, typer.Option("--coder", help=f"Who writes the code: {_WHO}.")]
ReviewerOption = Annotated[str, typer.Option("--reviewer", help=f"Who reviews the code: {_WHO}.")]
ResolverOption = Annotated[
    str,
    typer.Option("--resolver", help=f"Who tries once more after two linked runs, before a person is asked: {_WHO}."),
]
ParallelOption = Annotated[
    int,
    typer.Option(
        "--parallel", min=0, max=64, help="How many coders at the same time; default: that of pointsman.toml, else 2."
    ),
]
BestOfOption = Annotated[
    int,
    typer.Option(
        "--best-of",
        min=0,
        max=16,
        help="How many coders do each task side by side; the best work goes on. Costs as many starts.",
    ),
]
SoloOption = Annotated[bool, typer.Option("--solo", help="One coder on one task: no planner, no reviewer.")]
ShareOption = Annotated[
    bool,
    typer.Option(
        "--share",
        help="Agents of other workers may take its work; its own do it first, and that of other runs besides.",
    ),
]
