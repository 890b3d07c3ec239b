"""Mock runs end to end, and agents' round trips: JSON lines. `python -m tests.bench.orchestrator`."""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from google.protobuf.duration_pb2 import Duration

from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.api.orchestrator.v1 import orchestrator_pb2 as pb
from pointsman.api.orchestrator.v1 import run_pb2 as runs
from pointsman.client.calls import BATCH_SIZE
from pointsman.services.chassis.core.codec import to_json
from pointsman.services.chassis.core.config import ServerSettings
from pointsman.services.chassis.core.garbage_collection import freeze_startup_objects
from pointsman.services.chassis.rpc.client import open_channel
from pointsman.services.chassis.runtime.service import start
from pointsman.services.chassis.storage.database import Database
from pointsman.services.chassis.storage.migrate import migrate
from pointsman.services.orchestrator.__main__ import MIGRATIONS
from pointsman.services.orchestrator.config import OrchestratorSettings
from pointsman.services.orchestrator.domain.run import Run
from pointsman.services.orchestrator.store import OrchestratorStore
from pointsman.services.orchestrator.store.listing import Listing
from pointsman.services.orchestrator.store.run_queries import RunFilter
from pointsman.services.orchestrator.wire.encode.runs import run as show_run
from tests.bench.load import load as load_chassis
from tests.bench.load import server as chassis_server
from tests.bench.tally import CountedProcesses, Tally
from tests.scenarios.planes import MOCKED, NOBODY, WISH, Plane, builder, clients
from tests.unit.orchestrator.driver import Driver

AT_ONCE = 64
SLOTS = 16
"""Reports that a run waits for: with the last one it goes on to its coders, over all four services, while it is measured."""
MOST_SLOTS = 64
"""As many as a run may wait for at once: agents' round trips, with little of what runs do afterwards."""
ALL_MOCKED = {"POINTSMAN_FULL_MOCK_MODE": "1"}
SECONDS = 5.0
LISTED = 10_000
KEPT_PAGES = 4
ENOUGH = 12_288
"""More reports than are handed in while it is measured."""
numbers = count(1)


async def serve(data: str, mocked: str, only: str, peers: str) -> None:
    """Services in this process: all four, or the one named; prints the address, then its tally on request."""
    tally = Tally()
    tally.install()
    build_all = builder(Path(data), MOCKED if mocked == "mocked" else NOBODY, OrchestratorSettings())

    def build(address: str) -> Any:
        services = build_all(peers or address)
        return [service for service in services if only in ("", service.name)]

    running = await start(build, ServerSettings(port=0))
    freeze_startup_objects()
    print(running.address, flush=True)
    loop = asyncio.get_running_loop()
    while await loop.run_in_executor(None, sys.stdin.readline):
        tally.tell()


