"""The services under abuse: all of them and the gateway in a process of their own, seen from outside."""

import asyncio
import faulthandler
import hashlib
import json
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import structlog

from pointsman.credentials.folder import CredentialFolder
from pointsman.services.chassis.core.config import PeerSettings, ServerSettings
from pointsman.services.chassis.runtime.service import Service, start
from pointsman.services.gateway.__main__ import GatewayServer
from pointsman.services.gateway.config import GatewaySettings
from pointsman.services.orchestrator.config import OrchestratorSettings
from tests.helpers.loopback import with_credentials
from tests.scenarios.planes import MOCKED, NOBODY, builder

CREDENTIALS = "credentials"
"""The option that asks every caller for a token of the data directory, as `pointsman up` does."""


class Target:
    """A process with everything in it."""

    def __init__(self, data: Path, *options: str) -> None:
        self.data = data
        environment = with_credentials(POINTSMAN_DATA=str(data)) if CREDENTIALS in options else None
        command = [sys.executable, "-m", "tests.robustness.abuse.target", str(data), *options]
        self._log = (data / "log").open("wb")
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._log, text=True, env=environment)
        assert self._process.stdout is not None
        told = json.loads(self._process.stdout.readline())
        self.address: str = told["grpc"]
        self.local_address: str = told["local"]
        self.http_port: int = told["http"]

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it is still there."""
        return self._process.poll() is None

    @property
    def resident_bytes(self) -> int:
        """The memory that the process holds now."""
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) * 1024

    def content(self) -> dict[str, str]:
        """What is in its stores."""
        return content_of(self.data)

    @property
    def log(self) -> str:
        """What the process has logged."""
        return (self.data / "log").read_text(errors="replace")

    def stop(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        self._log.close()
        if self._process.stdout is not None:
            self._process.stdout.close()


def content_of(data: Path) -> dict[str, str]:
    """What is in every table of every store of a data directory, as a digest of its rows."""
    found: dict[str, str] = {}
    for path in sorted(data.rglob("*.db")):
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            connection.execute("BEGIN")
            names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            found |= {f"{path.stem}.{name}": _digest(connection, name) for name in names}
    return found


def _digest(connection: sqlite3.Connection, table: str) -> str:
    """How many rows there are, and what they say, in whatever order they stand."""
    rows = sorted(repr(row) for row in connection.execute(f"SELECT * FROM {table}"))
    return f"{len(rows)} rows, {hashlib.sha256(chr(10).join(rows).encode()).hexdigest()[:16]}"


@contextmanager
def target(data: Path, *options: str) -> Iterator[Target]:
    """Services on a data directory, gone at the end."""
    process = Target(data, *options)
    try:
        yield process
    finally:
        process.stop()


async def serve(data: str, *options: str) -> None:
    """Everything in this process, until it is killed; options are `mocked`, `credentials`, and settings as NAME=VALUE."""
    faulthandler.register(signal.SIGUSR1)
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    mocks = MOCKED if "mocked" in options else NOBODY
    settings = dict(option.split("=", 1) for option in options if "=" in option)
    own = {name: settings.pop(name) for name in tuple(settings) if name in OrchestratorSettings.fields}
    build = builder(Path(data), mocks, OrchestratorSettings(**own))  # type: ignore[arg-type]
    credentials = CredentialFolder.of(Path(data)) if CREDENTIALS in options else None
    if credentials is not None:
        credentials.make()
    gateway = GatewayServer(GatewaySettings(port=0), credentials)

    def with_gateway(address: str) -> list[Service]:
        return [*build(address), gateway.service(PeerSettings().all_at(address))]

    server = ServerSettings(port=0, **settings)  # type: ignore[arg-type]
    running = await start(with_gateway, server, Path(data) if credentials is not None else None)
    told = {"grpc": running.address, "local": running.local_address}
    print(json.dumps({**told, "http": int(gateway.address.rpartition(":")[2])}), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:]))
