"""Commands and services that the nursery bears: asked for, waited for and killed like a process that was started here."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
AHEAD_SECONDS = "TEST_AHEAD_SECONDS"
"""A variable of what is born: by how much its clock is ahead."""


class Born:
    """A command that the nursery bore, with the methods of `subprocess.Popen` that tests use."""

    def __init__(self, report: int) -> None:
        self._report = open(report, encoding="utf-8")  # noqa: SIM115 - closed when the end was told
        self.pid = int(self._report.readline())
        self._status: int | None = None
        self._minding = threading.Thread(target=self._mind, daemon=True)
        self._minding.start()

    def _mind(self) -> None:
        with self._report:
            self._status = int(self._report.readline())

    def poll(self) -> int | None:
        """Its exit code, once it has ended."""
        return None if self._status is None else os.waitstatus_to_exitcode(self._status)

    def wait(self) -> int:
        """Its exit code, when it has ended."""
        self._minding.join()
        code = self.poll()
        assert code is not None, "the nursery is dead; its standard error says why"
        return code

    def send_signal(self, number: int) -> None:
        """Nothing, if it has ended."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it the hard way."""
        self.send_signal(signal.SIGKILL)


class Nursery:
    """The process that bears commands, started for the first of them; it ends with this one."""

    def __init__(self) -> None:
        self._asked: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def bear(self, arguments: tuple[str, ...], environment: dict[str, str], folder: Path, output: int) -> Born:
        """`pointsman` with these arguments, which writes to this file."""
        return self._bear(
            output, module="pointsman.cli", arguments=arguments, environment=environment, folder=str(folder)
        )

    def bear_on_terminal(self, arguments: tuple[str, ...], environment: dict[str, str], terminal: int) -> Born:
        """`pointsman` with these arguments, as somebody at this terminal has started it."""
        wanted = {"arguments": arguments, "environment": environment, "folder": str(ROOT), "is_terminal": True}
        return self._bear(terminal, module="pointsman.cli", **wanted)

    def bear_service(self, context: str, environment: dict[str, str], output: int) -> Born:
        """A service, which says to this file where it serves; its log is nobody's."""
        module = f"pointsman.services.{context}"
        return self._bear(output, module=module, arguments=(), environment=environment, folder=str(ROOT), is_quiet=True)

    def _bear(self, output: int, **wanted: object) -> Born:
        told, report = os.pipe()
        with self._lock:
            if self._asked is None:
                self._asked = self._start()
            socket.send_fds(
                self._asked,
                [json.dumps({"is_quiet": False, "is_terminal": False, **wanted}).encode()],
                [output, report],
            )
        os.close(report)
        return Born(told)

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.scenarios.nursery"],
                cwd=ROOT,
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
            )
        return ours


NURSERY = Nursery()
