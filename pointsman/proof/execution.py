"""Runs one proof command on one tree, in a sandbox, and reads what it reported."""

import os
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from time import monotonic

from pointsman._shared.removal import remove_tree
from pointsman.project.setup_run import SetupFailed
from pointsman.proof.adapters.instrument import (
    InstrumentedCommand,
    SelectedTests,
    Variation,
    instrument,
    prepare_place,
    read_report,
)
from pointsman.proof.command_files import read_scripts
from pointsman.proof.results import Outcome, TestReport, TestResult
from pointsman.proof.snapshot import Repository, Snapshot
from pointsman.sandbox import CommandResult, Level, Limits, SandboxSpec, Service, failed_service, proof_environment, run

SAFE_PATH = "PYTHONSAFEPATH"
TREE_FIRST = "POINTSMAN_TREE_FIRST"
FAKE_TIME_ROOTS = ("/usr/lib", "/usr/local/lib", "/usr/lib64")
FAKE_TIME_LIBRARIES = ("faketime/libfaketime.so.1", "*/faketime/libfaketime.so.1")
TOOL_FOLDERS = {"RUSTUP_HOME": ".rustup", "GOMODCACHE": "go/pkg/mod"}
"""Read-only folders of toolchains that would otherwise be looked for below the private home."""


def _nothing() -> None:
    """Nothing has to be prepared."""


class Purpose(StrEnum):
    """Why a command was run."""

    BASE = "base"
    DELIVERED = "delivered"
    RESTORED = "restored"
    NEW_TESTS_ON_BASE = "new_tests_on_base"
    HELD_OUT = "held_out"


@dataclass(frozen=True, slots=True)
class Furnishing:
    """What a proof's sandbox holds beside the tree."""

    environment: Mapping[str, str] = field(default_factory=dict)
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    """Build caches of its own."""
    hidden: tuple[Path, ...] = ()
    network: bool = False
    limits: Limits = field(default_factory=lambda: Limits(seconds=600.0, output_bytes=16 * 1024 * 1024))
    level: Level | None = None
    tree: Path | None = None
    """Where the tree has to be, because what set-up installed names it by its path."""
    is_movable: bool = False
    """Whether nothing in an environment names the tree by its path, so that a repeated run may be elsewhere."""
    prepare: Callable[[], None] = _nothing
    """Puts what set-up made into the tree."""
    services: tuple[Service, ...] = ()
    """Servers that run beside each command, in its sandbox."""
    python_path: tuple[Path, ...] = ()
    """Folders of the tree that Python looks in before whatever is installed."""


@dataclass(frozen=True, slots=True)
class ProofRun:
    """One command on one tree: how it ended, what each test did, and which tracked files it altered."""

    purpose: Purpose
    tree: str
    command: tuple[str, ...]
    result: CommandResult
    report: TestReport
    seconds: float = 0.0
    altered: tuple[str, ...] = ()
    """Tracked files with another content than before."""
    touched: tuple[str, ...] = ()
    """Tracked files that were written, replaced or moved, whatever they hold now."""
    variation: Variation | None = None

    @property
    def ended_well(self) -> bool:
        """Whether the command itself ended with 0."""
        return self.result.ok


Furnish = Callable[[Snapshot], AbstractAsyncContextManager[Furnishing]]
"""Furnishes the sandbox for one run on a tree."""


def always(furnishing: Furnishing) -> Furnish:
    """The same for every tree."""

    @asynccontextmanager
    async def furnish(_snapshot: Snapshot) -> AsyncIterator[Furnishing]:
        yield furnishing

    return furnish


class CommandRunner:
    """Runs commands, each in a fresh checkout with a fresh home; nothing that one leaves behind is there for another."""

    def __init__(
        self,
        repository: Repository,
        folder: Path,
        furnishing: Furnishing | Furnish | None = None,
        pairs_after_seconds: float | None = None,
    ) -> None:
        self.pairs_after_seconds = pairs_after_seconds
        """How long a command takes before two of its runs may share the machine; None where they never may."""
        self._repository = repository
        self._folder = folder
        self._furnish = furnishing if callable(furnishing) else always(furnishing or Furnishing())
        self._count = 0

    async def run(
        self,
        purpose: Purpose,
        snapshot: Snapshot,
        command: Sequence[str],
        selected: SelectedTests | None = None,
        variation: Variation | None = None,
    ) -> ProofRun:
        """Runs one command on a fresh checkout of a tree."""
        self._count += 1
        place = self._folder / f"{self._count}-{purpose}"
        _make_folders(place)
        async with self._furnish(snapshot) as furnishing:
            furnished = _moved(furnishing, place / "tree") if variation is not None else furnishing
            tree, index = furnished.tree or place / "tree", place / "index"
            await self._repository.check_out(snapshot, tree, index)
            furnishing.prepare()
            reports = prepare_place(place, secrets.token_hex(4))
            prepared = instrument(command, reports, read_scripts_of(tree), selected, variation)
            scratch = place / "scratch"
            before = _states(tree, snapshot)
            begun = monotonic()
            result = await run(_at_another_time(_spec(furnished, prepared, tree, scratch), variation))
            seconds = monotonic() - begun
            require_services(result)
            report = with_exit_code(read_report(prepared, tree, result.output), command, result)
            altered = await self._repository.altered(tree, index)
            after = _states(tree, snapshot)
            _remove(tree)
        _remove(scratch)
        touched = tuple(sorted(path for path in before if before[path] != after.get(path)))
        return ProofRun(purpose, snapshot.tree, tuple(command), result, report, seconds, altered, touched, variation)