class ServerProcess:
    """A server process and its tally."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.orchestrator", "serve", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.address = self._line()

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def tally(self) -> dict[str, int]:
        """Calls and commits so far."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        counted: dict[str, int] = json.loads(self._line())
        return counted

    def stop(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()


@contextmanager
def server(mocked: str) -> Iterator[ServerProcess]:
    """All services in one process."""
    with tempfile.TemporaryDirectory() as data:
        process = ServerProcess(data, mocked, "", "")
        try:
            yield process
        finally:
            process.stop()


@asynccontextmanager
async def connected(address: str) -> AsyncIterator[Plane]:
    """Clients of a server process."""
    async with open_channel(address) as channel:
        yield clients(channel)


async def one_run(here: Plane) -> int:
    """Submit and follow one run to COMPLETE; how many transitions it had."""
    run = await here.submit(f"{WISH} number {next(numbers)}")
    last = None
    async for item in here.runs.WatchRun(pb.WatchRunRequest(run_id=run.id, batch_size=BATCH_SIZE)):
        last = item.more[-1] if item.more else item.transition
    assert last is not None
    assert last.to_state == "COMPLETE", last
    return int(last.seq)


async def measure_runs(address: str, tally: Callable[[], dict[str, int]]) -> dict[str, float]:
    """Runs at once, again and again for a while, with the calls and commits that the servers counted."""
    async with connected(address) as here:
        await asyncio.gather(*(one_run(here) for _ in range(8)))
        before, started = tally(), time.perf_counter()
        transitions = finished = 0

        async def follow() -> None:
            nonlocal transitions, finished
            while time.perf_counter() - started < SECONDS:
                length = await one_run(here)
                transitions += length
                finished += 1

        await asyncio.gather(*(follow() for _ in range(AT_ONCE)))
        elapsed, after = time.perf_counter() - started, tally()
    figures = {"runs_per_second": finished / elapsed, "transitions_per_second": transitions / elapsed}
    calls = after["calls"] - before["calls"] - finished
    commits = after["commits"] - before["commits"]
    return {**figures, "rpcs_per_run": calls / finished, "commits_per_run": commits / finished}


async def fill(here: Plane, assignments_wanted: int, slots: int) -> None:
    """Runs that wait for research, until there is enough of it."""
    agent_request = agent.PollRequest(
        request_id=here.request_id(), agent_id="scout", wanted=wanted(1), wait=Duration(nanos=1000)
    )
    await here.agents.Poll(agent_request)

    async def researching() -> None:
        run = await here.submit(f"{WISH} number {next(numbers)}", research_expected=slots)
        await here.reached(run.id, runs.RUN_STATE_RESEARCH_FANOUT)

    for _ in range(assignments_wanted // MOST_SLOTS):
        await asyncio.gather(*(researching() for _ in range(MOST_SLOTS // slots)))


def wanted(limit: int) -> agent.Wanted:
    """Research, so many at once."""
    return agent.Wanted(capabilities=[assignments.CAPABILITY_RESEARCH], max_leases=limit)


def completion(lease: agent.Lease) -> agent.Completion:
    """A report."""
    report = handoff.ResearchReport(
        agent_id="bench",
        slot=lease.research.slot.id,
        summary_md=handoff.Document(text="# Found\n"),
        memory_jsonl=handoff.Document(text="{}\n"),
        confidence=0.9,
    )
    key = agent.LeaseKey(assignment_id=lease.assignment.id, epoch=lease.epoch, secret=lease.secret)
    return agent.Completion(lease=key, research=report)


@dataclass(frozen=True, slots=True)
class Crew:
    """Agents that complete an assignment and lease the next, and how many at once."""

    agents: int
    limit: int = 1
    """So many at once; 0: one at a time, with a Poll and a Complete each."""
    slots: int = MOST_SLOTS
    leaves_last: bool = False
    """Each run's last report is kept back: no run goes on, and nothing but round trips is measured."""

    @property
    def name(self) -> str:
        """What is measured."""
        how = f"{self.limit} at once" if self.limit else "in two calls"
        runs = "runs that wait" if self.leaves_last else f"runs of {self.slots} reports that go on"
        return f"poll and complete, {self.agents} agents, {how}, {runs}"


class Desk:
    """Where the agents of a crew take leases and hand in."""

    def __init__(self, here: Plane, stub: Any, crew: Crew) -> None:
        self._here = here
        self._stub = stub
        self._crew = crew
        self._at_once = max(1, crew.limit)
        self.done = 0

    async def work(self, agent_id: str, until: float) -> None:
        """Hand in and take the next, until the time is over or nothing is left."""
        leases = await self._poll(agent_id)
        while leases and time.perf_counter() < until:
            reports = [completion(lease) for lease in leases if not self._is_kept(lease)]
            leases = await self._hand_in(agent_id, reports) if reports else await self._poll(agent_id)

    def _is_kept(self, lease: agent.Lease) -> bool:
        return self._crew.leaves_last and lease.research.slot.id == f"survey-{self._crew.slots}"

    async def _hand_in(self, agent_id: str, reports: Sequence[agent.Completion]) -> Sequence[agent.Lease]:
        request = agent.CompleteRequest(
            request_id=self._here.request_id(),
            agent_id=agent_id,
            completions=reports,
            next=wanted(self._at_once) if self._crew.limit else None,
        )
        answer = await self._stub.Complete(request)
        self.done += sum(outcome.accepted for outcome in answer.outcomes)
        found: Sequence[agent.Lease] = answer.leases if self._crew.limit else await self._poll(agent_id)
        return found

    async def _poll(self, agent_id: str) -> Sequence[agent.Lease]:
        asked = agent.PollRequest(
            request_id=self._here.request_id(), agent_id=agent_id, wanted=wanted(self._at_once), wait=Duration(nanos=1)
        )
        found: Sequence[agent.Lease] = (await self._stub.Poll(asked)).leases
        return found


async def measure_agents(process: ServerProcess, crew: Crew) -> dict[str, float]:
    """Round trips of a crew's agents per second."""
    async with connected(process.address) as here:
        await fill(here, ENOUGH, crew.slots)
        desk = Desk(here, here.agents, crew)
        started = time.perf_counter()
        names = [f"agent-{number}" for number in range(crew.agents)]
        await asyncio.gather(*(desk.work(name, started + SECONDS) for name in names))
        elapsed = time.perf_counter() - started
        return {"round_trips_per_second": desk.done / elapsed}


async def measure_listing() -> dict[str, float]:
    """Pages of 1,000 out of 10,000 runs: the first read of a page, and the same page when nothing changed."""
    run = Driver().submit(WISH).settle().work_until().run
    with tempfile.TemporaryDirectory() as data:
        database = Database(f"sqlite:///{data}/o.db", "orchestrator")
        migrate(database, MIGRATIONS)
        store = OrchestratorStore(database)
        with database.writing.begin() as connection:
            connection.execute(store.store.tables.entities.insert(), [_ended_run(run, n) for n in range(LISTED)])
            connection.execute(store.children.index.insert(), [_indexed_run(run, n) for n in range(LISTED)])
        listing, taken = Listing(store.store, store.children, store.attention, show_run), []
        for _ in range(2):
            place: tuple[int, str] | None = (2**62, "")
            started, pages = time.perf_counter(), 0
            while place is not None and pages < KEPT_PAGES:
                place = (await listing.page(RunFilter("local"), place, 1000)).next_place
                pages += 1
            taken.append((time.perf_counter() - started) / pages * 1000)
        store.store.close()
    return {"first_read_ms": taken[0], "unchanged_ms": taken[1]}


def _ended_run(run: Run, number: int) -> dict[str, Any]:
    return {
        "entity_id": f"run_{number:08}", "kind": "run", "project": "local", "run_id": f"run_{number:08}",
        "machine_version": 1, "version": 50, "status": str(run.status), "digest": "", "traceparent": "",
        "created_at_us": number, "entered_at_us": number, "updated_at_us": number,
        "body": to_json(replace(run, run_id=f"run_{number:08}")),
    }  # fmt: skip


def _indexed_run(run: Run, number: int) -> dict[str, Any]:
    row = {"entity_id": f"run_{number:08}", "project": "local", "session_id": "", "ended_at_us": number}
    return {**row, "outcome": str(run.status), "asked_at_us": 0, "words": run.intent.lower()}


CREWS = (
    *(Crew(agents, leaves_last=True) for agents in (1, 8, 64)),
    Crew(8, 64, leaves_last=True),
    *(Crew(agents, limit, leaves_last=True) for agents, limit in ((8, 0), (64, 0))),
    *(Crew(agents, limit, slots) for slots in (SLOTS, MOST_SLOTS) for agents, limit in ((8, 1), (64, 1), (8, 64))),
)


def measure_chassis(callers: int) -> float:
    """Durable commands of the bare chassis per second, on this machine, now."""
    with tempfile.TemporaryDirectory() as data, chassis_server("ours", f"sqlite:///{data}/c.db") as port:
        return asyncio.run(load_chassis(port, callers, SECONDS)).rate


def report(name: str, **figures: float) -> None:
    """One line of JSON."""
    print(json.dumps({"bench": name, **{key: round(value, 2) for key, value in figures.items()}}), flush=True)


def main() -> None:
    """All figures of the orchestrator."""
    report("list 1,000 of 10,000 runs", **asyncio.run(measure_listing()))
    with server("mocked") as process:
        report("mock runs, one process", **asyncio.run(measure_runs(process.address, process.tally)))
    with tempfile.TemporaryDirectory() as data, CountedProcesses(Path(data), ALL_MOCKED) as group:
        figures = asyncio.run(measure_runs(group.addresses["orchestrator"], group.tally))
    report("mock runs, four processes", **figures)
    durable = {callers: measure_chassis(callers) for callers in (1, 8, AT_ONCE)}
    for callers, rate in durable.items():
        report(f"chassis durable command, {callers} callers", commands_per_second=rate)
    for crew in CREWS:
        with server("nobody") as process:
            figures = asyncio.run(measure_agents(process, crew))
        report(crew.name, **figures, ratio_to_chassis=figures["round_trips_per_second"] / durable[crew.agents])


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        asyncio.run(serve(*sys.argv[2:]))
    else:
        main()
