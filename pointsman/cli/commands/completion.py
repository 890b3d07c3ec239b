"""`pointsman completion SHELL`: a completion script with every command, subcommand and option of this version."""

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from pointsman.cli.options.usage import fail_usage

app = typer.Typer(add_completion=False)

BASH = """_pointsman() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" words
  case "${{COMP_CWORD}}:${{COMP_WORDS[1]}}" in
    1:*) words="{names}" ;;
{cases}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _pointsman pointsman
"""
ZSH = "autoload -U +X bashcompinit && bashcompinit\n"


@app.command()
def completion(
    *,
    shell: Annotated[str, typer.Argument(help="bash, zsh or fish.")],
    as_json: Annotated[bool, typer.Option("--json", help="The words by command, as JSON.")] = False,
) -> None:
    """Print a completion script for a shell; the examples below say where it goes."""
    words = completed_words()
    if as_json:
        print(json.dumps(words, indent=2))
    elif shell in SCRIPTS:
        print(SCRIPTS[shell](words), end="")
    else:
        fail_usage(f"there is no completion for '{shell}'; there is one for {', '.join(SCRIPTS)}")


def completed_words() -> dict[str, list[str]]:
    """For each command the words that can follow it: subcommands and long options."""
    from pointsman.cli.commands import COMMANDS

    return {name: _words(typer.main.get_command(command.load())) for name, command in COMMANDS.items()}


def _words(command: Any) -> list[str]:
    subcommands: Mapping[str, Any] = getattr(command, "commands", {})
    found = {option for one in (command, *subcommands.values()) for item in one.params for option in item.opts}
    return [*subcommands, *sorted(option for option in found if option.startswith("--")), "--help"]


def _bash(words: Mapping[str, list[str]]) -> str:
    cases = "\n".join(f'    *:{name}) words="{" ".join(known)}" ;;' for name, known in words.items())
    return BASH.format(names=" ".join(words), cases=cases)


def _zsh(words: Mapping[str, list[str]]) -> str:
    return ZSH + _bash(words)


def _fish(words: Mapping[str, list[str]]) -> str:
    lines = [f"complete -c pointsman -f -n __fish_use_subcommand -a '{' '.join(words)}'"]
    for name, known in words.items():
        lines.append(f"complete -c pointsman -n '__fish_seen_subcommand_from {name}' -a '{' '.join(known)}'")
    return "\n".join(lines) + "\n"


SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
