"""Real processes for scenarios: started, waited for by what they print, and killed the hard way."""

import os
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from tests.helpers.eventually import eventually_now
from tests.helpers.loopback import with_credentials
from tests.scenarios.born import NURSERY, Born

ROOT = Path(__file__).parents[2]
PATIENT = Path(__file__).parent / "agents" / "patient.py"
START_SECONDS = 60.0
POINTSMAN = (sys.executable, "-m", "pointsman.cli")
"""Started from nothing, as users start it."""


class Running:
    """A command, usually `pointsman`, in a process group of its own."""

    def __init__(
        self,
        arguments: tuple[str, ...],
        environment: dict[str, str],
        folder: Path = ROOT,
        program: tuple[str, ...] = (),
    ) -> None:
        """Without a program, it is `pointsman`, born in the nursery."""
        shown, output = os.pipe()
        surroundings = with_credentials(**environment)
        self._process: Born | subprocess.Popen[bytes]
        if program:
            self._process = subprocess.Popen(
                [*program, *arguments],
                cwd=folder, env=surroundings, stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip
        else:
            self._process = NURSERY.bear(arguments, surroundings, folder, output)
        os.close(output)
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, args=(shown,), daemon=True)
        self._reader.start()

    def _read(self, shown: int) -> None:
        with open(shown, encoding="utf-8") as output:
            self.lines.extend(iter(output.readline, ""))

    def line_with(self, words: str) -> str:
        """The first line that has these words, once it is printed."""

        def found() -> str:
            assert self._process.poll() is None or any(words in line for line in self.lines), self.lines
            return next((line for line in self.lines if words in line), "")

        return eventually_now(found, START_SECONDS)

    def kill(self) -> None:
        """End it the hard way: kill -9."""
        self._process.kill()
        self._process.wait()
        self._reader.join()

    def stop(self) -> int:
        """Ask it to end, and wait for that."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self, seconds: float = 60.0) -> int:
        """Its exit code."""
        eventually_now(lambda: self.ended, seconds)
        self._reader.join()
        return self._process.wait()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None


@contextmanager
def until_killed(process: Running) -> Iterator[Running]:
    """Kill a command at the end of the block, if it still runs."""
    try:
        yield process
    finally:
        if not process.ended:
            process.kill()


def running(*arguments: str, **environment: str) -> AbstractContextManager[Running]:
    """A command that is killed at the end of the block, if it still runs."""
    return until_killed(Running(arguments, environment))


def finished(*arguments: str, **environment: str) -> tuple[int, str]:
    """A command's exit code and output."""
    with running(*arguments, **environment) as process:
        code = process.wait(120)
        return code, "".join(process.lines)


def finished_in(folder: Path, *arguments: str, **environment: str) -> tuple[int, str]:
    """The same for a command that is called in a folder."""
    process = Running(arguments, environment, folder)
    return process.wait(120), "".join(process.lines)


def patient(gate: Path) -> str:
    """The command line of a coder that waits at a gate, which is a folder that it can look into."""
    gate.mkdir(exist_ok=True)
    return shlex.join((sys.executable, "-I", str(PATIENT), str(gate)))


def open_gate(gate: Path) -> None:
    """Lets the coder at a gate go on."""
    gate.mkdir(exist_ok=True)
    (gate / "open").touch()


def processes_with(marker: str) -> list[int]:
    """Ids of processes whose command line has a marker."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if marker.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found
