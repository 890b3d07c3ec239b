"""A merge queue in memory that decides with the real machine, and repositories with branches to land."""

import asyncio
import hashlib
import subprocess
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from grpc import StatusCode

from pointsman.api.handoff.v1.delivery_pb2 import Deliverable, Delivery
from pointsman.api.handoff.v1.handoff_pb2 import Claim
from pointsman.api.orchestrator.v1 import landing_pb2 as pb
from pointsman.api.orchestrator.v1.run_pb2 import Run
from pointsman.client import StateForbids
from pointsman.landing.integrator import Integrator, Place
from pointsman.landing.permissions import Permissions
from pointsman.landing.proposals import Proposals
from pointsman.landing.proving import Outcome
from pointsman.landing.steps import Step
from pointsman.services.chassis.core.errors import Refusal
from pointsman.services.orchestrator.domain.landing import commands
from pointsman.services.orchestrator.domain.landing.apply import apply
from pointsman.services.orchestrator.domain.landing.enums import EntryState, Way
from pointsman.services.orchestrator.domain.landing.machine import START_LINK, StartLink, decide
from pointsman.services.orchestrator.domain.landing.model import Entry, Terms, Work
from pointsman.services.orchestrator.domain.landing.stacking import TELL_ABOVE
from pointsman.services.orchestrator.domain.views import EntryView
from pointsman.services.orchestrator.wire import decode, encode, enums

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TAKEABLE = (EntryState.QUEUED, EntryState.PROVING, EntryState.LANDING)


class Killed(BaseException):
    """Stands for kill -9: nothing after it is executed."""


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false", *arguments],
        cwd=folder, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout.strip()


@dataclass(slots=True)
class Landing:
    """The integrator's side of LandingService, in memory."""

    entries: dict[str, Entry] = field(default_factory=dict)
    started: list[tuple[str, StartLink]] = field(default_factory=list)
    events: list[tuple[str, str]] = field(default_factory=list)
    wakes: asyncio.Queue[bool] = field(default_factory=asyncio.Queue)
    epoch: int = 0

    def submit(self, command: Any) -> Entry:
        """One command, as the ledger would do it."""
        try:
            decision = decide(self.entries.get(command.entity_id), command, NOW)
        except Refusal as refusal:
            raise StateForbids(str(refusal.reason), StatusCode.FAILED_PRECONDITION, refusal.message) from None
        state: Any = self.entries.get(command.entity_id)
        for event in decision.events:
            state = apply(state, event, NOW)
            self.events.append((command.entity_id, event.name))
        self.started += [(command.entity_id, one.data) for one in decision.effects if one.kind == START_LINK]
        self.entries[command.entity_id] = state
        for effect in decision.effects:
            if effect.kind == TELL_ABOVE:
                self.submit(effect.data)
                self.submit(effect.data)  # at least once
        entry: Entry = state
        return entry

    def shown(self, entry_id: str) -> pb.Entry:
        return encode.landing.entry(EntryView(self.entries[entry_id], 1, 0, 0))

    async def get(self, entry_id: str) -> pb.Entry:
        return self.shown(entry_id)

    async def take(
        self, agent_id: str, _ids: Sequence[str], most: int = 0, _wait: float = 0.0
    ) -> pb.TakeEntriesResponse:
        self.epoch += 1
        waiting = [one for one in self.entries.values() if one.status in TAKEABLE]
        waiting.sort(key=lambda one: (one.terms.priority, one.entry_id))
        queue = [one for one in waiting if one.queue_id == waiting[0].queue_id][: most or 32]
        for one in queue:
            self.submit(commands.Take(one.entry_id, self.epoch, agent_id, "integrator"))
        shown = [self.shown(one.entry_id) for one in queue]
        return pb.TakeEntriesResponse(queue_id="queue" if queue else "", epoch=self.epoch, entries=shown)

    async def keep(self, _agent: str, _queue: str, _epoch: int, *, release: bool = False) -> None:
        """The lease is never lost here."""

    async def report(self, agent_id: str, entry: pb.Entry, epoch: int, **said: Any) -> pb.Entry:
        request = pb.ReportEntryRequest(request_id="r", entry_id=entry.id, agent_id=agent_id, epoch=epoch, **said)
        self.submit(commands.ReportEntry(entry.id, epoch, "integrator", decode.landing.report(request)))
        return self.shown(entry.id)

    async def forge_woken(self, _agent_id: str, _seconds: float) -> bool:
        return await self.wakes.get()

    async def all(self, states: Sequence[Any] = (), **_wanted: str) -> AsyncIterator[pb.Entry]:
        wanted = set(enums.ENTRY_STATE.all_to_domain(states))
        for entry_id in sorted(self.entries):
            if not wanted or self.entries[entry_id].status in wanted:
                yield self.shown(entry_id)


class Runs:
    """What runs delivered."""

    async def delivery(self, run_id: str) -> Delivery:
        claims = [Claim(id="C1", statement=f"{run_id} does what it should")]
        return Delivery(
            run_id=run_id, deliverables=[Deliverable(task_id="T1", statement=f"task of {run_id}", claims=claims)]
        )

    async def get(self, run_id: str) -> Run:
        return Run(id=run_id, traceparent=f"00-{'a' * 32}-{'b' * 16}-01")

    async def evidence(self, _run_id: str) -> AsyncIterator[Any]:
        nothing: tuple[Any, ...] = ()
        for attempt in nothing:
            yield attempt


