"""Disk of a run and of a standard pipeline on SQLite as a store grows, by table: JSON lines. `make bench BENCH=disk`.

POINTSMAN_BENCH_SIZES=1000,10000 says how many there are when it is measured: what the last of them took each, not all.
"""

import asyncio
import json
import os
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import grpc

from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.api.orchestrator.v1.orchestrator_pb2_grpc import OrchestratorServiceStub
from pointsman.api.pipeline.v1.pipeline_pb2_grpc import PipelineServiceStub
from tests.bench.deployments import Checkout, Deployment, deployed
from tests.bench.workloads import MOCKED, complete_stage, request_id, start_pipeline, submit

SIZES = tuple(map(int, os.environ.get("POINTSMAN_BENCH_SIZES", "100,500,1000").split(",")))
AT_ONCE = 16
LARGEST = 6
"""Tables and indexes that are named."""
Unit = Callable[[Any], Awaitable[None]]


async def one_run(channel: Any) -> None:
    """A run of one task with mock agents."""
    await submit(OrchestratorServiceStub(channel), runs.RUN_STATE_COMPLETE)


async def one_pipeline(channel: Any) -> None:
    """A pipeline of the standard template, each stage passed."""
    stub, name = PipelineServiceStub(channel), request_id()
    waiting = await start_pipeline(stub, name, template="standard")
    while waiting:
        answers = await asyncio.gather(*(complete_stage(stub, name, item) for item in waiting))
        waiting = [item for answer in answers for item in answer]


async def grow(deployment: Deployment, unit: Unit, name: str) -> None:
    """Make units up to each size, and print what one took since the size before."""
    done, before = 0, Counter(bytes_by_name(deployment.data))
    async with grpc.aio.insecure_channel(deployment.address("orchestrator")) as channel:
        for size in SIZES:
            made = 0
            while done + made < size:
                await asyncio.gather(*(unit(channel) for _ in range(AT_ONCE)))
                made += AT_ONCE
            done += made
            after = Counter(bytes_by_name(deployment.data))
            added = {table: round((after[table] - before[table]) / made) for table in after}
            largest = dict(sorted(added.items(), key=lambda item: -item[1])[:LARGEST])
            total = round(sum(added.values()) / 1024, 2)
            print(json.dumps({"bench": f"disk, {name}", "there": done, "kb_each": total, "bytes": largest}), flush=True)
            before = after


def bytes_by_name(data: Path) -> dict[str, int]:
    """Bytes of the pages of every table and index of the stores."""
    found: dict[str, int] = {}
    for file in sorted(data.glob("*.db")):
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as store:
            pages = store.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name")
            found.update({f"{file.stem}.{name}": size for name, size in pages})
    return found


def main() -> None:
    """Runs, then pipelines, each on stores of their own."""
    for name, unit, environment in (("run of one task", one_run, MOCKED), ("standard pipeline", one_pipeline, {})):
        with (
            tempfile.TemporaryDirectory() as folder,
            deployed("up", Checkout.here(), Path(folder) / "data", environment) as deployment,
        ):
            asyncio.run(grow(deployment, unit, name))


if __name__ == "__main__":
    main()
