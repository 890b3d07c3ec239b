"""The four services as processes that are killed, paused, starved and shifted in time, each behind its own wire."""

import asyncio
import contextlib
import json
import os
import random  # noqa: TID251 - a campaign is repeated from its seed
import resource
import signal
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from pointsman.services.all_in_one import CONTEXTS
from pointsman.services.chassis.core.crash import ARMED_BY
from tests.helpers.limits import Limit, scaled
from tests.helpers.ports import free_port
from tests.robustness.faults.disk import Disk, a_disk
from tests.robustness.faults.nursery import CLOCK, DISK, LOG, OFFSET
from tests.robustness.faults.proxy import OPTIONS, Weather, Wire

ROOT = Path(__file__).resolve().parents[3]
START_SECONDS = 60.0
LEASE_SECONDS = 2.0
SETTINGS = {
    "POINTSMAN_ORCHESTRATOR_LEASE_SECONDS": str(LEASE_SECONDS),
    "POINTSMAN_ORCHESTRATOR_SWEEP_SECONDS": "0.5",
    "GRPC_VERBOSITY": "NONE",
}


@dataclass(slots=True)
class Member:
    """One service: where it listens, behind which wire, and the process that it is now."""

    context: str
    port: int
    wire_port: int
    weather: Weather
    folder: Path
    disk: Disk
    pid: int = 0
    pidfd: int = -1
    died_at: float = 0.0
    paused: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def address(self) -> str:
        """Where callers find it: at the other end of the wire."""
        return f"127.0.0.1:{self.wire_port}"

    @property
    def clock(self) -> Path:
        """The file that says how far its clock is ahead."""
        return self.folder / f"{self.context}.clock"

    @property
    def log(self) -> Path:
        """What it says."""
        return self.folder / f"{self.context}.log"

    def signal(self, number: signal.Signals) -> None:
        """Send its process a signal; a process that is gone does not mind."""
        if self.pidfd >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.pidfd, number)

    def let_go(self) -> None:
        """Forget the process that was."""
        if self.pidfd >= 0:
            os.close(self.pidfd)
        self.pidfd = -1

    async def ended(self, seconds: float) -> bool:
        """Whether the process ends within the time."""
        if self.pidfd < 0:
            return True
        loop = asyncio.get_running_loop()
        gone: asyncio.Future[None] = loop.create_future()
        loop.add_reader(self.pidfd, lambda: None if gone.done() else gone.set_result(None))
        try:
            async with asyncio.timeout(seconds):
                await gone
        except TimeoutError:
            return False
        finally:
            loop.remove_reader(self.pidfd)
        return True


