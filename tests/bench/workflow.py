"""NextTasks + CompleteTask pairs with 10, 1,000 and 100,000 tasks, against the chassis' durable command: JSON lines.

Only the size differs between the sizes: as many workflows are in play, each with as many callers; none is emptied, so that
no size pays for ends and empty hand-outs; every eighth task frees another. A ratio is the median of the rounds' own ratios.
"""

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
from statistics import median

import grpc

from pointsman.api.workflow.v1 import model_pb2, plans_pb2, tasks_pb2, workflow_pb2_grpc
from pointsman.services.chassis.core.config import ServerSettings
from pointsman.services.chassis.core.garbage_collection import freeze_startup_objects
from pointsman.services.chassis.runtime.service import start
from pointsman.services.chassis.storage.database import Database
from pointsman.services.workflow.__main__ import build_on
from pointsman.services.workflow.config import WorkflowSettings
from tests.bench.load import Measured
from tests.bench.load import load as load_chassis
from tests.helpers.databases import new_postgres_database
from tests.helpers.postgres import PostgresServer, postgres_server

SIZES = (10, 1_000, 100_000)
CALLERS = (1, 64)
CALLERS_PER_WORKFLOW = 8
"""As many as the smallest workflow has work for."""
ROUNDS = 5
SECONDS = 3.0
CHUNK = 5_000
PAIRS_PER_SECOND = 2_500
"""More than any round does, so that no round runs out of tasks."""


async def serve(url: str) -> None:
    """The workflow service in this process; prints its port."""
    service = build_on(Database(url, "workflow"), WorkflowSettings())
    running = await start(lambda _address: [service], ServerSettings(port=0))
    freeze_startup_objects()
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
    """Store and execute a plan in which one task in eight depends on the one before it."""
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
        depends=[f"T{number - 1}"] if number % 8 == 5 else [],
        requirement="the part does what its page says",
    )


class Group:
    """Callers that share a workflow until eight tenths of it are done, then go on to the next."""

    def __init__(self, pool: "Pool") -> None:
        self._pool = pool
        self._workflow_id = ""
        self._left = 0

    def next(self) -> str:
        """The workflow to claim the next task of."""
        if self._left == 0:
            self._workflow_id, self._left = next(self._pool.fresh), self._pool.size * 8 // 10
        self._left -= 1
        return self._workflow_id


class Pool:
    """Workflows of one size, and the groups that work on them."""

    def __init__(self, name: str, size: int, callers: int) -> None:
        self.size = size
        self._groups = [Group(self) for _ in range(-(-callers // CALLERS_PER_WORKFLOW))]
        needed = int(PAIRS_PER_SECOND * SECONDS * 1.5) // (size * 8 // 10) + len(self._groups)
        self.names = [f"{name}-{number}" for number in range(needed)]
        self.fresh = iter(self.names)
        self._filled = False

    def group_of(self, number: int, callers: int) -> Group:
        """The group of one of so many callers."""
        return self._groups[number % -(-callers // CALLERS_PER_WORKFLOW)]

    async def fill(self, stub: workflow_pb2_grpc.WorkflowServiceStub) -> None:
        """Store all plans that are not stored yet, a few at a time."""
        waiting = iter(() if self._filled else self.names)
        self._filled = True

        async def work() -> None:
            for workflow_id in waiting:
                await plan(stub, workflow_id, self.size)

        await asyncio.gather(*(work() for _ in range(16)))


async def filled(at: Server, pool: Pool) -> None:
    """Store a pool's plans, before the round begins."""
    async with connected(at.port) as stub:
        await pool.fill(stub)


async def pairs(at: Server, pool: Pool, callers: int) -> Result:
    """Claim one task, complete it, by many callers for a while; the rate is of commands, two a pair."""
    async with connected(at.port) as stub:
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

    async def call(group: Group) -> None:
        while (begun := time.perf_counter()) < end:
            request_id, workflow_id = f"{prefix}-{next(numbers)}", group.next()
            claim = tasks_pb2.NextTasksRequest(request_id=request_id, workflow_id=workflow_id)
            handed = await stub.NextTasks(claim)
            done = tasks_pb2.CompleteTaskRequest(
                request_id=f"{request_id}-done",
                workflow_id=workflow_id,
                task_id=handed.tasks[0].spec.task_id,
                attempt=handed.tasks[0].attempt,
            )
            await stub.CompleteTask(done)
            latencies.append(time.perf_counter() - begun)

    await asyncio.gather(*(call(pool.group_of(number, callers)) for number in range(callers)))
    return latencies


def measure(database: str, postgres: PostgresServer | None, folder: Path) -> None:
    """All sizes and the chassis in turn, each round beginning with another, so that a noisy minute hits all alike."""
    with ExitStack() as servers:
        urls = {size: _url(database, postgres, folder / f"{size}.db") for size in (0, *SIZES)}
        chassis = servers.enter_context(server("tests.bench.server", "ours", urls[0]))
        ours = {size: servers.enter_context(server("tests.bench.workflow", urls[size])) for size in SIZES}
        big = Pool("big", SIZES[-1], max(CALLERS))
        for callers in CALLERS:
            rounds: list[dict[int, Result]] = []
            for number in range(ROUNDS):
                pools = {size: Pool(f"{callers}-{number}", size, callers) for size in SIZES[:-1]}
                pools[big.size] = big
                for size, pool in pools.items():
                    asyncio.run(filled(ours[size], pool))
                found: dict[int, Result] = {}
                for size in _in_turn((0, *SIZES), number):
                    load = pairs(ours[size], pools[size], callers) if size else durable_commands(chassis, callers)
                    found[size] = asyncio.run(load)
                rounds.append(found)
            emit(database, callers, rounds)


def _in_turn(sizes: tuple[int, ...], number: int) -> tuple[int, ...]:
    begin = number % len(sizes)
    return sizes[begin:] + sizes[:begin]


def emit(database: str, callers: int, rounds: list[dict[int, Result]]) -> None:
    """Print the medians of each size over the rounds; the chassis stands under 0."""
    smallest = SIZES[0]
    for size in SIZES:
        row = {
            "name": "next_and_complete",
            "database": database,
            "callers": callers,
            "tasks": size,
            "pairs_per_second": round(median(found[size].seen.rate / 2 for found in rounds), 1),
            "p50_ms": round(median(found[size].seen.p50_ms for found in rounds), 3),
            "p99_ms": round(median(found[size].seen.p99_ms for found in rounds), 3),
            "ratio_to_chassis": round(median(found[size].seen.rate / found[0].seen.rate for found in rounds), 3),
            "ratio_to_ten_tasks": round(
                median(found[size].seen.rate / found[smallest].seen.rate for found in rounds), 3
            ),
            "cpu_us_per_command": round(median(found[size].cpu_us for found in rounds), 1),
            "cpu_ratio_to_chassis": round(median(found[0].cpu_us / found[size].cpu_us for found in rounds), 3),
            "cpu_ratio_to_ten_tasks": round(median(found[smallest].cpu_us / found[size].cpu_us for found in rounds), 3),
        }
        print(json.dumps(row), flush=True)


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
