"""Whole standard pipelines, single completions in DAGs of three sizes, and hostile transcripts: JSON lines."""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc

from pointsman.api.pipeline.v1 import pipeline_pb2 as pb
from pointsman.api.pipeline.v1 import pipeline_pb2_grpc
from pointsman.api.pipeline.v1 import route_pb2 as rt
from pointsman.api.pipeline.v1 import state_pb2 as sp
from pointsman.services.chassis.core.config import ServerSettings
from pointsman.services.chassis.core.garbage_collection import freeze_startup_objects
from pointsman.services.chassis.runtime.service import start
from pointsman.services.chassis.storage.database import Database
from pointsman.services.pipeline.__main__ import build_on
from pointsman.services.pipeline.config import PipelineSettings
from pointsman.services.pipeline.formats.route_marker import find_routes
from tests.bench.load import load as load_floor
from tests.bench.load import paired_ratio
from tests.bench.load import server as floor_server
from tests.helpers.databases import new_postgres_database
from tests.helpers.postgres import PostgresServer, postgres_server

CALLERS = 16
STAGES = 6
ROUNDS = 5
SECONDS = 4.0
SIZES = (10, 100, 1_000)
MIB = 1_048_576
WIDE = 32
"""The members of a barrier; their names have to fit the node context of the stage after them."""
PASS = rt.Route(verdict=rt.VERDICT_PASS)
FAIL = rt.Route(verdict=rt.VERDICT_FAIL, severity=rt.SEVERITY_HIGH, hint="not yet")
HOSTILE = {
    "unclosed openers": "<!-- PIPELINE_ROUTE: ",
    "open objects": '<!-- PIPELINE_ROUTE: {"a":"',
    "openers in fences": "```\n<!-- PIPELINE_ROUTE: {\n",
    "openers in quotes": "> <!-- PIPELINE_ROUTE: {\n",
    "bare names": "PIPELINE_ROUTE:",
    "messages": '{"type":"assistant","content":"<!-- PIPELINE_ROUTE: {"}\n',
    "prose": "The quick brown fox jumps over the lazy dog.\n",
}

Stub = pipeline_pb2_grpc.PipelineServiceStub


async def serve(url: str) -> None:
    """The pipeline service in this process; prints its port."""
    service = build_on(Database(url, "pipeline"), PipelineSettings())
    running = await start(lambda _address: [service], ServerSettings(port=0))
    freeze_startup_objects()
    print(running.address.rpartition(":")[2], flush=True)
    await asyncio.Event().wait()


