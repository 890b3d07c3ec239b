"""Runs an untrusted command: clean environment, limits on time, output, files and processes, no process left behind."""

import asyncio
import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from pointsman.worker import process_supervisor

READ_BYTES = 64 * 1024
PASSED_ON = ("PATH", "LANG", "LC_ALL", "TERM", "USER", "LOGNAME", "SHELL", "TZ")
ALWAYS_WRITABLE = ("/dev",)


class EndedBy(StrEnum):
    """What ended a command."""

    ITSELF = "itself"
    TIME_LIMIT = "time_limit"
    OUTPUT_LIMIT = "output_limit"
    PROCESS_LIMIT = "process_limit"
    STOPPED = "stopped"


_ENDINGS = {
    EndedBy.TIME_LIMIT: "ran past its time limit",
    EndedBy.OUTPUT_LIMIT: "printed past its output limit",
    EndedBy.PROCESS_LIMIT: "started more processes than it may",
    EndedBy.STOPPED: "was stopped",
}


@dataclass(frozen=True, slots=True)
class Limits:
    """What a command may use."""

    seconds: float = 1800.0
    output_bytes: int = 8 * 1024 * 1024
    file_bytes: int = 1024 * 1024 * 1024
    processes: int = 512


@dataclass(frozen=True, slots=True)
class SupervisedCommand:
    """A command with its environment and limits; it can write only below `writable` where the kernel has Landlock."""

    command: Sequence[str]
    directory: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    writable: Sequence[Path] = ()
    stdin: Path = Path(os.devnull)
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command ended and what it printed; `digest` covers all output that was read."""

    exit_code: int
    ended_by: EndedBy
    output: bytes
    digest: str
    strays: int = 0

    @property
    def ok(self) -> bool:
        """Whether it ended by itself with exit code 0."""
        return self.ended_by is EndedBy.ITSELF and self.exit_code == 0

    @property
    def reason(self) -> str:
        """Why it is not ok; empty when it is."""
        if self.ok:
            return ""
        if self.ended_by is EndedBy.ITSELF:
            return f"it ended with exit code {self.exit_code}"
        return f"it {_ENDINGS[self.ended_by]} and was killed"

    def excerpt(self, length: int = 2000) -> str:
        """The end of the output, as text without NUL."""
        return self.output[-length * 4 :].decode(errors="replace").replace("\0", "")[-length:].strip()


def clean_environment(extra: Mapping[str, str], passed_on: Sequence[str] = ()) -> dict[str, str]:
    """The variables that every command gets, those named in `passed_on`, and `extra`."""
    inherited = {name: os.environ[name] for name in (*PASSED_ON, *passed_on) if name in os.environ}
    return {**inherited, **extra}


async def run(task: SupervisedCommand) -> CommandResult:
    """Runs a command to its end; a cancelled call kills the command first."""
    spec = {
        "command": list(task.command),
        "directory": str(task.directory),
        "environment": dict(task.environment),
        "writable": [*map(str, task.writable), *ALWAYS_WRITABLE] if task.writable else [],
        "stdin": str(task.stdin),
        "seconds": task.limits.seconds,
        "file_bytes": task.limits.file_bytes,
        "processes": task.limits.processes,
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", process_supervisor.__file__, json.dumps(spec),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    try:
        return await _follow(process, task.limits)
    finally:
        with contextlib.suppress(ProcessLookupError):
            _close_lifeline(process)
        await asyncio.shield(process.wait())


def _close_lifeline(process: asyncio.subprocess.Process) -> None:
    assert process.stdin is not None
    process.stdin.close()


async def _follow(process: asyncio.subprocess.Process, limits: Limits) -> CommandResult:
    assert process.stdout is not None
    assert process.stderr is not None
    output, digest, flooded = bytearray(), hashlib.sha256(), False
    reported = asyncio.create_task(process.stderr.read())
    while chunk := await process.stdout.read(READ_BYTES):
        room = limits.output_bytes - len(output)
        digest.update(chunk[:room])
        output += chunk[:room]
        if len(chunk) > room and not flooded:
            flooded = True
            _close_lifeline(process)
    report = _report(await reported)
    ended_by = EndedBy.OUTPUT_LIMIT if flooded else EndedBy(str(report["ended_by"]))
    return CommandResult(int(report["exit_code"]), ended_by, bytes(output), digest.hexdigest(), int(report["strays"]))


def _report(text: bytes) -> dict[str, int | str]:
    """The supervisor's report; a supervisor that was killed leaves none, which counts as stopped."""
    try:
        report: dict[str, int | str] = json.loads(text)
    except ValueError:
        report = {"exit_code": -9, "ended_by": EndedBy.STOPPED, "strays": 0}
    return report
