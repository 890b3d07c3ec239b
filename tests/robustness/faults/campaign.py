"""One campaign: the services, the load and the faults together, then quiet, then the proof."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc

from tests.helpers.databases import new_postgres_database
from tests.helpers.postgres import PostgresServer, postgres_server
from tests.robustness.faults import checker
from tests.robustness.faults.cluster import Cluster, cluster
from tests.robustness.faults.load import Work
from tests.robustness.faults.memory import Memory
from tests.robustness.faults.proxy import OPTIONS
from tests.robustness.faults.schedule import Plan, Schedule

PROJECTS = 2
FINISH_SECONDS = 150.0
LEAST_TRANSITIONS_A_SECOND = 20
AIM_RECOVERY_SECONDS = 3.0
EVERYTHING = Plan(1)


@dataclass(frozen=True, slots=True)
class Terms:
    """How large a campaign is."""

    database: str = "sqlite"
    seconds: float = 120.0
    runs: int = 64
    """Runs at once, in as many projects as there are teams of agents."""
    direct: int = 4
    """Callers of workflow, pipeline and router at once, each."""
    cold: bool = False
    """Start processes from nothing instead of from a nursery."""
    plan: Plan = EVERYTHING


@dataclass(slots=True)
class Figures:
    """What a campaign was, and what came of it."""

    terms: Terms
    kills: int = 0
    acknowledged_commands: int = 0
    acknowledged_transitions: int = 0
    transitions: int = 0
    runs: int = 0
    lost: list[str] = field(default_factory=list)
    duplicated: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    recovery_p50_seconds: float = 0.0
    recovery_p99_seconds: float = 0.0
    never_hit: list[str] = field(default_factory=list)
    hits: dict[str, int] = field(default_factory=dict)
    wire: dict[str, int] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    stuck: list[str] = field(default_factory=list)
    """Runs that had to be cancelled in the end, and what they waited for."""
    took_seconds: float = 0.0

    @property
    def void(self) -> str:
        """Why the campaign proves nothing; empty when it does."""
        if self.never_hit:
            return f"never happened: {', '.join(self.never_hit)}"
        enough = LEAST_TRANSITIONS_A_SECOND * self.terms.seconds
        return "" if self.acknowledged_transitions >= enough else f"only {self.acknowledged_transitions} transitions"

    @property
    def broken(self) -> list[str]:
        """Every broken promise."""
        stuck = [f"stuck: {run}" for run in self.stuck]
        return [*self.lost, *self.duplicated, *self.violations, *self.unexpected, *stuck]

    @property
    def slow(self) -> str:
        """How far recovery has missed its aim; empty when it has not."""
        p99 = self.recovery_p99_seconds
        return f"recovery p99 {p99} s, over the aim of {AIM_RECOVERY_SECONDS} s" if p99 > AIM_RECOVERY_SECONDS else ""


async def campaign(terms: Terms, folder: Path) -> Figures:
    """Run it; the folder keeps stores and logs."""
    figures, memory = Figures(terms), Memory()
    begun = time.monotonic()
    with _database(terms.database) as postgres:
        url = new_postgres_database(postgres) if postgres else ""
        async with cluster(folder, url, terms.plan.seed, cold=terms.cold) as group, _channels(group) as channels:
            work = Work(channels, memory, terms.plan.seed)
            schedule = Schedule(group, work, postgres, terms.plan)
            work.begin([f"team-{number}" for number in range(PROJECTS)], terms.runs // PROJECTS, terms.direct)
            await schedule.run(terms.seconds)
            await _prove(group, work, figures)
            _sum_up(figures, group, schedule, work)
    figures.took_seconds = round(time.monotonic() - begun, 1)
    return figures


async def _prove(group: Cluster, work: Work, figures: Figures) -> None:
    stores = checker.Stores(group)
    try:
        try:
            await work.finish(FINISH_SECONDS)
            await checker.quiet(stores)
        except (TimeoutError, AssertionError):
            figures.violations.append(f"not quiet: {await stores.pending()} effects pending, {work.live} runs live")
        await work.close()
        figures.lost = await checker.lost(stores, work.memory)
        figures.duplicated = await checker.duplicated(stores, work.memory, work)
        figures.transitions, found = await checker.audited(group)
        figures.violations += [*work.memory.violations, *found]
    finally:
        stores.close()


def _sum_up(figures: Figures, group: Cluster, schedule: Schedule, work: Work) -> None:
    memory = work.memory
    figures.kills = schedule.kills
    figures.acknowledged_commands = len(memory.told)
    figures.acknowledged_transitions = memory.transitions
    figures.runs = len(work.runs)
    figures.unexpected = memory.unexpected
    recoveries = sorted(group.recoveries)
    figures.recovery_p50_seconds = round(recoveries[len(recoveries) // 2], 3)
    figures.recovery_p99_seconds = round(recoveries[int(len(recoveries) * 0.99)], 3)
    figures.never_hit = schedule.missing
    figures.hits = dict(sorted(schedule.hit.items()))
    for member in group.members.values():
        for what, number in member.weather.done.items():
            figures.wire[what] = figures.wire.get(what, 0) + number
    figures.refused = dict(memory.refused)
    figures.stuck = work.stuck


@contextmanager
def _database(kind: str) -> Iterator[PostgresServer | None]:
    if kind == "sqlite":
        yield None
        return
    with postgres_server(durable=True) as server:
        yield server


@asynccontextmanager
async def _channels(group: Cluster) -> AsyncIterator[dict[str, grpc.aio.Channel]]:
    async with AsyncExitStack() as stack:
        yield {
            name: await stack.enter_async_context(grpc.aio.insecure_channel(member.address, options=OPTIONS))
            for name, member in group.members.items()
        }


def run(terms: Terms, folder: str = "") -> Figures:
    """One campaign in a folder of its own, or in the one that is to be kept."""
    if folder:
        return asyncio.run(campaign(terms, Path(folder)))
    with tempfile.TemporaryDirectory(prefix="pointsman-faults-") as temporary:
        return asyncio.run(campaign(terms, Path(temporary)))
