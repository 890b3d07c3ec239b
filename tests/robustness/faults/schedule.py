"""What goes wrong, when: every kind of fault in turn, each crash point of each service, drawn from one seed."""

import asyncio
import random  # noqa: TID251 - a campaign is repeated from its seed
import signal
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum

from pointsman.services.all_in_one import CONTEXTS
from pointsman.services.chassis.core.crash import CrashPoint
from tests.helpers.eventually import eventually
from tests.helpers.postgres import PostgresServer
from tests.robustness.faults.cluster import LEASE_SECONDS, Cluster
from tests.robustness.faults.disk import Disk
from tests.robustness.faults.load import Work
from tests.robustness.faults.proxy import STORMY


class Fault(StrEnum):
    """Each kind of fault."""

    KILL = "kill -9 of a service at random"
    KILL_ALL = "kill -9 of all services at once"
    CRASH_POINT = "death at a named point"
    PAUSE = "SIGSTOP for longer than a lease"
    STORM = "calls lost, doubled, delayed, reordered; answers lost after the commit"
    UNREACHABLE = "a service that nobody reaches"
    FULL_DISK = "a disk that takes no more"
    SLOW_DISK = "a disk that takes its time"
    CLOCK = "a clock that jumps"
    POSTGRES = "PostgreSQL killed and started again"


PASSED_BY: dict[CrashPoint, tuple[str, ...]] = {
    **dict.fromkeys(CrashPoint, CONTEXTS),
    CrashPoint.BEFORE_DELIVERY: ("orchestrator",),
    CrashPoint.AFTER_DELIVERY: ("orchestrator",),
    CrashPoint.BEFORE_TIMER: ("orchestrator", "pipeline"),
}
"""Which services pass each point: all commit; one has effects, two have timers that come due by themselves."""
WEIGHTS = {
    Fault.KILL: 8, Fault.KILL_ALL: 1, Fault.CRASH_POINT: 6, Fault.PAUSE: 1, Fault.STORM: 2, Fault.UNREACHABLE: 1,
    Fault.FULL_DISK: 1, Fault.SLOW_DISK: 1, Fault.CLOCK: 1, Fault.POSTGRES: 1,
}  # fmt: skip
OFTEN = (2, 12)
COUNTS = {CrashPoint.BEFORE_TIMER: (1, 2)}
"""How often a point is passed before the process dies there."""
ARMED_SECONDS = 20.0
TRIES_EACH = 4
POSTGRES_TRIES = 5
SLOW_SECONDS = (0.1, 0.5, 3.0)
"""How long a commit takes on a slow disk: the longest is longer than a lease."""
DIES_ON_SLOW_DISK = 0.5
CLOCK_JUMPS = (-3600.0, -5.0, 5.0, 90.0, 3600.0)


@dataclass(frozen=True, slots=True)
class Plan:
    """What has to happen in a campaign: faults in this order, and these points of every service."""

    seed: int
    script: tuple[Fault, ...] = tuple(fault for fault in Fault if fault is not Fault.CRASH_POINT)
    points: tuple[CrashPoint, ...] = tuple(CrashPoint)
    hold_seconds: float = 2.0
    """How long a storm, a cut wire, a full or slow disk or a shifted clock lasts."""
    clock_jumps_seconds: tuple[float, ...] = CLOCK_JUMPS