def _moved(furnishing: Furnishing, tree: Path) -> Furnishing:
    """The same with the tree in another folder, where nothing names it by its path."""
    old = furnishing.tree
    if old is None or not furnishing.is_movable:
        return furnishing
    return replace(
        furnishing, tree=tree, python_path=tuple(tree / path.relative_to(old) for path in furnishing.python_path)
    )


@cache
def fake_time_library() -> Path | None:
    """The library that lets programs see another time, if it is installed (package faketime)."""
    found = (path for root in FAKE_TIME_ROOTS for name in FAKE_TIME_LIBRARIES for path in Path(root).glob(name))
    return next(found, None)


def _at_another_time(spec: SandboxSpec, variation: Variation | None) -> SandboxSpec:
    """The same on another day, for programs that ask the C library; Go's do not."""
    library = fake_time_library()
    if variation is None or library is None:
        return spec
    pretended = {"LD_PRELOAD": str(library), "FAKETIME": f"+{variation.days}d", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    return replace(spec, environment={**spec.environment, **pretended})


def _states(tree: Path, snapshot: Snapshot) -> dict[str, tuple[int, int]]:
    """The inode of every tracked file and when it last changed, which no program can set."""
    found = {}
    for name in snapshot.entries:
        with suppress(OSError):
            state = (tree / name).lstat()
            found[name] = (state.st_ino, state.st_ctime_ns)
    return found


def _spec(furnishing: Furnishing, prepared: InstrumentedCommand, tree: Path, scratch: Path) -> SandboxSpec:
    """The command in its sandbox; folders of the tree come first for Python, after its runner is loaded where we can."""
    tools = _tool_folders()
    extra = {name: str(path) for name, path in tools.items()} | dict(furnishing.environment)
    environment = proof_environment(scratch, {**extra, **_joined(furnishing.environment, prepared.environment)})
    if prepared.name in {"pytest", "unittest"}:
        first = (*furnishing.python_path, *((tree,) if "-m" in prepared.command else ()))
        environment[TREE_FIRST] = os.pathsep.join(map(str, first))
    else:
        environment.pop(SAFE_PATH, None)
        first = (*map(str, furnishing.python_path), environment.get("PYTHONPATH", ""))
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, first))
    return SandboxSpec(
        command=prepared.command,
        directory=tree,
        environment=environment,
        writable=(tree, scratch, prepared.place.reports, *furnishing.writable),
        readable=(prepared.place.reporters, *tools.values(), *furnishing.readable),
        hidden=furnishing.hidden,
        network=furnishing.network,
        limits=furnishing.limits,
        level=furnishing.level,
        services=furnishing.services,
    )


def require_services(result: CommandResult) -> None:
    """Refuses a run whose services did not start: that is neither an attempt nor a failed proof."""
    if why := failed_service(result):
        raise SetupFailed(why)


def with_exit_code(report: TestReport, command: Sequence[str], result: CommandResult) -> TestReport:
    """A runner without an adapter is one test, whose result is its exit code."""
    if not report.exit_code_only:
        return report
    name = " ".join(command)
    outcome = Outcome.PASSED if result.ok else Outcome.FAILED
    return replace(report, tests={name: TestResult(name, outcome, result.reason)})


def read_scripts_of(tree: Path) -> dict[str, str]:
    """The scripts of the tree's own package.json."""
    path = tree / "package.json"
    return read_scripts(path.read_bytes()) if path.is_file() and not path.is_symlink() else {}


def _joined(given: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, str]:
    """The reporter's variables, after what the project sets in the same ones."""
    separators = {"PYTHONPATH": os.pathsep, "NODE_OPTIONS": " ", "PYTEST_ADDOPTS": " "}
    return {
        name: f"{given[name]}{separators[name]}{value}" if name in given and name in separators else value
        for name, value in ours.items()
    }


def _tool_folders() -> dict[str, Path]:
    found = {name: Path(os.environ.get(name) or Path.home() / default) for name, default in TOOL_FOLDERS.items()}
    return {name: path for name, path in found.items() if path.is_dir()}


def _make_folders(place: Path) -> None:
    place.mkdir(parents=True)


def _remove(folder: Path) -> None:
    """Removes a folder that a command wrote to; what stays goes with the folder around it."""
    with suppress(OSError):
        remove_tree(folder)
