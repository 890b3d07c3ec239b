"""`pointsman proof run` and `pointsman proof explain`: prove a working tree or branch without a control plane."""

import typer

from pointsman.cli.commands.proof import explain, run

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Prove a change with tests that its author could not touch."
)
app.command("run")(run.run)
app.command("explain")(explain.explain)
