"""Runs a command in a sandbox to its end, under a supervisor that leaves no process behind."""

import asyncio
import contextlib
import hashlib
import json
import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pointsman.sandbox import bubblewrap, container, landlock, seccomp, supervisor
from pointsman.sandbox.level import Level
from pointsman.sandbox.services import with_services
from pointsman.sandbox.spec import CommandResult, EndedBy, SandboxSpec
from pointsman.sandbox.visibility import View, view_of

READ_BYTES = 64 * 1024
CANNOT_START = 127
BUBBLEWRAP_PROCESSES = 2
"""Its monitor, and the first process of the new process namespace."""
ENGINE_PROCESSES = 8
"""A container engine's client and monitors, at most."""
LOADER_SETTING = "LD_LIBRARY_PATH"
"""Some interpreters do not start without it."""


@dataclass(frozen=True, slots=True)
class _Order:
    """The supervisor's instructions, and the file descriptors that it inherits."""

    order: dict[str, Any]
    descriptors: tuple[int, ...] = ()
    container: str = ""
    """The name of the container, if there is one."""


async def run_at(spec: SandboxSpec, level: Level) -> CommandResult:
    """Runs a command at a level to its end; a cancelled call kills the command first."""
    view = view_of(spec) if Level.NONE < level < Level.CONTAINER else None
    if view is not None and (problem := _start_problem(spec, view)):
        said = f"cannot start {spec.command[0]!r}: {problem}\n".encode()
        return CommandResult(CANNOT_START, EndedBy.ITSELF, said, hashlib.sha256(said).hexdigest(), level=level)
    if spec.services:
        spec = with_services(spec, level)
        view = view and view_of(spec)
    loader = {LOADER_SETTING: os.environ[LOADER_SETTING]} if LOADER_SETTING in os.environ else {}
    with _prepared(spec, level, view) as prepared:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-S", supervisor.__file__, pass_fds=prepared.descriptors, env=loader, cwd="/",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip
    ended_by = EndedBy.STOPPED
    try:
        result = await _follow(process, prepared.order, spec, level)
        ended_by = result.ended_by
        return result
    finally:
        with contextlib.suppress(ProcessLookupError):
            _close_lifeline(process)
        await asyncio.shield(process.wait())
        if prepared.container and ended_by is not EndedBy.ITSELF:
            await asyncio.shield(asyncio.to_thread(container.remove, prepared.container))


@contextlib.contextmanager
def _prepared(spec: SandboxSpec, level: Level, view: View | None) -> Iterator[_Order]:
    """The order for the supervisor; the descriptors stay open for as long as the block lasts."""
    order: dict[str, Any] = {
        "command": list(spec.command),
        "program": spec.command[0],
        "directory": str(spec.directory),
        "environment": dict(spec.environment),
        "stdin": str(spec.stdin),
        "seconds": spec.limits.seconds,
        "file_bytes": spec.limits.file_bytes,
        "processes": spec.limits.processes,
        "own_processes": 0,
        "inherited": [],
        "watched": [],
        "ruleset": None,
        "filter": "",
        "drop_capabilities": False,
        "engine": False,
    }
    with contextlib.ExitStack() as opened:
        if level is Level.LANDLOCK and view is not None:
            yield _confined(spec, order, opened, view)
        elif level is Level.NAMESPACES and view is not None:
            yield _wrapped(spec, order, opened, view)
        elif level is Level.CONTAINER:
            yield _contained(spec, order)
        else:
            yield _Order(order)


def _confined(spec: SandboxSpec, order: dict[str, Any], opened: contextlib.ExitStack, view: View) -> _Order:
    """The order with a Landlock ruleset and a system call filter; PostgreSQL needs shared memory of System V."""
    ruleset = landlock.ruleset(view, network=spec.network)
    opened.callback(os.close, ruleset)
    filtered = b""
    if seccomp.is_supported():
        filtered = seccomp.landlock_filter(network=spec.network, shared_memory=bool(spec.services))
    order |= {"ruleset": ruleset, "filter": filtered.hex(), "drop_capabilities": is_root()}
    return _Order(order, (ruleset,))


def is_root() -> bool:
    """Whether the worker has powers that a command must not have."""
    return os.geteuid() == 0


