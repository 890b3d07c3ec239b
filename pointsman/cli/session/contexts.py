"""Contexts: named control planes, each with its project and credentials, of which one is in use.

A context counts as a whole, so that its token is never shown to a server that somebody named beside it: where an option or
the environment names a control plane, nothing of the context is used. It reaches commands as their variables.
"""

import json
import os
import sys
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from pointsman._shared.files import atomic_write, make_private_folder
from pointsman.cli.exit_codes import EXIT_USAGE

VARIABLES: Mapping[str, str] = {
    "server": "POINTSMAN_SERVER",
    "data": "POINTSMAN_DATA",
    "project": "POINTSMAN_PROJECT",
    "token": "POINTSMAN_CLIENT_TOKEN",
    "authority": "POINTSMAN_CLIENT_AUTHORITY",
    "certificate": "POINTSMAN_CLIENT_CERTIFICATE",
    "key": "POINTSMAN_CLIENT_KEY",
}
"""The variable of each field of a context."""
NAMED = "POINTSMAN_CONTEXT"
WITHOUT = ("context", "completion")
"""Commands that work with any contexts, also with a file that cannot be read."""
ELSEWHERE = ("POINTSMAN_SERVER", "POINTSMAN_DATA", "POINTSMAN_DATABASE_URL")
"""Variables that name a control plane themselves."""


@dataclass(frozen=True, slots=True)
class Contexts:
    """All contexts by name, their fields by name, and the one in use."""

    contexts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    current: str = ""

    def variables(self, name: str) -> dict[str, str]:
        """What a context sets."""
        return {VARIABLES[key]: value for key, value in self.contexts[name].items()}


def contexts_file() -> Path:
    """Where contexts are stored."""
    folder = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(os.environ.get("POINTSMAN_CONTEXTS") or Path(folder) / "pointsman" / "contexts.json").expanduser()


def read_contexts() -> Contexts:
    """The stored contexts; ends the command if the file cannot be read as what this program writes."""
    path = contexts_file()
    try:
        read: Any = json.loads(path.read_text())
        return Contexts({str(name): _known(fields) for name, fields in read["contexts"].items()}, str(read["current"]))
    except FileNotFoundError:
        return Contexts()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        _refuse(f"{path} cannot be read: {error}; repair it, or remove it and add your contexts again")


def write_contexts(contexts: Contexts) -> None:
    """Stores contexts in a folder that only its owner can read."""
    make_private_folder(contexts_file().parent)
    atomic_write(contexts_file(), json.dumps(asdict(contexts), indent=2) + "\n")


def apply_context(command: str, arguments: Sequence[str], environment: MutableMapping[str, str]) -> None:
    """Gives a command the variables of the context in use, unless it or the environment names a control plane itself."""
    if command in WITHOUT or names_control_plane(arguments, environment):
        return
    found = read_contexts()
    name = environment.get(NAMED) or found.current
    if not name:
        return
    if name not in found.contexts:
        known = ", ".join(sorted(found.contexts)) or "none yet"
        _refuse(f"there is no context '{name}' (known: {known}); `pointsman context add {name} --server …` makes it")
    for variable, value in found.variables(name).items():
        environment.setdefault(variable, value)


def names_control_plane(arguments: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Whether options or variables name a control plane."""
    by_option = any(word == "--server" or word.startswith("--server=") for word in arguments)
    return by_option or any(environment.get(name) for name in ELSEWHERE)


def origin_of(variable: str, environment: Mapping[str, str]) -> str:
    """Where the value of a variable comes from: the context in use, the environment, or nowhere."""
    if variable not in environment:
        return ""
    found = read_contexts()
    name = environment.get(NAMED) or found.current
    if name in found.contexts and found.variables(name).get(variable) == environment[variable]:
        return f"context {name}"
    return f"environment {variable}"


def _known(fields: Mapping[str, str]) -> dict[str, str]:
    """The fields of a context; KeyError for one that this program does not know."""
    return {key: str(value) for key, value in fields.items() if VARIABLES[key]}


def _refuse(why: str) -> NoReturn:
    print(f"pointsman: {why}", file=sys.stderr)
    sys.exit(EXIT_USAGE)
