"""Ecosystems as data: what shows each, what it reads, where its dependencies go."""

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from pointsman.project.command_line import Command

COMMON_PASSED_ON = (
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ecosystem:
    """One row of the table; `ecosystems.toml` says what each field means."""

    name: str
    about: str
    language: str
    signs: tuple[str, ...]
    tools: tuple[str, ...]
    manifests: tuple[str, ...]
    setup: tuple[str, ...]
    test: str
    stores: tuple[str, ...]
    passed_on: tuple[str, ...]
    discarded: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    proof: Mapping[str, str] = field(default_factory=dict)
    locked: Mapping[str, str] = field(default_factory=dict)
    toolchain: Mapping[str, str] = field(default_factory=dict)
    warm: tuple[str, ...] = ()
    caches: tuple[str, ...] = ()
    skeleton: tuple[str, ...] = ()
    stubbed: str = ""
    stub: str = ""
    builds: tuple[str, ...] = ()


@cache
def ecosystems() -> tuple[Ecosystem, ...]:
    """The table, in the order in which ecosystems are tried."""
    with (Path(__file__).parent / "ecosystems.toml").open("rb") as file:
        read = tomllib.load(file)
    rows = []
    for name, fields in read.items():
        values: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()
        }
        rows.append(Ecosystem(name, **values))
    return tuple(rows)


def ecosystems_of(names: Collection[str]) -> tuple[Ecosystem, ...]:
    """The ecosystems that the files of a repository show, at most one of each language."""
    found: dict[str, Ecosystem] = {}
    for ecosystem in ecosystems():
        if ecosystem.language not in found and any(sign in names for sign in ecosystem.signs):
            found[ecosystem.language] = ecosystem
    return tuple(found.values())


def ecosystems_for(names: Collection[str], commands: Collection[Command]) -> tuple[Ecosystem, ...]:
    """The ecosystems that a set-up can touch: those that the files show, and those whose tool a command names."""
    shown = ecosystems_of(names)
    named = [
        ecosystem
        for ecosystem in ecosystems()
        if ecosystem not in shown and any(program_of(command) in ecosystem.tools for command in commands)
    ]
    return (*shown, *named)


def manifest_names(names: Collection[str], commands: Collection[Command]) -> tuple[str, ...]:
    """The files that decide what set-up installs: manifests at any depth, and files that its commands name."""
    patterns = {pattern for ecosystem in ecosystems_for(names, commands) for pattern in ecosystem.manifests}
    exact, globs = {name for name in patterns if "*" not in name}, [name for name in patterns if "*" in name]
    words = {word.removeprefix("./") for command in commands for word in command.arguments}
    found = []
    for path in names:
        name = PurePosixPath(path).name
        if path in words or name in exact or any(fnmatchcase(name, pattern) for pattern in globs):
            found.append(path)
    return tuple(sorted(found))


def reads_manifests_only(commands: Collection[Command]) -> bool:
    """Whether every command is of a tool that reads manifests only; others may read any file of the tree."""
    tools = {tool for ecosystem in ecosystems() for tool in ecosystem.tools}
    return all(program_of(command) in tools for command in commands)


def program_of(command: Command) -> str:
    """The name of the program that a command starts."""
    return PurePosixPath(command.arguments[0]).name


@cache
def store_names() -> frozenset[str]:
    """The names of all folders that hold dependencies."""
    return frozenset(name for ecosystem in ecosystems() for name in ecosystem.stores)


@cache
def discarded_names() -> frozenset[str]:
    """The names of all folders that are built from sources, which no proof gets."""
    return frozenset(name for ecosystem in ecosystems() for name in ecosystem.discarded)
