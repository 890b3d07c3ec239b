"""The adapters of `adapters.toml`, and which of them a command belongs to."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from importlib import resources
from pathlib import PurePath

from pointsman.proof.adapters.readers import Format

STARTERS = frozenset(
    {
        "uv", "uvx", "poetry", "pdm", "pipenv", "rye", "hatch", "npx", "pnpm", "yarn", "bunx", "env", "timeout", "nice",
        "coverage", "xvfb-run", "mise", "direnv", "pipx", "c8", "nyc", "cross-env",
    }
)  # fmt: skip
"""Programs whose arguments name the program that is started."""
PYTHON = "python"
WRAPPER = "wrapper"


class Selection(StrEnum):
    """How an adapter runs single tests."""

    NONE = "none"
    VARIABLE = "variable"
    GO = "go"


@dataclass(frozen=True, slots=True)
class Adapter:
    """One row of the table; its fields are explained at the head of `adapters.toml`."""

    name: str
    source: str
    reader: Format
    programs: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    subcommand: tuple[str, ...] = ()
    insert: tuple[str, ...] = ()
    append: tuple[str, ...] = ()
    shuffle: tuple[str, ...] = ()
    replace: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    select: Selection = Selection.NONE


@dataclass(frozen=True, slots=True)
class Match:
    """An adapter and the words of a command that named it."""

    adapter: Adapter
    start: int
    end: int


@cache
def adapters() -> tuple[Adapter, ...]:
    """Every adapter, in the order of the table."""
    text = resources.files("pointsman.proof.adapters").joinpath("adapters.toml").read_text(encoding="utf-8")
    return tuple(_adapter(name, row) for name, row in tomllib.loads(text).items())


def _adapter(name: str, row: Mapping[str, object]) -> Adapter:
    def words(key: str) -> tuple[str, ...]:
        value = row.get(key, [])
        return tuple(map(str, value)) if isinstance(value, list) else ()

    environment = row.get("environment", {})
    return Adapter(
        name=name,
        source=str(row["source"]),
        reader=Format(str(row["reader"])),
        programs=words("programs"),
        modules=words("modules"),
        subcommand=words("subcommand"),
        insert=words("insert"),
        append=words("append"),
        shuffle=words("shuffle"),
        replace=words("replace"),
        environment={str(k): str(v) for k, v in environment.items()} if isinstance(environment, dict) else {},
        select=Selection(str(row.get("select", "none"))),
    )


def match(command: Sequence[str]) -> Match | None:
    """The adapter of a command; words before the runner must start other programs (`uv run`, `npx`, `env A=b`)."""
    for start in range(len(command)):
        found = _match_at(command, start)
        if found is not None:
            return found
        if start == 0 and _program(command[0]) not in STARTERS and not _is_python(command[0]):
            return None
    return None


def _match_at(command: Sequence[str], start: int) -> Match | None:
    module_at = command[start : start + 2]
    for adapter in adapters():
        if len(module_at) == 2 and module_at[0] == "-m" and module_at[1] in adapter.modules:
            return Match(adapter, start, start + 2)
        end = start + 1 + len(adapter.subcommand)
        named = _program(command[start]) in adapter.programs
        if named and tuple(command[start + 1 : end]) == adapter.subcommand:
            return Match(adapter, start, end)
        if (
            named
            and adapter.subcommand[:1]
            and adapter.subcommand[0].startswith("-")
            and adapter.subcommand[0] in command
        ):
            return Match(adapter, start, start + 1)
    return None


def _program(word: str) -> str:
    return PurePath(word).name


def _is_python(word: str) -> bool:
    return _program(word).startswith(PYTHON)
