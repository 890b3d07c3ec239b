"""`pointsman route …`: decide a message, measure and print the rules, read the log, policy, outcomes and debates."""

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperGroup

from pointsman.cli.commands.route import log, outcomes, policy, rules, text

DEFAULT_COMMAND = "text"


class TextByDefault(TyperGroup):
    """Takes arguments without a subcommand as the text of a message."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Inserts the default subcommand where none is named."""
        named = next((argument for argument in args if not argument.startswith("-")), None)
        if args and "--help" not in args and (named is None or named not in self.commands):
            dashed = [argument for argument in args if argument.startswith("-") and " " in argument]
            others = [argument for argument in args if argument not in dashed]
            args = [DEFAULT_COMMAND, *others, *(["--", *dashed] if dashed else [])]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=TextByDefault,
    add_completion=False,
    no_args_is_help=True,
    help='Decide who should take a message: pointsman route "fix the tests in src/". Needs no server.',
)

COMMANDS: dict[str, Callable[..., None]] = {
    DEFAULT_COMMAND: text.text,
    "explain": rules.explain,
    "eval": rules.evaluate,
    "prompt": rules.prompt,
    "log": log.log,
    "stats": log.stats,
    "policy": policy.policy,
    "outcome": outcomes.outcome,
    "debate": outcomes.debate,
}

for name, command in COMMANDS.items():
    app.command(name)(command)
