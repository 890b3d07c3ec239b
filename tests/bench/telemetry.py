"""What spans cost: durable commands without the hooks for spans, with export off, on, and keeping up at any price.

JSON lines. A round ends when the collector has every transition: work that is put off until after the load counts too.
A kind is compared with its base in the same round, and the median of these ratios is told, with all of them beside it.
"""

import asyncio
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import grpc
from sqlalchemy import text

from pointsman.services.chassis.db import Database
from tests.bench.load import Measured, load
from tests.helpers.databases import new_postgres_database
from tests.helpers.eventually import eventually_now
from tests.helpers.postgres import postgres_server

CALLERS = 64
ROUNDS = 7
SECONDS = 3.0
CATCH_UP_SECONDS = 120.0
AIM_PERCENT = 5.0
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
SHARE, PATIENCE = "POINTSMAN_TELEMETRY_CPU_SHARE", "POINTSMAN_TELEMETRY_CATCH_UP_SECONDS"
OURS, HOOKLESS = "ours", "hookless"


@dataclass(frozen=True, slots=True)
class Round:
    """One load on one server, and what it cost until the collector had all of it."""

    seen: Measured
    cpu_us: float
    """Of the server, for each transition that was committed, until nothing was left to export."""
    behind: int
    """Transitions that the collector did not have when the load ended."""
    catch_up_seconds: float


def main() -> None:
    """Both databases, one after the other."""
    with postgres_server(durable=True) as postgres, tempfile.TemporaryDirectory() as folder, sink() as endpoint:
        names = (f"{Path(folder) / str(number)}.db" for number in itertools.count())
        compare("sqlite", lambda: f"sqlite:///{next(names)}", endpoint)
        compare("postgresql", lambda: new_postgres_database(postgres), endpoint)


def compare(database: str, new_url: Callable[[], str], endpoint: str, rounds: int = ROUNDS) -> None:
    """Each kind once in every round, there and back again, so that a noisy minute and a warm machine hit all alike."""
    on = {ENDPOINT: endpoint}
    kinds = {
        "without_hooks": (HOOKLESS, {}),
        "off": (OURS, {}),
        "on": (OURS, on),
        "keeping_up": (OURS, {**on, SHARE: "1", PATIENCE: "0"}),
    }
    done: dict[str, list[Round]] = {kind: [] for kind in kinds}
    for number in range(rounds):
        for kind in list(kinds)[:: -1 if number % 2 else 1]:
            build, variables = kinds[kind]
            with environment(variables):
                done[kind].append(measure(build, new_url(), exports=bool(variables)))
    emit(database, done)


def measure(build: str, url: str, *, exports: bool) -> Round:
    """Load a server, wait until it has exported all of it, and say what a transition has cost in all."""
    with server(build, url) as (port, pid):
        before = cpu_seconds(pid)
        seen = asyncio.run(load(port, CALLERS, SECONDS))
        left = Left(url)
        behind, begun = left.transitions() if exports else 0, time.perf_counter()
        if exports:
            eventually_now(lambda: left.transitions() == 0, CATCH_UP_SECONDS)
        took, cpu = time.perf_counter() - begun, cpu_seconds(pid) - before
        committed = left.committed()
        left.close()
    return Round(seen, cpu / committed * 1e6, behind, took)


def emit(database: str, done: dict[str, list[Round]]) -> None:
    """One row for each kind; what export costs is judged by what the server has worked until all of it was exported."""
    for kind, rounds in done.items():
        base = done["without_hooks" if kind in ("off", "without_hooks") else "off"]
        costs = [(ours.cpu_us / theirs.cpu_us - 1) * 100 for ours, theirs in zip(rounds, base, strict=True)]
        rates = [ours.seen.rate / theirs.seen.rate for ours, theirs in zip(rounds, done["off"], strict=True)]
        row = {
            "name": f"durable_command_export_{kind}",
            "database": database,
            "callers": CALLERS,
            "rounds": len(rounds),
            "rate": round(median(one.seen.rate for one in rounds), 1),
            "p50_ms": round(median(one.seen.p50_ms for one in rounds), 3),
            "p99_ms": round(median(one.seen.p99_ms for one in rounds), 3),
            "ratio_to_off": round(median(rates), 3),
            "server_cpu_us": round(median(one.cpu_us for one in rounds), 1),
            "transitions_behind": max(one.behind for one in rounds),
            "catch_up_seconds": round(max(one.catch_up_seconds for one in rounds), 2),
            "costs_percent": round(median(costs), 1),
            "costs_percent_of_rounds": [round(one, 1) for one in sorted(costs)],
            "aim_percent": AIM_PERCENT,
            "within_aim": median(costs) <= AIM_PERCENT,
        }
        print(json.dumps(row), flush=True)


@contextmanager
def environment(variables: dict[str, str]) -> Iterator[None]:
    """These variables for the server that is started in the block."""
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            del os.environ[name]


@contextmanager
def server(build: str, url: str) -> Iterator[tuple[int, int]]:
    """A server in a process of its own: its port and its id."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.server", build, url], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline()), process.pid
    finally:
        process.kill()
        process.wait()


def cpu_seconds(pid: int) -> float:
    """How long the cores have worked for a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def sink() -> Iterator[str]:
    """A collector in a process of its own that throws away what it gets; its address."""
    process = subprocess.Popen([sys.executable, "-m", "tests.bench.telemetry"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.wait()


def serve_sink() -> None:
    """Answer every export without looking into it."""
    taken: Any = grpc.unary_unary_rpc_method_handler(lambda _request, _context: b"")
    handlers = grpc.method_handlers_generic_handler(
        "opentelemetry.proto.collector.trace.v1.TraceService", {"Export": taken}
    )
    collector = grpc.server(ThreadPoolExecutor(2), handlers=[handlers])
    print(collector.add_insecure_port("127.0.0.1:0"), flush=True)
    collector.start()
    collector.wait_for_termination()


class Left:
    """What a store has committed, and how much of it the collector does not have yet."""

    def __init__(self, url: str) -> None:
        self._database = Database(url, "counter")

    def committed(self) -> int:
        """How many transitions there are."""
        return self._number("SELECT position FROM head")

    def transitions(self) -> int:
        """How many the collector does not have."""
        return self.committed() - self._number("SELECT position FROM cursors WHERE name = 'spans'")

    def _number(self, query: str) -> int:
        return int(self._database.read_now(lambda connection: connection.execute(text(query)).scalar()) or 0)

    def close(self) -> None:
        """Let go of it."""
        self._database.close()


if __name__ == "__main__":
    serve_sink()