def _wrapped(spec: SandboxSpec, order: dict[str, Any], opened: contextlib.ExitStack, view: View) -> _Order:
    """The order with the command inside bubblewrap, whose options come by file descriptor."""
    program = bubblewrap.program()
    if program is None:
        raise OSError(f"{bubblewrap.PROGRAM} is not installed")
    laid_out, inherited = bubblewrap.options(spec, view), []
    if seccomp.is_supported():
        inherited.append(_in_memory(opened, seccomp.namespaces_filter()))
        laid_out = ["--seccomp", str(inherited[0]), *laid_out]
    watched = [] if spec.network else _watched(opened)
    if watched:
        inherited += watched[2:]
        laid_out = ["--info-fd", str(watched[2]), "--block-fd", str(watched[3]), *laid_out]
    options = _in_memory(opened, b"".join(f"{option}\0".encode() for option in laid_out))
    inherited.append(options)
    ruleset = landlock.scope()
    if ruleset is not None:
        opened.callback(os.close, ruleset)
    command = [program, "--args", str(options), "--", *spec.command]
    order |= {
        "command": command,
        "ruleset": ruleset,
        "inherited": inherited,
        "watched": watched,
        "own_processes": BUBBLEWRAP_PROCESSES,
    }
    return _Order(order, (*inherited, *watched[:2], *(() if ruleset is None else (ruleset,))))


def _watched(opened: contextlib.ExitStack) -> list[int]:
    """Two pipes: one tells the supervisor about the sandbox, one lets its command start; the supervisor's ends first."""
    (info, written), (blocked, release) = os.pipe(), os.pipe()
    for descriptor in (info, release, written, blocked):
        opened.callback(os.close, descriptor)
    return [info, release, written, blocked]


def _in_memory(opened: contextlib.ExitStack, content: bytes) -> int:
    """A file without a name, as a descriptor, at its beginning."""
    made = os.memfd_create("options")
    opened.callback(os.close, made)
    os.write(made, content)
    os.lseek(made, 0, os.SEEK_SET)
    return made


def _contained(spec: SandboxSpec, order: dict[str, Any]) -> _Order:
    """The order with the command inside a container."""
    name = f"pointsman-{secrets.token_hex(8)}"
    order |= {"command": container.command(spec, name), "environment": container.environment(spec)}
    order |= {"engine": True, "own_processes": ENGINE_PROCESSES}
    return _Order(order, container=name)


def _start_problem(spec: SandboxSpec, view: View) -> str:
    """Why a command could not be found inside the sandbox; empty when it can."""
    given = spec.command[0]
    if os.sep in given:
        found = str(spec.directory / given) if os.access(spec.directory / given, os.F_OK) else None
    else:
        found = shutil.which(given, path=spec.environment.get("PATH", os.defpath))
    if found is None:
        return "No such file or directory"
    real = Path(found).resolve()
    return "" if view.shows(real) else f"{real} is not visible in the sandbox"


def _close_lifeline(process: asyncio.subprocess.Process) -> None:
    assert process.stdin is not None
    process.stdin.close()


def _set_clock(process: asyncio.subprocess.Process, stops: bool) -> None:
    assert process.stdin is not None
    if not process.stdin.is_closing():
        process.stdin.write(supervisor.STOP_CLOCK if stops else supervisor.START_CLOCK)


async def _follow(
    process: asyncio.subprocess.Process, order: dict[str, Any], spec: SandboxSpec, level: Level
) -> CommandResult:
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    reported = asyncio.create_task(process.stderr.read())
    if spec.clock is not None:
        spec.clock.send = partial(_set_clock, process)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(json.dumps(order).encode() + b"\n")
        await process.stdin.drain()
    output, digest, flooded = bytearray(), hashlib.sha256(), False
    while chunk := await process.stdout.read(READ_BYTES):
        room = spec.limits.output_bytes - len(output)
        digest.update(chunk[:room])
        output += chunk[:room]
        if spec.on_output is not None:
            spec.on_output(chunk[:room])
        if len(chunk) > room and not flooded:
            flooded = True
            _close_lifeline(process)
    report = _report(await reported)
    ended_by = EndedBy.OUTPUT_LIMIT if flooded else EndedBy(str(report["ended_by"]))
    denied = report["denied"]
    return CommandResult(
        int(report["exit_code"]), ended_by, bytes(output), digest.hexdigest(), int(report["strays"]), level,
        int(denied["connects"]), tuple(map(str, denied["names"])),
    )  # fmt: skip


def _report(text: bytes) -> dict[str, Any]:
    """The supervisor's report; a supervisor that was killed leaves none, which counts as stopped."""
    try:
        report: dict[str, Any] = json.loads(text)
    except ValueError:
        report = {"exit_code": -9, "ended_by": EndedBy.STOPPED, "strays": 0, "denied": {"connects": 0, "names": []}}
    return report
