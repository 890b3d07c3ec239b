"""NextTasks + CompleteTask pairs with 10, 1,000 and 100,000 tasks, against the chassis' durable command: JSON lines."""

import asyncio
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc

from pointsman.api.workflow.v1 import model_pb2, plans_pb2, tasks_pb2, workflow_pb2_grpc
from pointsman.services.chassis.config import ServerSettings
from pointsman.services.chassis.db import Database
from pointsman.services.chassis.service import settle_memory, start
from pointsman.services.workflow.__main__ import build_on
from pointsman.services.workflow.config import WorkflowSettings
from tests.bench.load import Measured
from tests.bench.load import load as load_chassis
from tests.helpers.databases import new_postgres_database
from tests.helpers.postgres import PostgresServer, postgres_server

SIZES = (10, 1_000, 100_000)
CALLERS = (1, 64)
ROUNDS = 3
SECONDS = 3.0
CHUNK = 5_000
PAIRS_PER_SECOND = 2_500
"""More than any round does, so that no round runs out of tasks."""


async def serve(url: str) -> None:
    """The workflow service in this process; prints its port."""
    service = build_on(Database(url, "workflow"), WorkflowSettings())
    running = await start(lambda _address: [service], ServerSettings(port=0))
    settle_memory()
    print(running.address.rpartition(":")[2], flush=True)
    await asyncio.Event().wait()


@dataclass(frozen=True)
class Server:
    """A server process: where it listens, and how much of a processor it has used."""

    port: int
    pid: int

    def cpu_seconds(self) -> float:
        """User and system time so far, on Linux; other processes on the machine do not count."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Result:
    """What one round saw: the callers' side, and the server's processor time per command."""

    seen: Measured
    cpu_us: float


@contextmanager
def server(*arguments: str) -> Iterator[Server]:
    """A module of the benchmarks as a process that prints its port."""
    process = subprocess.Popen([sys.executable, "-m", *arguments], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield Server(int(process.stdout.readline()), process.pid)
    finally:
        process.kill()
        process.wait()


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[workflow_pb2_grpc.WorkflowServiceStub]:
    """A stub on a server of this machine."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield workflow_pb2_grpc.WorkflowServiceStub(channel)


async def plan(stub: workflow_pb2_grpc.WorkflowServiceStub, workflow_id: str, size: int) -> None:
    """Store and execute a plan in which every tenth task depends on the one before it."""
    for begin in range(0, size, CHUNK):
        tasks = [_task(number) for number in range(begin, min(begin + CHUNK, size))]
        await stub.UpsertPlan(
            plans_pb2.UpsertPlanRequest(
                request_id=f"{workflow_id}-{begin}", workflow_id=workflow_id, tasks=tasks, append=begin > 0
            )
        )
    settings = plans_pb2.ExecutionSettings(
        execution_mode=model_pb2.EXECUTION_MODE_QUALITY_GATE, use_subagent=True, pause_before_commit=False
    )
    request = plans_pb2.ExecuteRequest(request_id=f"{workflow_id}-go", workflow_id=workflow_id, settings=settings)
    await stub.Execute(request)


def _task(number: int) -> model_pb2.TaskSpec:
    return model_pb2.TaskSpec(
        task_id=f"T{number}",
        name=f"change part {number}",
        phase="build",
        files=[f"src/part_{number}.py"],
        actions=["edit", "test"],
        depends=[f"T{number - 1}"] if number % 10 == 9 else [],
        requirement="the part does what its page says",
    )


class Pool:
    """Workflows of one size: callers share one until it has no more to give, or have one each when it is small."""

    def __init__(self, name: str, size: int, callers: int) -> None:
        self.size = size
        self._shared = size > callers
        needed = int(PAIRS_PER_SECOND * SECONDS * 1.5) // size + 1
        self.names = [f"{name}-{number}" for number in range(needed if self._shared else needed + 2 * callers)]
        self._left = iter(self.names)
        self._current = next(self._left) if self._shared else ""
        self._filled = False

    async def fill(self, stub: workflow_pb2_grpc.WorkflowServiceStub) -> None:
        """Store all plans that are not stored yet, a few at a time."""
        waiting = iter(() if self._filled else self.names)
        self._filled = True

        async def work() -> None:
            for workflow_id in waiting:
                await plan(stub, workflow_id, self.size)

        await asyncio.gather(*(work() for _ in range(16)))

    def first(self) -> str:
        """The workflow a caller begins with."""
        return self._current if self._shared else next(self._left)

    def after(self, workflow_id: str) -> str:
        """The workflow to go on with when this one has nothing ready."""
        if not self._shared:
            return next(self._left)
        if workflow_id == self._current:
            self._current = next(self._left)
        return self._current


