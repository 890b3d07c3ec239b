"""Real deployments to measure: `pointsman up`, or four `pointsman serve` processes; of this checkout or of another one."""

import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONTEXTS = ("router", "workflow", "pipeline", "orchestrator")
COUNTED = {"pointsman_rpc_seconds_count": "rpcs", "pointsman_commit_seconds_count": "commits"}
SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Checkout:
    """Source code to measure, and the interpreter that has its dependencies."""

    name: str
    folder: Path
    python: str

    @classmethod
    def here(cls) -> "Checkout":
        """The code that this benchmark belongs to."""
        return cls("ours", ROOT, sys.executable)

    @classmethod
    def at(cls, folder: Path) -> "Checkout":
        """Another checkout, set up with `make setup`."""
        return cls("other", folder, str(folder / ".venv/bin/python"))


@dataclass(slots=True)
class Process:
    """One server process: where it listens, and where its metrics are."""

    child: "subprocess.Popen[str]"
    address: str
    metrics_port: int

    def cpu_seconds(self) -> float:
        """User and system time so far; other processes on the machine do not count."""
        fields = Path(f"/proc/{self.child.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def counts(self) -> Counter[str]:
        """RPCs answered and transactions committed so far."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics") as answer:
            text = answer.read().decode()
        counted: Counter[str] = Counter()
        for name, _, value in SAMPLE.findall(text):
            if name in COUNTED:
                counted[COUNTED[name]] += int(float(value))
        return counted


@dataclass(slots=True)
class Deployment:
    """All four services, as users run them."""

    processes: dict[str, Process]
    data: Path
    children: list[Process] = field(default_factory=list)

    def address(self, context: str) -> str:
        """Where a service listens."""
        return self.processes[context].address

    def cpu_seconds(self) -> float:
        """Processor time of all its processes together."""
        return sum(process.cpu_seconds() for process in self.children)

    def counts(self) -> Counter[str]:
        """RPCs and commits of all its processes together."""
        return sum((process.counts() for process in self.children), Counter())

    def disk_bytes(self) -> int:
        """Size of the SQLite stores, with the pages that are still in their write-ahead logs; 0 on PostgreSQL."""
        return sum(_size(file) for file in self.data.glob("*.db"))


def _size(file: Path) -> int:
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        pages, size = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
        return int(pages) * int(size)


def launch(checkout: Checkout, arguments: Sequence[str], environment: Mapping[str, str]) -> Process:
    """Start a `pointsman` command that serves, and wait until it says where."""
    metrics_port = _free_port()
    variables = {**os.environ, **environment, "POINTSMAN_SERVER_METRICS_PORT": str(metrics_port)}
    child = subprocess.Popen(
        [checkout.python, "-m", "pointsman.cli", *arguments, "--port", "0", "--json"],
        cwd=checkout.folder,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert child.stdout is not None
    return Process(child, json.loads(child.stdout.readline())["address"], metrics_port)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def deployed(layout: str, checkout: Checkout, data: Path, environment: Mapping[str, str]) -> Iterator[Deployment]:
    """A deployment on a data directory: "up" in one process, "processes" with a process for each service."""
    data.mkdir(parents=True, exist_ok=True)
    given = {"POINTSMAN_DATA": str(data), "GRPC_VERBOSITY": "ERROR", **environment}
    deployment = Deployment({}, data)
    try:
        if layout == "up":
            plane = launch(checkout, ("up",), given)
            deployment.children.append(plane)
            deployment.processes.update(dict.fromkeys(CONTEXTS, plane))
        else:
            for context in CONTEXTS:
                peers = {f"POINTSMAN_PEERS_{name.upper()}": p.address for name, p in deployment.processes.items()}
                process = launch(checkout, ("serve", context), {**given, **peers})
                deployment.children.append(process)
                deployment.processes[context] = process
        yield deployment
    finally:
        for process in deployment.children:
            process.child.kill()
            process.child.wait()