class Schedule:
    """Breaks one thing after the other, and puts it right again."""

    def __init__(self, cluster: Cluster, work: Work, postgres: PostgresServer | None, plan: "Plan") -> None:
        self._cluster = cluster
        self._work = work
        self._postgres = postgres
        self._plan = plan
        self._chance = random.Random(plan.seed)
        self.kills = 0
        self.hit: Counter[str] = Counter()
        """How often each fault, and each point of each service, really happened."""
        self._points = deque(plan.points)
        self._do: dict[Fault, Callable[[], Awaitable[None]]] = {
            Fault.KILL: self._kill,
            Fault.KILL_ALL: self._kill_all,
            Fault.CRASH_POINT: self._crash,
            Fault.PAUSE: self._pause,
            Fault.STORM: self._storm,
            Fault.UNREACHABLE: self._cut,
            Fault.CLOCK: self._shift,
            Fault.FULL_DISK: self._fill,
            Fault.SLOW_DISK: self._slow_down,
            Fault.POSTGRES: self._kill_postgres,
        }
        absent = Fault.FULL_DISK if postgres else Fault.POSTGRES
        del self._do[absent]
        self._script = [fault for fault in plan.script if fault is not absent]

    @property
    def expected(self) -> list[str]:
        """What has to happen at least once, or the campaign is void."""
        slow = [f"{context} {Fault.SLOW_DISK}" for context in CONTEXTS if Fault.SLOW_DISK in self._script]
        points = [f"{context} {point}" for point in self._plan.points for context in PASSED_BY[point]]
        return [*self._script, *slow, *points]

    @property
    def missing(self) -> list[str]:
        """What never happened."""
        return [name for name in self.expected if not self.hit[name]]

    async def run(self, seconds: float) -> None:
        """All that is in the script, then each point until it was hit; then at random until the time is over."""
        over = time.monotonic() + seconds
        for fault in self._script:
            await self._cause(fault)
        for _ in range(TRIES_EACH * len(self._points)):
            if self.missing:
                await self._cause(Fault.CRASH_POINT)
        while time.monotonic() < over:
            await self._cause(self._draw())
        await self.heal()

    async def _cause(self, fault: Fault) -> None:
        self._work.change_tempers()
        await self._do[fault]()
        self.hit[fault] += 1
        await asyncio.sleep(self._chance.random() * 0.4)

    def _draw(self) -> Fault:
        kinds = list(self._do)
        return self._chance.choices(kinds, [WEIGHTS[kind] for kind in kinds])[0]

    async def heal(self) -> None:
        """Everything as it should be: wires, clocks, disks, processes."""
        if (
            self._postgres is not None
            and self._postgres.process is not None
            and self._postgres.process.poll() is not None
        ):
            await self._start_postgres()
        for context, member in self._cluster.members.items():
            member.weather.calm()
            member.disk.delay_seconds = 0.0
            self._cluster.shift_clock(context, 0.0)
            member.signal(signal.SIGCONT)
            await self._cluster.kill(context)
            await self._cluster.bear(context)

    def _one(self) -> str:
        return self._chance.choice(CONTEXTS)

    async def _kill(self) -> None:
        await self._kill_one(self._one())

    async def _kill_one(self, context: str) -> None:
        await self._cluster.kill(context)
        self.kills += 1
        await self._cluster.bear(context)

    async def _kill_all(self) -> None:
        await asyncio.gather(*(self._cluster.kill(context) for context in CONTEXTS))
        self.kills += len(CONTEXTS)
        await asyncio.gather(*(self._cluster.bear(context) for context in CONTEXTS))

    async def _crash(self) -> None:
        """Every service that passes the next point and has not died there as often as others dies there now."""
        point = self._points[0]
        self._points.rotate(-1)
        late = [context for context in PASSED_BY[point] if not self.hit[f"{context} {point}"]]
        await asyncio.gather(*(self._crash_at(context, point) for context in late or PASSED_BY[point]))

    async def _crash_at(self, context: str, point: CrashPoint) -> None:
        """Start a service armed, wait until it is dead, start it again."""
        await self._cluster.kill(context)
        await self._cluster.bear(context, f"{point}:{self._chance.randint(*COUNTS.get(point, OFTEN))}")
        reached = await self._cluster.dies_of_itself(context, ARMED_SECONDS)
        self.hit[f"{context} {point}"] += reached
        if not reached:
            await self._cluster.kill(context)
        self.kills += 2
        await self._cluster.bear(context)

    async def _pause(self) -> None:
        member = self._cluster.members[self._one()]
        member.signal(signal.SIGSTOP)
        await asyncio.sleep(LEASE_SECONDS * 1.5)
        member.signal(signal.SIGCONT)

    async def _storm(self) -> None:
        """Bad weather on every wire, and a kill in the middle of it."""
        for member in self._cluster.members.values():
            for name, value in STORMY.items():
                setattr(member.weather, name, value)
        await asyncio.sleep(self._plan.hold_seconds / 2)
        await self._kill()
        await asyncio.sleep(self._plan.hold_seconds / 2)
        for member in self._cluster.members.values():
            member.weather.calm()

    async def _cut(self) -> None:
        member = self._cluster.members[self._one()]
        member.weather.unreachable = True
        await asyncio.sleep(self._plan.hold_seconds)
        member.weather.calm()

    async def _shift(self) -> None:
        context = self._one()
        self._cluster.shift_clock(context, self._chance.choice(self._plan.clock_jumps_seconds))
        await asyncio.sleep(self._plan.hold_seconds)
        self._cluster.shift_clock(context, 0.0)

    async def _fill(self) -> None:
        """The kernel refuses every write that makes a file longer than the write-ahead log is by now."""
        context = self._one()
        log = self._cluster.folder / "data" / f"{context}.db-wal"
        self._cluster.limit_files(context, log.stat().st_size if log.exists() else 4096)
        await asyncio.sleep(self._plan.hold_seconds)
        self._cluster.limit_files(context, -1)

    async def _slow_down(self) -> None:
        """Every service whose disk was never slow, one after the other; then one at random."""
        late = [context for context in CONTEXTS if not self.hit[f"{context} {Fault.SLOW_DISK}"]]
        for context in late or [self._one()]:
            await self._slow_disk_of(context)

    async def _slow_disk_of(self, context: str) -> None:
        """Only commits that were really late count; every second time the service dies in the middle of one."""
        disk = self._cluster.members[context].disk
        before = disk.slowed
        disk.delay_seconds = delay_seconds = self._chance.choice(SLOW_SECONDS)
        await asyncio.sleep(self._plan.hold_seconds)
        reached = await _slowed_since(disk, before)
        if reached and self._chance.random() < DIES_ON_SLOW_DISK and await _slowed_since(disk, disk.slowed):
            disk.delay_seconds = 0.0
            await asyncio.sleep(self._chance.random() * delay_seconds)
            await self._kill_one(context)
        disk.delay_seconds = 0.0
        self.hit[f"{context} {Fault.SLOW_DISK}"] += reached

    async def _kill_postgres(self) -> None:
        assert self._postgres is not None
        await asyncio.to_thread(self._postgres.kill)
        await asyncio.sleep(self._chance.random())
        await self._start_postgres()

    async def _start_postgres(self) -> None:
        """It refuses to start while a child of the one before is still about: then once more."""
        assert self._postgres is not None
        for _ in range(POSTGRES_TRIES):
            try:
                await asyncio.to_thread(self._postgres.start)
            except AssertionError:
                await asyncio.to_thread(self._postgres.stop)
            else:
                return
        raise AssertionError("PostgreSQL does not start again")


async def _slowed_since(disk: Disk, count: int) -> bool:
    """Whether one more commit is begun on the slow disk within the time."""

    async def slowed() -> bool:
        return disk.slowed > count

    try:
        return await eventually(slowed, ARMED_SECONDS)
    except AssertionError:
        return False