@contextmanager
def pipeline_server(url: str) -> Iterator[int]:
    """A server process; its port."""
    process = subprocess.Popen([sys.executable, "-m", "tests.bench.pipeline", url], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()


async def whole_pipelines(port: int, seconds: float) -> float:
    """Standard pipelines per second, each caller one after the other."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = Stub(channel)
        count = 0
        end = time.perf_counter() + seconds

        async def call(number: int) -> None:
            nonlocal count
            turn = 0
            while time.perf_counter() < end:
                turn += 1
                await one_pipeline(stub, f"{port}-{number}-{turn}")
                count += 1

        begun = time.perf_counter()
        await asyncio.gather(*(call(number) for number in range(CALLERS)))
        return count / (time.perf_counter() - begun)


async def one_pipeline(stub: Stub, name: str) -> None:
    """Start it and complete all its stages, those side by side at the same time."""
    auto = pb.AutoDelegate(agent_id="agent")
    started = await stub.StartPipeline(
        pb.StartPipelineRequest(request_id=name, pipeline_id=name, template="standard", auto_delegate=auto)
    )
    waiting = list(started.next)
    while waiting:
        answers = await asyncio.gather(*(complete(stub, name, item.delegation_id) for item in waiting))
        waiting = [item for answer in answers for item in answer.next]


async def complete(stub: Stub, name: str, delegation_id: str, route: rt.Route = PASS) -> pb.CompleteStageResponse:
    """Complete a stage; the next ones are delegated in the same call."""
    return await stub.CompleteStage(
        pb.CompleteStageRequest(
            request_id=f"{name}/{delegation_id}",
            pipeline_id=name,
            delegation_id=delegation_id,
            agent_id="agent",
            route=route,
            auto_delegate=pb.AutoDelegate(agent_id="agent"),
        )
    )


async def completion_ms(port: int, size: int) -> float:
    """The median time of one completion in a chain of this many stages."""
    nodes = [sp.Node(stage=f"DEV:{number}", deps=[f"DEV:{number - 1}"] if number else []) for number in range(size)]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub, name = Stub(channel), f"dag-{size}"
        await stub.StartPipeline(
            pb.StartPipelineRequest(
                request_id=name,
                pipeline_id=name,
                dag=sp.Dag(nodes=nodes),
                auto_delegate=pb.AutoDelegate(agent_id="agent"),
            )
        )
        times = []
        for number in range(min(size, 200)):
            begun = time.perf_counter()
            await complete(stub, name, f"DEV:{number}#1")
            times.append(time.perf_counter() - begun)
    return sorted(times)[len(times) // 2] * 1000


async def barrier_ms(port: int) -> dict[str, float]:
    """A wide barrier that sends all back once: the median of a member's arrival, the return, and the way on."""
    members = [f"QA:{number}" for number in range(WIDE)]
    nodes = [
        sp.Node(stage="DEV"),
        *(sp.Node(stage=member, deps=["DEV"], on_fail="DEV", barrier_group="wide") for member in members),
    ]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub, name = Stub(channel), "wide"
        await stub.StartPipeline(
            pb.StartPipelineRequest(
                request_id=name,
                pipeline_id=name,
                dag=sp.Dag(nodes=[*nodes, sp.Node(stage="DOCS", deps=members)]),
                auto_delegate=pb.AutoDelegate(agent_id="agent"),
            )
        )
        times: list[list[float]] = []
        for turn, first in ((1, FAIL), (2, PASS)):
            await complete(stub, name, f"DEV#{turn}")
            times.append([])
            for number, member in enumerate(members):
                begun = time.perf_counter()
                await complete(stub, name, f"{member}#{turn}", PASS if number else first)
                times[-1].append((time.perf_counter() - begun) * 1000)
    arrivals = sorted(times[0][:-1] + times[1][:-1])
    return {"p50_ms": arrivals[len(arrivals) // 2], "return_ms": times[0][-1], "advance_ms": times[1][-1]}


def measure(database: str, postgres: PostgresServer, folder: Path) -> None:
    """The floor and ours in turn, so that a noisy minute hits both; the middle rounds are printed, and the middle ratio of a round."""
    floors: list[float] = []
    own: list[float] = []
    for number in range(ROUNDS):
        with floor_server("stack", _url(database, postgres, folder / f"floor-{number}.db")) as port:
            floors.append(asyncio.run(load_floor(port, CALLERS, SECONDS)).rate)
        with pipeline_server(_url(database, postgres, folder / f"own-{number}.db")) as port:
            asyncio.run(whole_pipelines(port, SECONDS / 4))
            own.append(asyncio.run(whole_pipelines(port, SECONDS)))
    floor, rate = sorted(floors)[ROUNDS // 2], sorted(own)[ROUNDS // 2]
    row = {"name": "standard_pipelines", "database": database, "callers": CALLERS, "per_second": round(rate, 1)}
    emit(**row, stack_per_second=round(floor, 1), ratio_to_stack_over_six=round(paired_ratio(floors, own) * STAGES, 3))
    with pipeline_server(_url(database, postgres, folder / "sizes.db")) as port:
        for size in SIZES:
            emit(
                name="complete_stage",
                database=database,
                stages=size,
                p50_ms=round(asyncio.run(completion_ms(port, size)), 3),
            )
        wide = {key: round(value, 3) for key, value in asyncio.run(barrier_ms(port)).items()}
        emit(name="complete_member", database=database, members=WIDE, **wide)


def parsing() -> None:
    """How fast a mebibyte of each trick is read."""
    for name, unit in HOSTILE.items():
        text = (unit * (MIB // len(unit) + 1))[:MIB]
        begun = time.perf_counter()
        find_routes(text)
        emit(name="parse", transcript=name, mib_per_second=round(1 / (time.perf_counter() - begun), 1))


def emit(**row: object) -> None:
    """One line of the result."""
    print(json.dumps(row), flush=True)


def _url(database: str, postgres: PostgresServer, file: Path) -> str:
    return f"sqlite:///{file}" if database == "sqlite" else new_postgres_database(postgres)


def main() -> None:
    """Measure on both databases."""
    parsing()
    with tempfile.TemporaryDirectory() as folder, postgres_server(durable=True) as postgres:
        for database in ("sqlite", "postgresql"):
            measure(database, postgres, Path(folder))


if __name__ == "__main__":
    if len(sys.argv) > 1 and "://" in sys.argv[1]:
        asyncio.run(serve(sys.argv[1]))
    else:
        main()
