"""Load from another process than the server's: callers side by side, rate and latencies."""

import asyncio
import itertools
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import grpc

from tests.bench.floors import COUNTERS
from tests.helpers.counter import counter_pb2, counter_pb2_grpc


@dataclass(frozen=True)
class Measured:
    """What a load saw."""

    rate: float
    p50_ms: float
    p99_ms: float


def paired_ratio(floors: Sequence[float], ours: Sequence[float]) -> float:
    """Ours against the floor of the same round, in the middle round: a slow minute hits both sides of its pair."""
    return statistics.median(own / floor for floor, own in zip(floors, ours, strict=True))


@contextmanager
def server(kind: str, url: str = "") -> Iterator[int]:
    """A server process of one kind; its port."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.server", kind, url], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()


async def load(port: int, callers: int, seconds: float) -> Measured:
    """Call Add from `callers` coroutines for a while, after a short warm-up."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        stub = counter_pb2_grpc.CounterServiceStub(channel)
        numbers = itertools.count()
        await _burst(stub, callers, seconds / 4, numbers)
        started = time.perf_counter()
        latencies = sorted(await _burst(stub, callers, seconds, numbers))
        elapsed = time.perf_counter() - started
    count = len(latencies)
    return Measured(count / elapsed, latencies[count // 2] * 1000, latencies[int(count * 0.99)] * 1000)


async def _burst(stub: Any, callers: int, seconds: float, numbers: "itertools.count[int]") -> list[float]:
    latencies: list[float] = []
    end = time.perf_counter() + seconds
    prefix = f"{time.time_ns():x}"

    async def call() -> None:
        while (begun := time.perf_counter()) < end:
            number = next(numbers)
            await stub.Add(
                counter_pb2.AddRequest(request_id=f"{prefix}-{number}", counter_id=f"c{number % COUNTERS}", amount=1)
            )
            latencies.append(time.perf_counter() - begun)

    await asyncio.gather(*(call() for _ in range(callers)))
    return latencies
