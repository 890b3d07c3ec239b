"""Command lines of people: split into arguments as a shell would, and run without one."""

import re
import shlex
from dataclasses import dataclass

_OPERATORS = {**{letter: f"`{letter}`" for letter in "|&;<>()$`"}, "\n": "a line break"}
_TOKEN = re.compile(r"""\\.|'[^']*'|"(?:\\.|[^"\\])*"|.""", re.DOTALL)
_EXPANSION = re.compile(r"[$`]")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_BUILT_IN = frozenset({"cd", "export", "source", ".", "eval", "set", "ulimit", "alias"})


class InvalidCommand(Exception):
    """A command line that cannot be run without a shell, or is none."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command line as its author wrote it, and its arguments."""

    text: str
    arguments: tuple[str, ...]


def split_command(text: str) -> Command:
    """Splits a command line; whatever only a shell understands is refused with the way to name a shell."""
    if "\0" in text:
        raise InvalidCommand("holds a NUL character")
    construct = _shell_construct(text.strip())
    if construct:
        raise InvalidCommand(f"has {construct}, which only a shell understands; write {shlex.join(('sh', '-c', text))}")
    try:
        arguments = tuple(shlex.split(text))
    except ValueError as error:
        raise InvalidCommand(f"cannot be split into arguments: {str(error).lower()}") from None
    if not arguments:
        raise InvalidCommand("is empty")
    if _ASSIGNMENT.match(arguments[0]):
        raise InvalidCommand(f"begins with a variable, as only a shell allows; write env {text}")
    if arguments[0] in _BUILT_IN:
        raise InvalidCommand(
            f"begins with `{arguments[0]}`, a word of the shell; write {shlex.join(('sh', '-c', text))}"
        )
    return Command(text, arguments)


def _shell_construct(text: str) -> str:
    """The first operator outside quotes, or expansion outside single quotes; empty when there is none."""
    for token in _TOKEN.findall(text):
        if token.startswith('"'):
            expansion = _EXPANSION.search(token)
            if expansion:
                return f"`{expansion[0]}`"
        elif token in _OPERATORS:
            return _OPERATORS[token]
    return ""
