"""The chassis against its floors: JSON lines, one row per name, database and number of callers."""

import asyncio
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.bench.floors import open_raw
from tests.bench.load import Measured, load, paired_ratio, server
from tests.bench.preload import preload
from tests.helpers.databases import new_postgres_database
from tests.helpers.postgres import postgres_server

CALLERS = (1, 16, 64)
DATABASES = ("sqlite", "postgresql")
HISTORIES = (1_000, 1_000_000)
ROUNDS = 5
SECONDS = 3.0

NewUrl = Callable[[str], str]


def main() -> None:
    """Measure floors and ours in turn, so that a noisy minute hits both, and print the middle rounds and ratios."""
    with postgres_server(durable=True) as postgres, tempfile.TemporaryDirectory() as folder:

        def new_url(database: str) -> str:
            if database == "postgresql":
                return new_postgres_database(postgres)
            return f"sqlite:///{Path(tempfile.mkdtemp(dir=folder)) / 'bench.db'}"

        for callers in CALLERS:
            with server("empty") as port:
                emit("empty_call", "none", callers, asyncio.run(load(port, callers, SECONDS)))
        for database in DATABASES:
            for joined in CALLERS:
                raw_transactions(database, joined, new_url(database))
            for callers in CALLERS:
                compare(database, callers, new_url)
            flatness(database, new_url)


def raw_transactions(database: str, joined: int, url: str) -> None:
    """The bare transaction with the bare driver, alone and joined."""
    store = open_raw(url)
    latencies: list[float] = []
    started = time.perf_counter()
    while time.perf_counter() - started < SECONDS / 3:
        begun = time.perf_counter()
        store.batch([f"c{number}" for number in range(joined)])
        latencies.append(time.perf_counter() - begun)
    rate = len(latencies) * joined / (time.perf_counter() - started)
    latencies.sort()
    p50, p99 = latencies[len(latencies) // 2] * 1000, latencies[int(len(latencies) * 0.99)] * 1000
    emit("raw_transaction", database, joined, Measured(rate, p50, p99))


def compare(database: str, callers: int, new_url: NewUrl) -> None:
    """Stack and ours in pairs of rounds, each first as often as the other can be."""
    results: dict[str, list[Measured]] = {"stack": [], "ours": []}
    for number in range(ROUNDS):
        for kind in in_turn(number, list(results)):
            with server(kind, new_url(database)) as port:
                results[kind].append(asyncio.run(load(port, callers, SECONDS)))
    stack, ours = results["stack"], results["ours"]
    emit("stack", database, callers, middle(stack))
    ratios = {
        "ratio_to_stack": paired_ratio([each.rate for each in stack], [each.rate for each in ours]),
        "p50_ratio_to_stack": paired_ratio([each.p50_ms for each in stack], [each.p50_ms for each in ours]),
    }
    emit("durable_command", database, callers, middle(ours), ratios)


def flatness(database: str, new_url: NewUrl) -> None:
    """Whether a long journal makes a command slower."""
    urls = {rows: new_url(database) for rows in HISTORIES}
    for rows, url in urls.items():
        preload(url, rows)
    results: dict[int, list[Measured]] = {rows: [] for rows in HISTORIES}
    for number in range(ROUNDS):
        for rows in in_turn(number, list(HISTORIES)):
            with server("ours", urls[rows]) as port:
                results[rows].append(asyncio.run(load(port, 16, SECONDS)))
    short, long = (results[rows] for rows in HISTORIES)
    ratio = paired_ratio([each.rate for each in short], [each.rate for each in long])
    emit(f"durable_command_after_{HISTORIES[0]}_rows", database, 16, middle(short))
    emit(f"durable_command_after_{HISTORIES[1]}_rows", database, 16, middle(long), {"ratio_to_short": ratio})


def in_turn(number: int, sides: list[Any]) -> list[Any]:
    """Both sides of a round, the other way round in every second one."""
    return sides[::-1] if number % 2 else sides


def middle(results: list[Measured]) -> Measured:
    """The round with the middle rate."""
    return sorted(results, key=lambda result: result.rate)[len(results) // 2]


def emit(name: str, database: str, callers: int, measured: Measured, ratios: dict[str, float] | None = None) -> None:
    """Print one row."""
    row = {
        "name": name,
        "database": database,
        "callers": callers,
        "rate": round(measured.rate, 1),
        "p50_ms": round(measured.p50_ms, 3),
        "p99_ms": round(measured.p99_ms, 3),
        **{key: round(value, 3) for key, value in (ratios or {}).items()},
    }
    print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
