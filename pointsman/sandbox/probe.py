"""Shows how strongly this machine isolates: a probe inside the sandbox tries what an untrusted command would."""

import asyncio
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pointsman.sandbox import bubblewrap, container, landlock, probe_script
from pointsman.sandbox.environment import clean_environment
from pointsman.sandbox.launch import run_at
from pointsman.sandbox.level import Level, TooWeak, max_level
from pointsman.sandbox.spec import CommandResult, Limits, SandboxSpec
from pointsman.sandbox.visibility import View, view_of

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - it is what the probe looks for
PROBE_LIMITS = Limits(seconds=30.0)

ATTEMPTS = {
    "credential": "read a credential",
    "clone": "read your clone",
    "assignment": "read another assignment",
    "write": "write outside its folders",
    "home": "read your home folder",
    "data": "read the data directory",
    "socket": "connect to a Unix socket",
    "signal": "signal a process outside",
    "priority": "slow a process outside down",
    "environment": "read the environment of a process outside",
    "loopback": "connect to loopback without network",
    "processes": "see other processes",
    "abstract": "connect to an abstract socket",
    "shared_memory": "read /dev/shm",
    "chmod": "change the mode of a foreign file",
}
"""What is tried, in words."""
BEYOND_LANDLOCK = frozenset({"processes", "chmod"})
"""What Landlock cannot refuse, so that its level does not promise it."""
IMAGE_PYTHON = "python3"
PROCESS_FILES = {"environment": "environ", "processes": "cmdline"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that the probe tried, and whether it was refused."""

    name: str
    refused: bool

    @property
    def text(self) -> str:
        """What was tried, in words."""
        return ATTEMPTS[self.name]


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """What held at the strongest level that works, and why stronger ones do not."""

    level: Level
    findings: tuple[Finding, ...]
    missing: tuple[str, ...] = ()
    """For each stronger level, why it is not used."""


def supports_grades(level: Level) -> bool:
    """Whether a result is worth more than a word: at `none` the command could read every credential."""
    return level > Level.NONE


def available_level() -> Level:
    """The strongest level that holds on this machine, as a probe shows once; a setting bounds it."""
    return probe().level


def require(least: Level) -> None:
    """Refuses a machine that does not isolate as strongly as is asked."""
    report = probe()
    if report.level < least:
        why = "; ".join(report.missing) or "nothing stronger was tried"
        raise TooWeak(f"commands would run at isolation {report.level}, and {least} is required ({why})")


async def run(spec: SandboxSpec) -> CommandResult:
    """Runs a command to its end, at its level or the strongest that holds; a cancelled call kills the command first."""
    return await run_at(spec, available_level() if spec.level is None else spec.level)


def probe(data_directory: Path | None = None) -> ProbeReport:
    """Probes the levels from the strongest down to the first that holds; repeated calls return the first report."""
    return _probe(max_level(), container.image(), data_directory)


@cache
def _probe(most: Level, _image: str, data_directory: Path | None) -> ProbeReport:
    # In a thread, because a caller may be inside an event loop.
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, _probe_levels(most, data_directory)).result()


async def _probe_levels(most: Level, data_directory: Path | None) -> ProbeReport:
    missing: list[str] = []
    for level in sorted((level for level in Level if level <= most), reverse=True):
        if level is not Level.NONE and (lack := _lack(level)):
            missing.append(f"{level}: {lack}")
            continue
        findings, problem = await _try(level, data_directory)
        if not problem:
            return ProbeReport(level, findings, tuple(missing))
        missing.append(f"{level}: {problem}")
    return ProbeReport(Level.NONE, (), tuple(missing))


def _lack(level: Level) -> str:
    """What a level needs and the machine does not have; empty when it may work."""
    if level is Level.CONTAINER:
        return container.lack()
    if level is Level.NAMESPACES:
        return "" if bubblewrap.program() else "bubblewrap (bwrap) is not installed"
    return "" if landlock.version() else "the kernel has no Landlock (Linux 6.12 or newer is needed)"


async def _try(level: Level, data_directory: Path | None) -> tuple[tuple[Finding, ...], str]:
    """What holds at one level, and why the level does not count."""
    with _targets(data_directory) as (targets, inside), _bystander(targets) as bystander:
        result = await run_at(_spec(targets, inside, level), level)
        reached = _reached(result)
        if reached is None:
            return (), f"a command did not start: {result.excerpt(300) or result.reason}"
        reached -= _without_effect(targets, bystander)
        findings = tuple(Finding(name, name not in reached) for name in ATTEMPTS if name in targets)
        return findings, _problem(level, findings)


def _without_effect(targets: dict[str, str], bystander: subprocess.Popen[bytes]) -> set[str]:
    """What only seemed to work: it reached a folder or a process that only the sandbox has."""
    unwritten = {"write"} if not Path(targets["write"]).exists() else set()
    return unwritten | ({"signal"} if bystander.poll() is None else set())


def _problem(level: Level, findings: Sequence[Finding]) -> str:
    excused = {Level.NONE: frozenset(ATTEMPTS), Level.LANDLOCK: BEYOND_LANDLOCK}.get(level, frozenset())
    broken = [finding.text for finding in findings if not finding.refused and finding.name not in excused]
    return f"the probe could {', '.join(broken)}" if broken else ""


def _reached(result: CommandResult) -> set[str] | None:
    if not result.ok:
        return None
    try:
        return set(json.loads(result.output))
    except ValueError:
        return None


def _spec(targets: dict[str, str], inside: Path, level: Level) -> SandboxSpec:
    script = inside / "probe.py"
    shutil.copyfile(probe_script.__file__, script)
    interpreter = () if level is Level.CONTAINER else (Path(sys.base_prefix),)
    targets |= _home_target(view_of(SandboxSpec((), inside, clean_environment({}), (inside,), interpreter)))
    program = IMAGE_PYTHON if level is Level.CONTAINER else str(Path(sys.executable).resolve())
    command = (program, "-I", "-S", str(script), json.dumps(targets))
    return SandboxSpec(command, inside, clean_environment({}), (inside,), interpreter, limits=PROBE_LIMITS)


def _home_target(view: View) -> dict[str, str]:
    """Something in the home folder that is not shown."""
    with suppress(OSError):
        for entry in sorted(Path.home().iterdir()):
            holds_visible = any(root.is_relative_to(entry) for root in (*view.readable, *view.writable))
            if not view.shows(entry) and not holds_visible and os.access(entry, os.R_OK):
                return {"home": str(entry)}
    return {}


@contextmanager
def _targets(data_directory: Path | None) -> Iterator[tuple[dict[str, str], Path]]:
    """What the probe aims at, most of it made for it, and the folder that it may use."""
    with ExitStack() as opened:
        root = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="pointsman-probe-")))
        inside = root / "inside"
        inside.mkdir()
        files = {name: root / name for name in ("credential", "clone", "assignment", "chmod")}
        for file in files.values():
            file.write_text("secret")
        targets = {name: str(file) for name, file in files.items()}
        targets |= {"write": str(root / "written"), **_listeners(root, opened)}
        if data_directory is not None and data_directory.is_dir():
            targets["data"] = str(data_directory)
        if SHARED_MEMORY.is_dir():
            left = opened.enter_context(tempfile.NamedTemporaryFile(dir=SHARED_MEMORY, prefix="pointsman-probe-"))
            targets["shared_memory"] = left.name
        yield targets, inside


@contextmanager
def _bystander(targets: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process outside, with a mark in its arguments and its environment, that the probe tries to reach."""
    mark = secrets.token_hex(8)
    command = (sys.executable, "-I", "-S", "-c", "input()", mark)
    with subprocess.Popen(command, stdin=subprocess.PIPE, env={"MARK": mark}) as process:  # noqa: S603 - our own
        try:
            targets["signal"] = targets["priority"] = str(process.pid)
            if Path("/proc/self/environ").exists():
                targets |= {name: f"/proc/{process.pid}/{file}:{mark}" for name, file in PROCESS_FILES.items()}
            yield process
        finally:
            process.kill()


def _listeners(root: Path, opened: ExitStack) -> dict[str, str]:
    """Sockets that wait for the probe: on loopback, at a path, and on Linux at an abstract name."""
    found = {"loopback": "", "socket": str(root / "socket")}
    loopback = opened.enter_context(socket.create_server(("127.0.0.1", 0)))
    found["loopback"] = str(loopback.getsockname()[1])
    addresses = [found["socket"]]
    if sys.platform == "linux":
        found["abstract"] = f"pointsman-probe-{secrets.token_hex(8)}"
        addresses.append("\0" + found["abstract"])
    for address in addresses:
        listener = opened.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(address)
        listener.listen()
    return found
