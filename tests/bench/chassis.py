"""The chassis against its floors: JSON lines, one row per name, database and number of callers."""

import asyncio
import json
import tempfile
from pathlib import Path

from tests.bench.load import Measured, load, server
from tests.helpers.databases import new_postgres_database
from tests.helpers.postgres import PostgresServer, postgres_server

CALLERS = (1, 16, 64)
ROUNDS = 3
SECONDS = 3.0


def main() -> None:
    """Measure floors and ours in turn, so that a noisy minute hits both, and print the middle round."""
    with postgres_server() as postgres, tempfile.TemporaryDirectory() as folder:
        for callers in CALLERS:
            with server("empty") as port:
                emit("empty_call", "none", callers, asyncio.run(load(port, callers, SECONDS)), None)
        for database in ("sqlite", "postgresql"):
            for callers in CALLERS:
                compare(database, callers, postgres, Path(folder))


def compare(database: str, callers: int, postgres: PostgresServer, folder: Path) -> None:
    """Stack and ours, several rounds each, one after the other."""
    stacks, ours = [], []
    for number in range(ROUNDS):
        for kind, results in (("stack", stacks), ("ours", ours)):
            name = f"{kind}-{callers}-{number}.db"
            url = f"sqlite:///{folder / name}" if database == "sqlite" else new_postgres_database(postgres)
            with server(kind, url) as port:
                results.append(asyncio.run(load(port, callers, SECONDS)))
    stack, own = middle(stacks), middle(ours)
    emit("stack", database, callers, stack, None)
    emit("durable_command", database, callers, own, stack)


def middle(results: list[Measured]) -> Measured:
    """The round with the middle rate."""
    return sorted(results, key=lambda result: result.rate)[len(results) // 2]


def emit(name: str, database: str, callers: int, measured: Measured, stack: Measured | None) -> None:
    """Print one row."""
    row = {
        "name": name,
        "database": database,
        "callers": callers,
        "rate": round(measured.rate, 1),
        "p50_ms": round(measured.p50_ms, 3),
        "p99_ms": round(measured.p99_ms, 3),
    }
    if stack is not None:
        row["ratio_to_stack"] = round(measured.rate / stack.rate, 3)
        row["p50_ratio_to_stack"] = round(measured.p50_ms / stack.p50_ms, 3)
    print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
