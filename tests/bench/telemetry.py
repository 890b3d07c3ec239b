"""What spans cost: durable commands without the hooks for spans, with export off, on, and keeping up at any price.

JSON lines. A load ends when the collector has every transition: work that is put off until after it counts too.
A kind is compared with its base in the same round, and the median of these ratios is told, with all of them beside it.
Each round has servers of its own: two that are alike can differ by a tenth for as long as they live.
"""

import asyncio
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
import timeit
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median
from typing import Any

import grpc
from sqlalchemy import text

from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.telemetry.recording import call_recorder
from tests.bench.load import Measured, load
from tests.helpers.children import children_of
from tests.helpers.databases import new_postgres_database
from tests.helpers.eventually import eventually_now
from tests.helpers.postgres import postgres_server

CALLERS = 64
ROUNDS = 5
SLICES = 4
"""Loads of each kind in a round; short ones in turn, for the speed of a shared machine changes from second to second."""
SECONDS = 0.75
CATCH_UP_SECONDS = 120.0
AIM_PERCENT = 5.0
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
SHARE, PATIENCE = "POINTSMAN_TELEMETRY_CPU_SHARE", "POINTSMAN_TELEMETRY_CATCH_UP_SECONDS"
OURS, HOOKLESS = "ours", "hookless"


@dataclass(slots=True)
class Round:
    """Some loads on one server, and what they cost until the collector had all of them."""

    seen: list[Measured] = field(default_factory=list)
    cpu_us: float = 0.0
    """Of the server and the process that exports for it, for each transition that was committed, from the first load to the end of the last one's export."""
    behind: int = 0
    """Transitions that the collector did not have when a load ended, at most."""
    catch_up_seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Commands a second, over all loads."""
        return mean(one.rate for one in self.seen)


@dataclass(frozen=True, slots=True)
class Kind:
    """A server of one kind, alive all the time: being idle costs each kind the same."""

    port: int
    pid: int
    left: "Left"
    exports: bool

    def load(self, into: Round) -> None:
        """Load it for a moment, and wait until it has exported all of it."""
        into.seen.append(asyncio.run(load(self.port, CALLERS, SECONDS)))
        if self.exports:
            behind, begun = self.left.transitions(), time.perf_counter()
            eventually_now(lambda: self.left.transitions() == 0, CATCH_UP_SECONDS)
            into.behind = max(into.behind, behind)
            into.catch_up_seconds = max(into.catch_up_seconds, time.perf_counter() - begun)


def main() -> None:
    """What the hooks take while nothing is exported, and both databases, one after the other."""
    emit_hooks()
    with postgres_server(durable=True) as postgres, tempfile.TemporaryDirectory() as folder, sink() as endpoint:
        names = (f"{Path(folder) / str(number)}.db" for number in itertools.count())
        compare("sqlite", lambda: f"sqlite:///{next(names)}", endpoint)
        compare("postgresql", lambda: new_postgres_database(postgres), endpoint)


def emit_hooks() -> None:
    """What a command waits for spans that nobody wants: a look at the flag where its call ends, another where it is committed."""
    looks = 200_000
    seconds = min(
        timeit.repeat(
            lambda: (call_recorder.is_on, call_recorder.is_on, call_recorder.has_room()), number=looks, repeat=5
        )
    )
    idle = min(timeit.repeat(lambda: (False, False, False), number=looks, repeat=5))
    print(json.dumps({"name": "hooks_while_off", "ns_per_command": round((seconds - idle) / looks * 1e9)}), flush=True)


def compare(database: str, new_url: Callable[[], str], endpoint: str, rounds: int = ROUNDS) -> None:
    """Load all kinds in turn, there and back again, each round beginning with another one: noise and order hit all alike."""
    on = {ENDPOINT: endpoint}
    terms = {
        "without_hooks": (HOOKLESS, {}),
        "off": (OURS, {}),
        "on": (OURS, on),
        "keeping_up": (OURS, {**on, SHARE: "1", PATIENCE: "0"}),
    }
    done, names = [], list(terms)
    for _ in range(rounds):
        with ExitStack() as running:
            kinds = {name: running.enter_context(started(*terms[name], new_url())) for name in names}
            done.append(measure(kinds))
        names = [*names[1:], names[0]]
    emit(database, {name: [one[name] for one in done] for name in terms})


def measure(kinds: dict[str, Kind]) -> dict[str, Round]:
    """One round over all kinds; each is loaded once before, for the first load also pays for what is loaded only once."""
    for kind in kinds.values():
        kind.load(Round())
    found = {name: Round() for name in kinds}
    before = {name: (cpu_seconds(kind.pid), kind.left.committed()) for name, kind in kinds.items()}
    for number in range(SLICES):
        for name in list(kinds)[:: -1 if number % 2 else 1]:
            kinds[name].load(found[name])
    for name, kind in kinds.items():
        cpu, committed = before[name]
        found[name].cpu_us = (cpu_seconds(kind.pid) - cpu) / (kind.left.committed() - committed) * 1e6
    return found


@contextmanager
def started(build: str, variables: dict[str, str], url: str) -> Iterator[Kind]:
    """A server of one kind."""
    with server(build, url, variables) as (port, pid):
        left = Left(url)
        try:
            yield Kind(port, pid, left, exports=bool(variables))
        finally:
            left.close()


def emit(database: str, done: dict[str, list[Round]]) -> None:
    """One row for each kind; what export costs is judged by what both processes have worked until all of it was exported."""
    for kind, rounds in done.items():
        base = done["without_hooks" if kind in ("off", "without_hooks") else "off"]
        costs = [(ours.cpu_us / theirs.cpu_us - 1) * 100 for ours, theirs in zip(rounds, base, strict=True)]
        rates = [ours.rate / theirs.rate for ours, theirs in zip(rounds, done["off"], strict=True)]
        row = {
            "name": f"durable_command_export_{kind}",
            "database": database,
            "callers": CALLERS,
            "rounds": len(rounds),
            "rate": round(median(one.rate for one in rounds), 1),
            "p50_ms": round(median(seen.p50_ms for one in rounds for seen in one.seen), 3),
            "p99_ms": round(median(seen.p99_ms for one in rounds for seen in one.seen), 3),
            "ratio_to_off": round(median(rates), 3),
            "server_cpu_us": round(median(one.cpu_us for one in rounds), 1),
            "transitions_behind": max(one.behind for one in rounds),
            "catch_up_seconds": round(max(one.catch_up_seconds for one in rounds), 2),
            "rate_costs_percent": round((1 - median(rates)) * 100, 1),
            "rate_costs_percent_of_rounds": [round((1 - one) * 100, 1) for one in sorted(rates, reverse=True)],
            "rate_within_aim": 1 - median(rates) <= AIM_PERCENT / 100,
            "costs_percent": round(median(costs), 1),
            "costs_percent_of_rounds": [round(one, 1) for one in sorted(costs)],
            "aim_percent": AIM_PERCENT,
            "within_aim": median(costs) <= AIM_PERCENT,
        }
        print(json.dumps(row), flush=True)


@contextmanager
def server(build: str, url: str, variables: dict[str, str]) -> Iterator[tuple[int, int]]:
    """A server in a process of its own, with these variables: its port and its id."""
    command = [sys.executable, "-m", "tests.bench.server", build, url]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, **variables})
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline()), process.pid
    finally:
        process.kill()
        process.wait()


def cpu_seconds(pid: int) -> float:
    """How long the cores have worked for a process and for those that it has started, as the one that exports is."""
    ticks = 0
    for one in (pid, *children_of(pid)):
        fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


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