class MemoryClient:
    """As much of a client as the integrator uses."""

    def __init__(self) -> None:
        self.landing = Landing()
        self.runs = Runs()

    @asynccontextmanager
    async def acting_as(self, _role: Any, _agent_id: str) -> AsyncIterator["MemoryClient"]:
        yield self


@dataclass(slots=True)
class Scene:
    """A repository with a queue on its branch `main`, and everything that was proven."""

    folder: Path
    root: Path
    client: Any = field(default_factory=MemoryClient)
    remote: str = ""
    proven: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    """Files whose presence makes a tree fail its proof."""
    asks: set[str] = field(default_factory=set)
    proofs: int = 0
    way: Way = Way.FAST_FORWARD
    squash: bool = False
    proposals: Proposals | None = None
    before_proof: list[Callable[[], None]] = field(default_factory=list)
    """What happens during the next proof."""

    @property
    def landing(self) -> Landing:
        landing: Landing = self.client.landing
        return landing

    async def prove(self, _base: str, tip: str) -> Outcome:
        self.proofs += 1
        if self.before_proof:
            self.before_proof.pop()()
        clone = next((self.root / "repositories").iterdir())
        names = set(git(clone, "ls-tree", "-r", "--name-only", tip).splitlines())
        if names & self.refused:
            return Outcome(ok=False, text=f"broken by {names & self.refused}")
        if names & self.asks:
            return Outcome(ok=False, asks=("is that test right?",))
        self.proven.add(tip)
        return Outcome(ok=True, grade="PROVEN", summary="all tests")

    def work(self, number: int, files: dict[str, str], base: str = "HEAD") -> str:
        """Commits work on a branch of its own, without touching the working tree."""
        start = git(self.folder, "rev-parse", base)
        index = {"GIT_INDEX_FILE": str(self.root / f"index-{number}")}
        self.root.mkdir(parents=True, exist_ok=True)

        def indexed(*arguments: str, stdin: str = "") -> str:
            done = subprocess.run(
                ["git", "-c", "user.name=ada", "-c", "user.email=a@a", *arguments],
                cwd=self.folder, check=True, capture_output=True, text=True, input=stdin,
                env={**index, "PATH": "/usr/bin:/bin:/usr/local/bin", "HOME": "/nonexistent"},
            )  # fmt: skip
            return done.stdout.strip()

        indexed("read-tree", start)
        for name, content in files.items():
            blob = indexed("hash-object", "-w", "--stdin", stdin=content)
            indexed("update-index", "--add", "--cacheinfo", f"100644,{blob},{name}")
        commit = indexed(
            "commit-tree", indexed("write-tree"), "-p", start, "-m", f"work {number}\n\nPointsman-Run: run_{number}"
        )
        git(self.folder, "update-ref", f"refs/heads/pointsman/run_{number}", commit)
        return commit

    def enqueue(self, number: int, files: dict[str, str], **terms: Any) -> str:
        commit, entry_id = self.work(number, files), f"entry_{number:03}"
        wanted = Terms("repository", "main", self.remote, self.way, self.squash, title=f"Do task {number}")
        wanted = replace(wanted, **terms)
        made = Work(f"run_{number}", git(self.folder, "rev-parse", "HEAD"), commit)
        self.landing.submit(commands.Enqueue(entry_id, wanted.queue_id("local"), wanted, made))
        return entry_id

    def integrator(self, reach: Any = lambda _step: None) -> Integrator:
        proposals = self.proposals or Proposals(self.folder, {})
        proposals.reach = reach
        place = Place(self.root, self.folder, Permissions((self.remote,) if self.remote else ()))
        return Integrator("one", place, proposals, reach, self.prove)

    async def settle(self, reach: Any = lambda _step: None, rounds: int = 200) -> int:
        """Rounds until nothing is left to take; a killed integrator is followed by another. How many were killed."""
        killed, integrator = 0, self.integrator(reach)
        for _ in range(rounds):
            try:
                if not await integrator.round(self.client):
                    return killed
            except Killed:
                killed += 1
                integrator = self.integrator(reach)
        raise AssertionError("the queue does not come to rest")

    def status(self, entry_id: str) -> EntryState:
        return self.landing.entries[entry_id].status

    def tips(self) -> list[str]:
        """Every commit that the target was at, newest first, by its reflog."""
        where = Path(git(self.folder, "remote", "get-url", self.remote)) if self.remote else self.folder
        return git(where, "reflog", "--format=%H", "refs/heads/main").splitlines()


def scene(tmp_path: Path, files: dict[str, str] | None = None) -> Scene:
    """A repository whose branch `main` is not checked out."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "core.logAllRefUpdates", "always")
    for name, content in (files or {"README": "hello\n"}).items():
        (folder / name).write_text(content)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "begin")
    git(folder, "checkout", "-q", "--detach")
    return Scene(folder, tmp_path / "worker")


def die_at(step: Step, times: int = 1) -> Any:
    """Kills the integrator when it reaches a step for the n-th time."""
    left = times

    def reach(reached: Step) -> None:
        nonlocal left
        if reached is step:
            left -= 1
            if left == 0:
                raise Killed

    return reach


def chance(seed: str, number: int, sides: int) -> int:
    """A die that falls the same for everybody who throws it."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{number}".encode()).digest()[:4]) % sides


async def yield_once() -> None:
    await asyncio.sleep(0)
