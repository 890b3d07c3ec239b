"""Processor time of the cheapest command behind grpc.aio and behind pyvoy, in turn: JSON lines."""

import asyncio
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc

from pointsman.api.workflow.v1 import model_pb2, plans_pb2, tasks_pb2
from pointsman.api.workflow.v1.workflow_pb2_grpc import WorkflowServiceStub
from tests.bench.grpc_servers.asgi_app import ADDRESS, DATA, serve
from tests.bench.telemetry import cpu_seconds
from tests.bench.workloads import WORKFLOWS, request_id
from tests.helpers.eventually import eventually_now
from tests.helpers.ports import free_port

ROUNDS, SECONDS, START_SECONDS = 3, 4.0, 60.0
CALLERS = (1, 16, 64)


def main() -> None:
    """Measure both servers several times in turn; `serve` is the process of ours."""
    if sys.argv[1:] == ["serve"]:
        asyncio.run(_serve())
        return
    for number, name in itertools.product(range(ROUNDS), ("grpc.aio", "pyvoy")):
        with _process(name) as (pid, address):
            for callers in CALLERS:
                asyncio.run(_load(address, SECONDS / 4, callers))
                before = cpu_seconds(pid)
                calls = asyncio.run(_load(address, SECONDS, callers))
                each = (cpu_seconds(pid) - before) / calls
                row = {"server": name, "round": number, "callers": callers}
                print(json.dumps({**row, "per_second": round(calls / SECONDS), "us": round(each * 1e6)}), flush=True)


async def _serve() -> None:
    await serve()
    await asyncio.Event().wait()


@contextmanager
def _process(name: str) -> Iterator[tuple[int, str]]:
    """A server process with new data, and where it answers."""
    port = free_port()
    by_name = {
        "grpc.aio": [sys.executable, "-m", "tests.bench.grpc_servers", "serve"],
        "pyvoy": [f"{sys.prefix}/bin/pyvoy", "--port", str(port), "tests.bench.grpc_servers.asgi_app:app"],
    }
    with tempfile.TemporaryDirectory() as data:
        file = Path(data) / "address"
        process = subprocess.Popen(
            by_name[name], env={**os.environ, DATA: data, ADDRESS: str(file)}, start_new_session=True
        )
        try:
            eventually_now(file.exists, START_SECONDS)
            yield process.pid, file.read_text() if name == "grpc.aio" else f"127.0.0.1:{port}"
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


async def _load(address: str, seconds: float, callers: int) -> int:
    """Record usage from so many callers at once; how often it was answered."""
    async with grpc.aio.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        await asyncio.wait_for(channel.channel_ready(), START_SECONDS)
        stub = WorkflowServiceStub(channel)
        names = [request_id() for _ in range(WORKFLOWS)]
        for name in names:
            task = model_pb2.TaskSpec(task_id="T1", name="a task", phase="build", actions=["edit"])
            await stub.UpsertPlan(plans_pb2.UpsertPlanRequest(request_id=name, workflow_id=name, tasks=[task]))
        turns, ends, calls = itertools.cycle(names), time.monotonic() + seconds, 0

        async def call() -> None:
            nonlocal calls
            while time.monotonic() < ends:
                usage = tasks_pb2.RecordUsageRequest(request_id=request_id(), workflow_id=next(turns), characters=4)
                await stub.RecordUsage(usage)
                calls += 1

        await asyncio.gather(*(call() for _ in range(callers)))
        return calls


if __name__ == "__main__":
    main()
