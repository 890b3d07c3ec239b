"""The control plane as four processes, each of which can be killed and started again."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, NamedTuple, Self

import grpc

from pointsman.services.chassis.core.crash import ARMED_BY
from tests.helpers.limits import scaled
from tests.helpers.loopback import open_as, with_credentials
from tests.scenarios.born import AHEAD_SECONDS, NURSERY, Born

CONTEXTS = ("router", "workflow", "pipeline", "orchestrator")


def mocked() -> dict[str, str]:
    """Settings for mock agents, and leases that run out soon after a death but not on a busy machine."""
    return {"POINTSMAN_FULL_MOCK_MODE": "1", "POINTSMAN_ORCHESTRATOR_LEASE_SECONDS": str(scaled(3))}


class Serving(NamedTuple):
    """A service, and what it prints."""

    process: "Born | subprocess.Popen[str]"
    output: IO[str]


class Processes:
    """Four services on one data directory; addresses stay the same over a restart."""

    def __init__(self, data: Path, environment: dict[str, str], runner: str = "") -> None:
        """Born in the nursery; with a runner, a module that is given the service's name, started from nothing."""
        self._data = data
        self._environment = environment
        self._runner = runner
        self._running: dict[str, Serving] = {}
        self.addresses: dict[str, str] = {}

    def set_ahead(self, seconds: float) -> None:
        """Lets services that are started from now on see the time so much later."""
        self._environment[AHEAD_SECONDS] = str(seconds)

    def start_until(self, point: str, context: str) -> None:
        """Start a service that is killed at this point, and wait until it was."""
        process, output = self._launch(context, {ARMED_BY: point})
        code = process.wait()
        output.close()
        assert code == -signal.SIGKILL, f"{context} ended with {code} before it came to {point}"

    def start_armed(self, point: str, context: str) -> None:
        """Start a service that serves where it did before, until it comes to this point."""
        self._running[context] = self._launch(context, {ARMED_BY: point})
        self._running[context].output.readline()

    def start(self, *contexts: str) -> None:
        """Start services side by side, each at the address it had before."""
        for context in contexts:
            self._running[context] = self._launch(context)
        for context in contexts:
            self.addresses[context] = self._running[context].output.readline().split()[-1]

    def _launch(self, context: str, settings: Mapping[str, str] | None = None) -> Serving:
        known = self.addresses.get(context, "127.0.0.1:0")
        peers = {f"POINTSMAN_PEERS_{name.upper()}": address for name, address in self.addresses.items()}
        environment = {
            **with_credentials(**peers),
            **self._environment,
            **(settings or {}),
            "POINTSMAN_DATA": str(self._data),
            "POINTSMAN_SERVER_PORT": known.rpartition(":")[2],
            "GRPC_VERBOSITY": "ERROR",
        }
        return _told(self._runner, context, environment) if self._runner else _born(context, environment)

    def channel(self, context: str = "orchestrator") -> grpc.aio.Channel:
        """A channel of the operator to a service."""
        return open_as(self._data, self.addresses[context])

    def ask(self, context: str) -> str:
        """The line that a service's runner prints for the line it gets."""
        process, output = self._running[context]
        assert isinstance(process, subprocess.Popen)
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
        return output.readline()

    def kill(self, context: str) -> None:
        """The process is gone at once, without a word."""
        process, output = self._running.pop(context)
        process.send_signal(signal.SIGKILL)
        process.wait()
        output.close()
        if isinstance(process, subprocess.Popen) and process.stdin is not None:
            process.stdin.close()

    def stop(self) -> None:
        """End what still runs."""
        for context in tuple(self._running):
            self.kill(context)

    def __enter__(self) -> Self:
        """All four started, the others before the one that calls them."""
        try:
            self.start("router", "workflow", "pipeline")
            self.start("orchestrator")
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def processes(data: Path, **environment: str) -> Processes:
    """All four services, each in its own process, while the context lasts."""
    return Processes(data, environment)


def _born(context: str, environment: dict[str, str]) -> Serving:
    shown, output = os.pipe()
    process = NURSERY.bear_service(context, environment, output)
    os.close(output)
    return Serving(process, os.fdopen(shown, encoding="utf-8"))


def _told(runner: str, context: str, environment: dict[str, str]) -> Serving:
    process = subprocess.Popen(
        [sys.executable, "-m", runner, f"pointsman.services.{context}"],
        env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    return Serving(process, process.stdout)