async def pairs(at: Server, pool: Pool, callers: int) -> Result:
    """Claim one task, complete it, by many callers for a while; the rate is of commands, two a pair."""
    async with connected(at.port) as stub:
        await pool.fill(stub)
        await _burst(stub, pool, callers, SECONDS / 4)
        started, cpu = time.perf_counter(), at.cpu_seconds()
        latencies = sorted(await _burst(stub, pool, callers, SECONDS))
        elapsed, used = time.perf_counter() - started, at.cpu_seconds() - cpu
    count = len(latencies)
    seen = Measured(2 * count / elapsed, latencies[count // 2] * 1000, latencies[int(count * 0.99)] * 1000)
    return Result(seen, used / (2 * count) * 1e6)


async def durable_commands(at: Server, callers: int) -> Result:
    """The chassis' own command, as its benchmark loads it; its warm-up is a fifth of all it does."""
    started, cpu = time.perf_counter(), at.cpu_seconds()
    seen = await load_chassis(at.port, callers, SECONDS)
    return Result(seen, (at.cpu_seconds() - cpu) / (seen.rate * (time.perf_counter() - started)) * 1e6)


async def _burst(stub: workflow_pb2_grpc.WorkflowServiceStub, pool: Pool, callers: int, seconds: float) -> list[float]:
    latencies: list[float] = []
    end = time.perf_counter() + seconds
    numbers, prefix = itertools.count(), f"{time.time_ns():x}"

    async def call() -> None:
        workflow_id = pool.first()
        while (begun := time.perf_counter()) < end:
            request_id = f"{prefix}-{next(numbers)}"
            claim = tasks_pb2.NextTasksRequest(request_id=request_id, workflow_id=workflow_id)
            handed = await stub.NextTasks(claim)
            if not handed.tasks:
                workflow_id = pool.after(workflow_id)
                continue
            done = tasks_pb2.CompleteTaskRequest(
                request_id=f"{request_id}-done",
                workflow_id=workflow_id,
                task_id=handed.tasks[0].spec.task_id,
                attempt=handed.tasks[0].attempt,
            )
            await stub.CompleteTask(done)
            latencies.append(time.perf_counter() - begun)

    await asyncio.gather(*(call() for _ in range(callers)))
    return latencies


def measure(database: str, postgres: PostgresServer | None, folder: Path) -> None:
    """All sizes and the chassis in turn, several rounds, so that a noisy minute hits all alike."""
    with ExitStack() as servers:
        urls = {size: _url(database, postgres, folder / f"{size}.db") for size in (0, *SIZES)}
        chassis = servers.enter_context(server("tests.bench.server", "ours", urls[0]))
        ours = {size: servers.enter_context(server("tests.bench.workflow", urls[size])) for size in SIZES}
        big = Pool("big", SIZES[-1], 0)
        for callers in CALLERS:
            found: dict[int, list[Result]] = {size: [] for size in (0, *SIZES)}
            for number in range(ROUNDS):
                found[0].append(asyncio.run(durable_commands(chassis, callers)))
                for size in SIZES:
                    pool = big if size == big.size else Pool(f"{callers}-{number}", size, callers)
                    found[size].append(asyncio.run(pairs(ours[size], pool, callers)))
            emit(database, callers, {size: _middle(results) for size, results in found.items()})


def emit(database: str, callers: int, middle: dict[int, Result]) -> None:
    """Print the middle round of each size; the chassis stands under 0."""
    for size in SIZES:
        own, cpu_us = middle[size].seen, middle[size].cpu_us
        row = {
            "name": "next_and_complete",
            "database": database,
            "callers": callers,
            "tasks": size,
            "pairs_per_second": round(own.rate / 2, 1),
            "p50_ms": round(own.p50_ms, 3),
            "p99_ms": round(own.p99_ms, 3),
            "ratio_to_chassis": round(own.rate / middle[0].seen.rate, 3),
            "ratio_to_ten_tasks": round(own.rate / middle[SIZES[0]].seen.rate, 3),
            "cpu_us_per_command": round(cpu_us, 1),
            "cpu_ratio_to_chassis": round(middle[0].cpu_us / cpu_us, 3),
            "cpu_ratio_to_ten_tasks": round(middle[SIZES[0]].cpu_us / cpu_us, 3),
        }
        print(json.dumps(row), flush=True)


def _middle(results: list[Result]) -> Result:
    """The middle of each figure on its own: on a busy machine the rates say less than the processor time."""
    seen = sorted((one.seen for one in results), key=lambda one: one.rate)[len(results) // 2]
    return Result(seen, sorted(one.cpu_us for one in results)[len(results) // 2])


def _url(database: str, postgres: PostgresServer | None, file: Path) -> str:
    if database == "sqlite":
        return f"sqlite:///{file}"
    assert postgres is not None
    return new_postgres_database(postgres)


def main() -> None:
    """Measure on both databases."""
    with tempfile.TemporaryDirectory() as folder, postgres_server(durable=True) as postgres:
        for database in ("sqlite", "postgresql"):
            measure(database, postgres, Path(folder))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(serve(sys.argv[1]))
    else:
        main()
