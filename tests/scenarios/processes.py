"""The control plane as four processes, each of which can be killed and started again."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CONTEXTS = ("router", "workflow", "pipeline", "orchestrator")


class Processes:
    """Four services on one data directory; addresses stay the same over a restart."""

    def __init__(self, data: Path, environment: dict[str, str]) -> None:
        self._data = data
        self._environment = environment
        self._running: dict[str, subprocess.Popen[str]] = {}
        self.addresses: dict[str, str] = {}

    def start(self, *contexts: str) -> None:
        """Start services side by side, each at the address it had before."""
        for context in contexts:
            self._running[context] = self._launch(context)
        for context in contexts:
            output = self._running[context].stdout
            assert output is not None
            self.addresses[context] = output.readline().split()[-1]

    def _launch(self, context: str) -> "subprocess.Popen[str]":
        known = self.addresses.get(context, "127.0.0.1:0")
        peers = {f"POINTSMAN_PEERS_{name.upper()}": address for name, address in self.addresses.items()}
        environment = {
            **os.environ,
            **peers,
            **self._environment,
            "POINTSMAN_DATA": str(self._data),
            "POINTSMAN_SERVER_PORT": known.rpartition(":")[2],
            "GRPC_VERBOSITY": "ERROR",
        }
        return subprocess.Popen(
            [sys.executable, "-m", f"pointsman.services.{context}"],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def kill(self, context: str) -> None:
        """The process is gone at once, without a word."""
        process = self._running.pop(context)
        process.send_signal(signal.SIGKILL)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()

    def stop(self) -> None:
        """End what still runs."""
        for context in tuple(self._running):
            self.kill(context)


@contextmanager
def processes(data: Path, **environment: str) -> Iterator[Processes]:
    """All four services, each in its own process."""
    group = Processes(data, environment)
    try:
        group.start("router", "workflow", "pipeline")
        group.start("orchestrator")
        yield group
    finally:
        group.stop()
