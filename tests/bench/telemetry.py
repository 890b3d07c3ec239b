"""What spans cost: durable commands with export off, on, and on while keeping up at any price; JSON lines."""

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc

from tests.bench.chassis import middle
from tests.bench.load import Measured, load

CALLERS = (64,)
ROUNDS = 3
SECONDS = 5.0
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
SHARE, PATIENCE = "POINTSMAN_TELEMETRY_CPU_SHARE", "POINTSMAN_TELEMETRY_CATCH_UP_SECONDS"


def main() -> None:
    """Off, on, and on without a limit, in turn, so that a noisy minute hits all; the middle round of each."""
    with tempfile.TemporaryDirectory() as folder, sink() as endpoint:
        kinds = {"off": {}, "on": {ENDPOINT: endpoint}, "keeping_up": {ENDPOINT: endpoint, SHARE: "1", PATIENCE: "0"}}
        for callers in CALLERS:
            measured: dict[str, list[Measured]] = {kind: [] for kind in kinds}
            behind: dict[str, list[int]] = {kind: [] for kind in kinds}
            cost: dict[str, list[float]] = {kind: [] for kind in kinds}
            for number in range(ROUNDS):
                for kind, variables in kinds.items():
                    path = Path(folder) / f"{kind}-{callers}-{number}.db"
                    with environment(variables), server(f"sqlite:///{path}") as (port, pid):
                        before = cpu_seconds(pid)
                        found = asyncio.run(load(port, callers, SECONDS))
                        cpu = (cpu_seconds(pid) - before) / (found.rate * SECONDS * 1.25)
                        measured[kind].append(found)
                        cost[kind].append(cpu * 1e6)
                    behind[kind].append(transitions_behind(path))
            off = middle(measured["off"])
            for kind, results in measured.items():
                found = middle(results)
                row = {
                    "name": f"durable_command_export_{kind}",
                    "database": "sqlite",
                    "callers": callers,
                    "rate": round(found.rate, 1),
                    "p50_ms": round(found.p50_ms, 3),
                    "p99_ms": round(found.p99_ms, 3),
                    "ratio_to_off": round(found.rate / off.rate, 3),
                    "server_cpu_us": round(sorted(cost[kind])[ROUNDS // 2], 1),
                    "transitions_behind": sorted(behind[kind])[ROUNDS // 2] if kind != "off" else None,
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
def server(url: str) -> Iterator[tuple[int, int]]:
    """A server in a process of its own: its port and its id."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.server", "ours", url], stdout=subprocess.PIPE, text=True
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


def transitions_behind(path: Path) -> int:
    """How many transitions the collector did not have when the load ended."""
    with sqlite3.connect(path) as connection:
        (head,) = connection.execute("SELECT position FROM head").fetchone()
        found = connection.execute("SELECT position FROM cursors WHERE name = 'spans'").fetchone()
    connection.close()
    return int(head) - int(found[0] if found else 0)


if __name__ == "__main__":
    serve_sink()
