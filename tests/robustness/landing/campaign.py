"""Real processes: a control plane, coders, a verifier and an integrator that is killed again and again."""

import asyncio
import itertools
import json
import shlex
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from pointsman.api.orchestrator.v1 import landing_pb2 as pb
from pointsman.api.orchestrator.v1.run_pb2 import RUN_STATE_CANCELLED, RUN_STATE_COMPLETE, RUN_STATE_FAILED, Repository
from pointsman.client import Client, connect
from pointsman.client.runs import Order
from pointsman.worker.git import git, repository_id, text
from tests.helpers.hello_repository import example_repository
from tests.robustness.landing.pieces import SHARED, overlaps
from tests.scenarios.commands import Running, finished, running

CODER = Path(__file__).parent / "coder.py"
TESTS = ("python3", "-m", "unittest", "discover", "-q")
ENDED = (RUN_STATE_COMPLETE, RUN_STATE_FAILED, RUN_STATE_CANCELLED)
AT_REST = (pb.ENTRY_STATE_LANDED, pb.ENTRY_STATE_ASKED)
GREETING = 'def greeting(name: str) -> str:\n    return f"Hello, {name}!"\n'
LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Terms:
    """How many branches, how long a coder works at least, and how often the integrator is killed."""

    branches: int = 50
    seconds: int = 60
    kill_looks: int = 45
    """It is killed at each look with a multiple of this number at which an entry is on its way."""
    most_kills: int = 1000
    lease_seconds: float = 10.0


@dataclass(slots=True)
class Result:
    """What came of it."""

    terms: Terms
    runs: dict[int, str] = field(default_factory=dict)
    handed_in: dict[str, float] = field(default_factory=dict)
    named: dict[frozenset[str], float] = field(default_factory=dict)
    entries: list[pb.Entry] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)
    unproven: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    incomplete: dict[int, str] = field(default_factory=dict)
    """Runs that did not come to their end, and what they ask."""
    kills: int = 0
    audit: int = 0

    def pairs(self) -> list[frozenset[str]]:
        """Runs whose works conflict."""
        meeting = [run for number, run in self.runs.items() if overlaps(number)]
        return [frozenset(pair) for pair in itertools.combinations(meeting, 2)]

    def in_time(self) -> list[frozenset[str]]:
        """Conflicts that were named before the second of both handed in."""
        end = float("inf")
        return [
            pair
            for pair in self.pairs()
            if self.named.get(pair, end) < max(self.handed_in.get(run, 0.0) for run in pair)
        ]

    def figures(self) -> Mapping[str, object]:
        """The figures."""
        pairs, states = self.pairs(), Counter(pb.EntryState.Name(one.state) for one in self.entries)
        return {
            "branches": self.terms.branches, "overlapping": sum(map(overlaps, self.runs)), "entries": dict(states),
            "runs_not_complete": self.incomplete, "linked_runs": sum(len(one.links) for one in self.entries),
            "conflicts": len(pairs), "named_in_time": len(self.in_time()),
            "share_named": round(len(self.in_time()) / len(pairs), 3) if pairs else 1.0,
            "integrator_kills": self.kills, "lost": self.lost, "unproven_tips": self.unproven, "landed_twice": self.twice,
            "audit_exit": self.audit,
        }  # fmt: skip

    def broken(self) -> bool:
        """Whether one of the promises is."""
        return not self.is_safe or len(self.in_time()) < 0.9 * len(self.pairs())

    @property
    def is_safe(self) -> bool:
        """Whether nothing was lost, landed twice or landed unproven."""
        return not (self.lost or self.unproven or self.twice or self.audit)


class Stage:
    """The processes, and what they are started with."""

    def __init__(self, folder: Path, repository: Path, remote: Path, stack: ExitStack) -> None:
        self.folder, self.repository, self.remote, self._stack = folder, repository, remote, stack
        self.environment = {"POINTSMAN_DATA": str(folder / "data")}

    def start(self, *arguments: str) -> Running:
        """A process that ends with the campaign."""
        return self._stack.enter_context(running(*arguments, **self.environment))

    def integrator(self) -> Running:
        """One that lands on the remote."""
        return self.start("queue", "work", "--repo", str(self.repository), "--push", "origin")

    def crew(self, branches: int, seconds: int) -> None:
        """As many coders as branches, and a verifier."""
        command = shlex.join((sys.executable, "-I", str(CODER), str(seconds)))
        there = ("--repo", str(self.repository))
        self.start("agent", "--command", command, "--capacity", str(branches), "--read", str(CODER.parent), *there)
        self.start("agent", "--capacity", "2", *there)


