"""Counter processes for tests: sends them work, and sees them die or stop."""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from tests.helpers.counter import counter_pb2, counter_pb2_grpc
from tests.helpers.limits import scaled, within

ROOT = Path(__file__).resolve().parents[3]
MODULE = "tests.robustness.chassis.counter_process"


@dataclass(slots=True)
class Work:
    """Requests that a client has sent, and those of them that it holds an answer to; amounts tell them apart."""

    sent: list[int] = field(default_factory=list)
    acknowledged: dict[int, Any] = field(default_factory=dict)

    def more(self, count: int) -> None:
        """Think of a few more requests."""
        self.sent += range(len(self.sent) + 1, len(self.sent) + count + 1)

    async def send(self, stub: Any) -> None:
        """Send everything again, also what is answered already, four at a time, until the server is gone."""
        limit = asyncio.Semaphore(4)
        await asyncio.gather(*(self._send_one(stub, number, limit) for number in self.sent))

    async def _send_one(self, stub: Any, number: int, limit: asyncio.Semaphore) -> None:
        request = counter_pb2.AddRequest(request_id=f"r{number}", counter_id=f"c{number % 3}", amount=number)
        async with limit:
            try:
                answer = await stub.Add(request, timeout=scaled(20))
            except grpc.aio.AioRpcError as error:
                assert error.code() is grpc.StatusCode.UNAVAILABLE, error  # noqa: PT017 - the server is gone
                return
        assert self.acknowledged.setdefault(number, answer) == answer


@dataclass(frozen=True, slots=True)
class Child:
    """A process that serves the counter."""

    pid: int
    stub: Any
    nursery: "Nursery"

    def terminate(self) -> None:
        """Ask it to stop."""
        os.kill(self.pid, signal.SIGTERM)

    async def ended(self, seconds: float = 20.0) -> int:
        """How it ended: an exit code, or minus the signal that killed it."""
        async with within(seconds):
            return int((await self.nursery.heard())["ended"])


@dataclass(frozen=True, slots=True)
class Nursery:
    """The process whose children are killed."""

    process: asyncio.subprocess.Process

    async def heard(self) -> dict[str, Any]:
        """What it says next."""
        assert self.process.stdout is not None
        line = await self.process.stdout.readline()
        assert line, "the nursery is dead; its standard error says why"
        said: dict[str, Any] = json.loads(line)
        return said

    @asynccontextmanager
    async def child(self, url: str, ahead_seconds: float = 0.0, crash_point: str = "") -> AsyncIterator[Child]:
        """A counter process, armed to die at a point if one is named."""
        assert self.process.stdin is not None
        wanted = {"url": url, "ahead_seconds": ahead_seconds, "crash_point": crash_point}
        self.process.stdin.write(json.dumps(wanted).encode() + b"\n")
        born = await self.heard()
        assert "address" in born, f"died before it served: {born}"
        async with grpc.aio.insecure_channel(born["address"]) as channel:
            yield Child(born["pid"], counter_pb2_grpc.CounterServiceStub(channel), self)


@asynccontextmanager
async def nursery() -> AsyncIterator[Nursery]:
    """A nursery that is gone at the end, with the child that it may have."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", MODULE, cwd=ROOT, stdin=PIPE, stdout=PIPE, start_new_session=True
    )
    try:
        yield Nursery(process)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