class Cluster:
    """All four, on one data directory or one PostgreSQL database."""

    def __init__(self, folder: Path, database_url: str, seed: int, *, cold: bool = False) -> None:
        self.folder = folder
        self.database_url = database_url
        self.recoveries: list[float] = []
        """Seconds from each death to the first call taken."""
        self._cold = cold
        chance = random.Random(seed)
        ports = iter([free_port() for _ in range(2 * len(CONTEXTS))])
        self.members = {
            name: Member(name, next(ports), next(ports), Weather(), folder, a_disk(folder / f"{name}.disk"))
            for name in CONTEXTS
        }
        self._wires = {
            name: Wire(f"127.0.0.1:{member.port}", member.weather, chance) for name, member in self.members.items()
        }
        self._nursery: asyncio.subprocess.Process | None = None
        self._bearing = asyncio.Lock()

    async def start(self) -> None:
        """Everything up."""
        if not self._cold:
            self._nursery = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tests.robustness.faults.nursery", cwd=ROOT, stdin=PIPE, stdout=PIPE
            )
            await self._heard()
        for member in self.members.values():
            member.clock.write_bytes(OFFSET.pack(0.0))
            await self._wires[member.context].start(member.wire_port)
        await asyncio.gather(*(self.bear(name) for name in CONTEXTS))

    async def stop(self) -> None:
        """Everything down, without a word."""
        for member in self.members.values():
            member.signal(signal.SIGKILL)
            await member.ended(scaled(START_SECONDS))
            member.let_go()
        for wire in self._wires.values():
            await wire.stop()
        if self._nursery is not None:
            assert self._nursery.stdin is not None
            self._nursery.stdin.close()
            await self._nursery.wait()

    async def bear(self, context: str, armed: str = "") -> None:
        """Start a service and wait until it takes calls; an armed one may be dead by then."""
        member = self.members[context]
        limit = Limit(START_SECONDS)
        while not await self._born(member, armed) and not armed:
            assert not limit.is_over(), f"{context} does not start, see {member.log}"
        if member.died_at:
            self.recoveries.append(time.monotonic() - member.died_at)
            member.died_at = 0.0

    async def _born(self, member: Member, armed: str) -> bool:
        member.let_go()
        member.pid = await (self._start_cold(member, armed) if self._cold else self._fork(member, armed))
        try:
            member.pidfd = os.pidfd_open(member.pid)
        except ProcessLookupError:
            return False
        return await self._serving(member)

    async def kill(self, context: str) -> None:
        """The process is gone at once."""
        member = self.members[context]
        member.signal(signal.SIGKILL)
        member.died_at = time.monotonic()
        assert await member.ended(scaled(START_SECONDS))

    async def dies_of_itself(self, context: str, seconds: float) -> bool:
        """Whether an armed process reaches its point within the time."""
        member = self.members[context]
        dead = await member.ended(seconds)
        if dead:
            member.died_at = time.monotonic()
        return dead

    def shift_clock(self, context: str, seconds: float) -> None:
        """Its clock jumps, now."""
        with self.members[context].clock.open("r+b") as file:
            file.write(OFFSET.pack(seconds))

    def limit_files(self, context: str, bytes_each: int) -> None:
        """No file of it may grow beyond this; -1 lifts the limit."""
        if self.members[context].pid:
            resource.prlimit(self.members[context].pid, resource.RLIMIT_FSIZE, (bytes_each, -1))

    async def _fork(self, member: Member, armed: str) -> int:
        assert self._nursery is not None
        assert self._nursery.stdin is not None
        wanted = {"context": member.context, "environment": self.environment(member, armed)}
        async with self._bearing:
            self._nursery.stdin.write(json.dumps(wanted).encode() + b"\n")
            return (await self._heard())["pid"]

    async def _start_cold(self, member: Member, armed: str) -> int:
        with member.log.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tests.robustness.faults.nursery", member.context, cwd=ROOT, stdout=log, stderr=log,
                env={**os.environ, **self.environment(member, armed)},
            )  # fmt: skip
        return process.pid

    async def _heard(self) -> dict[str, int]:
        assert self._nursery is not None
        assert self._nursery.stdout is not None
        line = await self._nursery.stdout.readline()
        assert line, "the nursery is dead; its standard error says why"
        heard: dict[str, int] = json.loads(line)
        return heard

    def environment(self, member: Member, armed: str) -> dict[str, str]:
        """The settings of one service: its peers are at the other end of their wires."""
        return {
            **SETTINGS,
            **self.store_settings,
            **{f"POINTSMAN_PEERS_{name.upper()}": other.address for name, other in self.members.items()},
            "POINTSMAN_SERVER_PORT": str(member.port),
            ARMED_BY: armed,
            CLOCK: str(member.clock),
            DISK: str(member.folder / f"{member.context}.disk"),
            LOG: str(member.log),
        }

    @property
    def store_settings(self) -> dict[str, str]:
        """Where the stores are."""
        return {"POINTSMAN_DATA": str(self.folder / "data"), "POINTSMAN_DATABASE_URL": self.database_url}

    async def _serving(self, member: Member) -> bool:
        """Whether it comes to take calls; asked on a new connection each time, since a channel that saw the death waits."""
        while not await member.ended(0.01):
            async with grpc.aio.insecure_channel(f"127.0.0.1:{member.port}", options=OPTIONS) as channel:
                try:
                    await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=scaled(10))
                except grpc.aio.AioRpcError:
                    continue
                return True
        return False


@asynccontextmanager
async def cluster(folder: Path, database_url: str, seed: int, *, cold: bool = False) -> AsyncIterator[Cluster]:
    """Four services, gone at the end."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
    group = Cluster(folder, database_url, seed, cold=cold)
    try:
        await group.start()
        yield group
    finally:
        await group.stop()
