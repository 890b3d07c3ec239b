"""`make container`: the level `container` with a real engine: the probe, every attack, and what a start costs.

The image is made of the host's own Python, so that nothing is pulled; the engine's storage and settings are in a folder
that is removed. Where there is no podman, or it starts nothing, that is said loudly, and the command ends with 0.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from pointsman.sandbox import EndedBy, Level, Limits, SandboxSpec, container, probe, run
from tests.scenarios.attacks.world import attacked_world

IMAGE = "localhost/pointsman-sandbox:acceptance"
PYTHON = Path("/usr/bin/python3")
RUNTIMES = ("crun", "runc")
LEFT_OUT = {"test", "dist-packages", "idlelib"}
LEFT_TO_THE_ENGINE = {"open a socket of the machine"}
"""What podman's own filter of system calls lets through; docs/security.md says so."""
SETTINGS = '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=2048:2048"]\n[engine]\ncgroup_manager = "cgroupfs"\nruntime = "{}"\n'


def main() -> int:
    """Tries everything with the first runtime that starts a container."""
    engine = shutil.which("podman")
    if engine is None or not PYTHON.exists():
        return _left_out("podman is not installed (Debian: podman and crun or runc)")
    with tempfile.TemporaryDirectory(prefix="pointsman-container-") as made:
        folder = Path(made)
        os.environ["HOME"], os.environ["CONTAINERS_CONF"] = str(folder), str(folder / "containers.conf")
        words = [engine, "--root", f"{folder}/storage", "--runroot", f"{folder}/state", "--storage-driver", "vfs"]
        os.environ[container.ENGINE_SETTING], os.environ[container.IMAGE_SETTING] = " ".join(words), IMAGE
        try:
            problems = [problem for runtime in RUNTIMES if (problem := _start_problem(words, runtime, folder))]
            return _left_out("; ".join(problems)) if len(problems) == len(RUNTIMES) else asyncio.run(_tried())
        finally:
            subprocess.run([*words, "rmi", "--force", IMAGE], capture_output=True, check=False)


def _left_out(why: str) -> int:
    sys.stdout.write(f"LEFT OUT: {why}\n")
    return 0


def _start_problem(words: list[str], runtime: str, folder: Path) -> str:
    """Why a runtime starts nothing here; empty when it does. Those after the first that works are not tried."""
    if (folder / "works").exists():
        return ""
    (folder / "containers.conf").write_text(SETTINGS.format(runtime))
    if not (folder / "image.tar").exists():
        _make_image(folder / "image.tar")
        subprocess.run([*words, "import", str(folder / "image.tar"), IMAGE], check=True, capture_output=True)
    started = subprocess.run(
        [*words, "run", "--rm", "--network", "none", IMAGE, "python3", "-c", ""], capture_output=True, text=True, check=False
    )  # fmt: skip
    if started.returncode:
        return f"{runtime}: {started.stderr.strip().splitlines()[-1]}"
    (folder / "works").write_text(runtime)
    sys.stdout.write(f"{_version(words)}, {runtime}, storage vfs\n")
    return ""


def _version(words: list[str]) -> str:
    return subprocess.run([words[0], "--version"], capture_output=True, text=True, check=True).stdout.strip()


def _make_image(path: Path) -> None:
    """An archive with a shell, Python and the libraries of both."""
    library = Path(f"/usr/lib/{PYTHON.resolve().name}")
    programs = [Path("/bin/sh"), Path("/bin/sleep"), PYTHON, *library.glob("lib-dynload/*.so")]
    modules = (file for file in library.rglob("*") if file.is_file() and not LEFT_OUT & {*file.parts})
    files = {*programs, *modules, *(needed for program in programs for needed in _libraries(program))}
    with tarfile.open(path, "w", dereference=True) as archive:
        for file in sorted(files):
            archive.add(file)


def _libraries(program: Path) -> Iterator[Path]:
    listed = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False).stdout
    yield from (Path(word) for line in listed.splitlines() for word in line.split() if word.startswith("/"))


async def _tried() -> int:
    report = probe()
    reached = [finding.text for finding in report.findings if not finding.refused]
    sys.stdout.write(f"probe: {report.level}; reached: {reached or 'nothing'}; {'; '.join(report.missing)}\n")
    wrong = [] if report.level is Level.CONTAINER else [str(report.level)]
    for network in (False, True):
        begin = time.monotonic()
        through = await _attacked(network=network)
        wrong += sorted(through - LEFT_TO_THE_ENGINE)
        who = "an agent" if network else "a proof"
        sys.stdout.write(f"{who}: reached {sorted(through) or 'nothing'} in {time.monotonic() - begin:.1f} s\n")
    await _run_late()
    left = _containers()
    wrong += [f"a container outlived its command: {left}"] if left else []
    sys.stdout.write(f"{'WRONG: ' + ', '.join(wrong) if wrong else 'as promised'}\n")
    return 1 if wrong else 0


async def _attacked(*, network: bool) -> set[str]:
    """The attacks that worked from inside a container."""
    with tempfile.TemporaryDirectory(prefix="pointsman-attacked-") as made, attacked_world(Path(made)) as world:
        spec = world.spec(Level.CONTAINER, network=network)
        ended = await run(replace(spec, command=("python3", "-I", "-S", spec.command[-1]), readable=()))
        assert (ended.level, ended.exit_code) == (Level.CONTAINER, 0), ended.output
        return world.effective(set(json.loads(ended.output)))


async def _run_late() -> None:
    """A command that runs past its time."""
    with tempfile.TemporaryDirectory(prefix="pointsman-late-") as made:
        spec = SandboxSpec(("sleep", "600"), Path(made), {}, (Path(made),), limits=Limits(seconds=2.0))
        ended = await run(replace(spec, level=Level.CONTAINER))
    assert ended.ended_by is EndedBy.TIME_LIMIT, ended


def _containers() -> str:
    listed = subprocess.run([*container.engine(), "ps", "--all", "--quiet"], capture_output=True, text=True, check=True)
    return listed.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
