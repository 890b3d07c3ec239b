"""What a set-up is made from: commands, manifests and variables; their digest names the environment it makes."""

import hashlib
import json
import os
import platform
import shutil
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pointsman.project.command_line import Command, split_command
from pointsman.project.ecosystems import (
    COMMON_PASSED_ON,
    Ecosystem,
    ecosystems_for,
    ecosystems_of,
    manifest_names,
    reads_manifests_only,
)
from pointsman.project.model import WorkspaceSection

FORMAT = 2
"""Raised when environments of an older version must not be used any more."""
Contents = Callable[[str], Awaitable[bytes]]
"""Reads a file of the base, by its path in the tree."""


@dataclass(frozen=True, slots=True)
class SourceFiles:
    """The base that a set-up sees: the names of its files, their contents, and the id of the whole tree."""

    names: Collection[str]
    read: Contents
    tree_id: str


@dataclass(frozen=True, slots=True)
class Warmup:
    """A command that fills build caches; `ecosystems.toml` says what the other fields mean."""

    command: Command
    skeleton: tuple[str, ...] = ()
    stubbed: str = ""
    stub: str = ""
    builds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SetupPlan:
    """A set-up, ready to be run; `{home}` in variables stands for the environment's home folder."""

    commands: tuple[Command, ...]
    manifests: Mapping[str, bytes] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    proof_variables: Mapping[str, str] = field(default_factory=dict)
    passed_on: tuple[str, ...] = ()
    readable: tuple[Path, ...] = ()
    seconds: float = 900.0
    source_id: str = ""
    """The tree that the commands run on, if they may read more of it than manifests."""
    warmups: tuple[Warmup, ...] = ()
    caches: tuple[str, ...] = ()
    """Variables that name a folder of build results, each of which is named by its content."""

    @property
    def digest(self) -> str:
        """The digest of everything that decides what the set-up makes."""
        parts = {
            "format": FORMAT,
            "platform": [platform.system(), platform.machine(), platform.libc_ver()[1]],
            "commands": [command.arguments for command in self.commands],
            "variables": dict(self.variables),
            "passed_on": {name: os.environ[name] for name in self.passed_on if name in os.environ},
            "path": os.environ.get("PATH", ""),
            "manifests": {name: hashlib.sha256(content).hexdigest() for name, content in self.manifests.items()},
            "source": self.source_id,
            "warmups": [[warmup.command.arguments, _program_state(warmup.command)] for warmup in self.warmups],
        }
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


async def plan_setup(
    workspace: WorkspaceSection, base: SourceFiles, changed: Mapping[str, bytes] | None = None
) -> SetupPlan:
    """The plan of a set-up on a base; `changed` are manifests with what a delivery changed in their dependencies.

    Code of packages runs while they are installed only if every manifest is the base's: its packages are the user's.
    """
    found = ecosystems_for(base.names, workspace.setup) if workspace.setup else ()
    shown = found or ecosystems_of(base.names)
    warmups, caches = _warmups(shown, has_setup=bool(workspace.setup))
    names = manifest_names(base.names, workspace.setup) if workspace.setup or warmups else ()
    manifests = {name: await base.read(name) for name in names} | dict(changed or {})
    is_changed = [name for name, content in (changed or {}).items() if content != await _base_content(base, name)]
    toolchains = _merged(_toolchains(ecosystem) for ecosystem in shown if found or ecosystem.caches)
    locked = _merged(ecosystem.locked for ecosystem in found) if is_changed else {}
    readable = _expanded((*workspace.cache, *workspace.read, *toolchains.values()))
    return SetupPlan(
        workspace.setup,
        manifests,
        {**toolchains, **_merged(ecosystem.variables for ecosystem in found), **locked, **workspace.env},
        {**toolchains, **_merged(ecosystem.proof for ecosystem in found), **workspace.env},
        (*COMMON_PASSED_ON, *(name for ecosystem in found for name in ecosystem.passed_on)),
        readable,
        workspace.timeout,
        "" if reads_manifests_only(workspace.setup) else base.tree_id,
        warmups,
        caches,
    )


def _warmups(found: Iterable[Ecosystem], *, has_setup: bool) -> tuple[tuple[Warmup, ...], tuple[str, ...]]:
    """What fills build caches, of toolchains that are here; a tool that needs its set-up is not warmed without one."""
    chosen = [
        (one, split_command(text))
        for one in found
        for text in one.warm
        if (has_setup or one.caches) and shutil.which(one.tools[0])
    ]
    warmups = tuple(Warmup(command, one.skeleton, one.stubbed, one.stub, one.builds) for one, command in chosen)
    return warmups, tuple(name for one, _ in chosen for name in one.caches)


def _program_state(command: Command) -> list[int]:
    """What differs when a toolchain was replaced: its caches would be of no use."""
    program = shutil.which(command.arguments[0])
    found = Path(program).stat() if program else None
    return [int(found.st_mtime), found.st_size] if found else []


async def _base_content(base: SourceFiles, name: str) -> bytes | None:
    return await base.read(name) if name in base.names else None


def _expanded(names: Iterable[str]) -> tuple[Path, ...]:
    return tuple(Path(name).expanduser() for name in names)


def _toolchains(ecosystem: Ecosystem) -> dict[str, str]:
    """The folders of the user's toolchains that are there, by their variable."""
    folders = {name: Path(os.environ.get(name) or folder).expanduser() for name, folder in ecosystem.toolchain.items()}
    return {name: str(folder) for name, folder in folders.items() if folder.is_dir()}


def _merged(tables: Iterable[Mapping[str, str]]) -> dict[str, str]:
    return {name: value for table in tables for name, value in table.items()}
