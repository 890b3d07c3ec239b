"""What a cluster has to be given: two replicas of each service on one PostgreSQL, mock runs, one JSON line. `make bench BENCH=sizing`."""

import asyncio
import json
import os
import tempfile
import time
from pathlib import Path

import psycopg

from pointsman.client import Client, Order
from tests.helpers.databases import new_postgres_database
from tests.helpers.postgres import postgres_server
from tests.robustness.replicas import CONTEXTS, Replicas, two_of_each
from tests.scenarios.planes import WISH

RUNS = 60
AT_ONCE = 8


def main() -> None:
    """Measure and print."""
    with postgres_server() as server, tempfile.TemporaryDirectory() as folder:
        print(json.dumps(asyncio.run(_measured(new_postgres_database(server), Path(folder)))), flush=True)


async def _measured(url: str, folder: Path) -> dict[str, object]:
    async with two_of_each(url, folder) as replicas:
        await _runs(replicas.client, 1)
        idle, before = _megabytes(replicas), _stored(url)
        started = time.perf_counter()
        await asyncio.gather(*(_runs(replicas.client, RUNS // AT_ONCE) for _ in range(AT_ONCE)))
        seconds = time.perf_counter() - started
        after, busy = _stored(url), _megabytes(replicas)
    done = RUNS // AT_ONCE * AT_ONCE
    per_run = {name: round((after[name] - before[name]) / done, 1) for name in after}
    return {
        "bench": "sizing",
        "cores": os.cpu_count(),
        "replica_megabytes_idle": max(idle),
        "replica_megabytes_busy": max(busy),
        "journal_rows_per_run": {name: per_run[name] for name in CONTEXTS},
        "postgres_kilobytes_per_run": round(per_run["bytes"] / 1000, 1),
        "runs_per_second": round(done / seconds, 2),
    }


async def _runs(client: Client, number: int) -> None:
    for _ in range(number):
        answer = await client.runs.submit(Order(WISH))
        async for _ in client.runs.watch(answer.run.id):
            pass


def _megabytes(replicas: Replicas) -> list[int]:
    """Resident memory of each replica."""
    return [_resident(member.process.pid) for member in replicas.members if member.process is not None]


def _resident(pid: int | None) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    (line,) = [line for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1]) // 1024


def _stored(url: str) -> dict[str, int]:
    """Journal rows of each context, and bytes of the whole database with its indexes."""
    with psycopg.connect(url, autocommit=True) as connection:
        counts = {name: f"SELECT count(*) FROM {name}.journal" for name in CONTEXTS}
        queries = {**counts, "bytes": "SELECT pg_database_size(current_database())"}
        return {name: int(connection.execute(query).fetchone()[0]) for name, query in queries.items()}  # type: ignore[index]