async def prepared(folder: Path, stack: ExitStack) -> Stage:
    """A repository whose tests pass, and its remote."""
    repository, remote = await example_repository(folder), folder / "remote.git"
    (repository / "hello/__init__.py").write_text(GREETING)
    (repository / "shared.txt").write_text(SHARED)
    (repository / "pointsman.toml").write_text(f'[proof]\nverify = ["{" ".join(TESTS)}"]\n')
    await git(repository, "add", "-A")
    await git(repository, "commit", "-q", "-m", "greet, and share a file")
    await git(folder, "clone", "-q", "--bare", str(repository), str(remote))
    await git(remote, "config", "core.logAllRefUpdates", "always")
    await git(repository, "remote", "add", "origin", str(remote))
    return Stage(folder, repository, remote, stack)


async def campaign(folder: Path, terms: Terms) -> Result:
    """As many runs at once, each put into the queue as soon as it is COMPLETE."""
    result = Result(terms)
    with ExitStack() as stack:
        there = await prepared(folder, stack)
        there.environment["POINTSMAN_ORCHESTRATOR_LEASE_SECONDS"] = str(terms.lease_seconds)
        there.start("up", "--port", "0", "--no-crew").line_with(" up at ")
        there.crew(terms.branches, terms.seconds)
        async with connect("", data=folder / "data") as client:
            await submit(client, there, result)
            await play(client, there, result)
            await judged(client, there, result)
    result.audit, _ = finished("audit", "--all", **there.environment)
    return result


async def submit(client: Client, there: Stage, result: Result) -> None:
    """Starts a run for each piece."""
    where = Repository(
        id=await repository_id(there.repository), base_commit=await text(there.repository, "rev-parse", "HEAD")
    )
    for number in range(1, result.terms.branches + 1):
        order = Order(f"write piece {number} of the text", repository=where, as_action=True, verify_commands=[TESTS])
        result.runs[number] = (await client.runs.submit(order)).run.id


async def play(client: Client, there: Stage, result: Result) -> None:
    """Looks until every run has ended and every entry is at rest; kills the integrator now and then."""
    terms = pb.LandingTerms(repository_id=await repository_id(there.repository), target="main", remote="origin")
    enqueued: set[str] = set()
    worker = there.integrator()
    for look in itertools.count(1):
        for one in await client.landing.predictions():
            result.named.setdefault(frozenset((one.run_id, one.other_run_id)), one.seen_at.ToMicroseconds() / 1e6)
        runs = [await client.runs.get(run_id) for run_id in result.runs.values()]
        for run in runs:
            if run.state == RUN_STATE_COMPLETE and run.id not in enqueued:
                await client.landing.enqueue(run.id, terms, request_id=run.id)
                enqueued.add(run.id)
        entries = [one async for one in client.landing.all()]
        if all(run.state in ENDED or run.HasField("question") for run in runs) and all(
            one.state in AT_REST for one in entries
        ):
            return
        is_busy = any(one.state not in AT_REST for one in entries)
        if is_busy and look % result.terms.kill_looks == 0 and result.kills < result.terms.most_kills:
            worker.kill()
            result.kills += 1
            worker = there.integrator()
        await asyncio.sleep(LOOK_SECONDS)


async def judged(client: Client, there: Stage, result: Result) -> None:
    """What the journals and the remote say."""
    result.entries = [one async for one in client.landing.all()]
    for number, run_id in result.runs.items():
        run = await client.runs.get(run_id)
        if run.state != RUN_STATE_COMPLETE:
            result.incomplete[number] = run.question.text[:300]
        rows = [row async for row in client.runs.transitions(run_id)]
        times = [row.at.ToMicroseconds() / 1e6 for row in rows if row.event == "work_handed_in"]
        result.handed_in[run_id] = times[0] if times else 0.0
    by_run = {one.run_id: one for one in result.entries}
    tips = (await text(there.remote, "reflog", "--format=%H", "refs/heads/main")).splitlines()[:-1]
    proven = await proven_tips(client, result.entries)
    result.unproven = [tip for tip in tips if tip not in proven]
    bodies = await text(there.remote, "log", "--format=%B", "main")
    result.twice = [one.id for one in result.entries if bodies.count(f"Pointsman-Entry: {one.id}") > 1]
    for number, run_id in result.runs.items():
        entry = by_run.get(run_id)
        if entry is not None and not await is_there(there, number, entry):
            result.lost.append(number)


async def proven_tips(client: Client, entries: Sequence[pb.Entry]) -> set[str]:
    """Every tip that a journal says was proven."""
    found: set[str] = set()
    for entry in entries:
        async for row in client.landing.watch(entry.id):
            found |= {json.loads(row.payload_json)["tip"]} if row.event == "proven" else set()
            if row.seq >= entry.seq:
                break
    return found


async def is_there(there: Stage, number: int, entry: pb.Entry) -> bool:
    """Whether a landed piece is in the target, and one that is asked about can still be had."""
    if entry.state != pb.ENTRY_STATE_LANDED:
        return bool(entry.bundle.sha256)
    name = "shared.txt" if overlaps(number) else f"own/{number}.txt"
    return f"said by {number}\n" in f"{await text(there.remote, 'show', f'main:{name}')}\n"
