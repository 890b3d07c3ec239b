"""Landing from the command line: terms from options and project file, and an integrator of this machine."""

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pointsman._shared.git import GitFailed, text
from pointsman.api.orchestrator.v1 import landing_pb2 as pb
from pointsman.api.orchestrator.v1.run_pb2 import Budget, Run
from pointsman.cli.exit_codes import EXIT_FAILED, EXIT_WAITS_FOR_PERSON
from pointsman.cli.options.usage import fail_usage
from pointsman.cli.render.entries import entry_lines
from pointsman.cli.session.linked_runs import LinkCrew, open_link
from pointsman.cli.session.repository import read_project
from pointsman.cli.session.worker_settings import WorkerSettings
from pointsman.cli.session.workers import worker_root
from pointsman.client import CallFailed, Client, NotFound
from pointsman.landing.integrator import Integrator, Place
from pointsman.landing.permissions import Permissions
from pointsman.landing.proposals import Proposals
from pointsman.landing.steps import armed_by_environment
from pointsman.project import DeliverSection
from pointsman.services.chassis.core.config import load
from pointsman.worker.git import repository_id

APPEAR_SECONDS = 0.2
SETTLED = (
    pb.ENTRY_STATE_LANDED,
    pb.ENTRY_STATE_REJECTED,
    pb.ENTRY_STATE_CANCELLED,
    pb.ENTRY_STATE_ASKED,
    pb.ENTRY_STATE_WAITING,
    pb.ENTRY_STATE_PROPOSED,
)
"""States in which an integrator has done what it can for now."""
EXIT_CODES = {pb.ENTRY_STATE_LANDED: 0, pb.ENTRY_STATE_PROPOSED: 0, pb.ENTRY_STATE_ASKED: EXIT_WAITS_FOR_PERSON}


@dataclass(frozen=True, slots=True)
class Wishes:
    """Where `deliver` is to land work, as its options say."""

    onto: str = ""
    push: str = ""
    pr: bool = False
    squash: bool = False
    queue: bool = False
    budget: Budget | None = None
    """What linked runs may spend together; that of the run where it is not given."""
    resolver: bool = False
    """Whether somebody plays the resolver."""
    stack: bool = False
    """A pull request for each task, on the one below."""

    @property
    def any(self) -> bool:
        """Whether an option asks for more than a branch."""
        return any((self.onto, self.push, self.pr, self.squash, self.queue, self.stack))


async def with_head(wishes: Wishes, folder: Path) -> Wishes:
    """The wishes, with what the project file of the repository's HEAD says where options do not."""
    project = await read_project(folder, await text(folder, "rev-parse", "HEAD"))
    return replace(with_section(wishes, project.deliver), resolver=wishes.resolver or project.crew.resolver is not None)


def with_section(wishes: Wishes, section: DeliverSection) -> Wishes:
    """The wishes, with what [deliver] says where they do not; a stack is one of pull requests."""
    return replace(
        wishes,
        onto=wishes.onto or section.onto,
        push=wishes.push or section.push,
        pr=wishes.pr or section.pr or wishes.stack or section.stack,
        stack=wishes.stack or section.stack,
        squash=wishes.squash or section.squash,
    )


async def terms_of(wishes: Wishes, folder: Path) -> pb.LandingTerms:
    """Terms for the queue; ends the command where nothing says which branch it is."""
    if not wishes.onto:
        fail_usage("nothing says where the work is to land; name the branch with --onto, or in [deliver] onto")
    if wishes.pr and not wishes.push:
        fail_usage("--pr needs a remote; name it with --push, or in [deliver] push")
    way = pb.LANDING_WAY_PULL_REQUEST if wishes.pr else pb.LANDING_WAY_FAST_FORWARD
    return pb.LandingTerms(
        repository_id=await repository_id(folder),
        target=wishes.onto,
        remote=wishes.push,
        way=way,
        squash=wishes.squash,
        max_tokens=wishes.budget.tokens if wishes.budget else 0,
        max_cost_micros=wishes.budget.cost_micros if wishes.budget else 0,
        resolver=wishes.resolver,
        stack=wishes.stack,
    )


def integrator_for(folder: Path, remotes: Sequence[str] = ()) -> Integrator:
    """The integrator of this machine for a repository."""
    reach = armed_by_environment()
    name = f"{socket.gethostname().split('.')[0]}-integrator"
    place = Place(worker_root(), folder, Permissions(tuple(filter(None, remotes))))
    proposals = Proposals(folder, reach=reach, follow_seconds=load(WorkerSettings).forge_seconds)
    return Integrator(name, place, proposals, reach)


async def land_now(
    client: Client, entry: pb.Entry, integrator: Integrator, crew: LinkCrew | None = None
) -> Sequence[pb.Entry]:
    """Works on the queue until an entry has gone as far as it can for now; raises what stopped the integrator.

    The entry and, where it is the lowest of a stack, those above it, as far as they are there. With a crew, its linked runs are worked on too: it goes on until the work is merged, or a person is asked.
    """
    working = asyncio.create_task(integrator.run(client, asyncio.Event()))
    settled = asyncio.create_task(_whole(client, entry, crew))
    try:
        await asyncio.wait((working, settled), return_when=asyncio.FIRST_COMPLETED)
        if not settled.done():
            await working
        return await settled
    finally:
        for task in (working, settled):
            task.cancel()
        await asyncio.gather(working, settled, return_exceptions=True)


async def _whole(client: Client, entry: pb.Entry, crew: LinkCrew | None) -> list[pb.Entry]:
    """An entry and the layers above it, each once it has gone as far as it can, up to one that does not go on."""
    done: list[pb.Entry] = []
    while True:
        entry = await (_over(client, entry, crew) if crew else _settled(client, entry, SETTLED))
        done.append(entry)
        if not entry.stack.above_entry_id or entry.state not in (pb.ENTRY_STATE_PROPOSED, pb.ENTRY_STATE_LANDED):
            return done
        entry = await _appeared(client, entry.stack.above_entry_id)


async def _appeared(client: Client, entry_id: str) -> pb.Entry:
    """An entry, once it is there."""
    while True:
        try:
            return await client.landing.get(entry_id)
        except NotFound:
            await asyncio.sleep(APPEAR_SECONDS)


async def _settled(client: Client, entry: pb.Entry, states: Sequence[pb.EntryState.ValueType]) -> pb.Entry:
    """The entry, once it is in one of the states."""
    async for _ in client.landing.watch(entry.id):
        entry = await client.landing.get(entry.id)
        if entry.state in states:
            break
    return entry


async def _over(client: Client, entry: pb.Entry, crew: LinkCrew) -> pb.Entry:
    """The entry, once it has ended, asks a person, or waits for a linked run that asks one."""
    async for _ in client.landing.watch(entry.id):
        entry = await client.landing.get(entry.id)
        if entry.state in crew.until or (open_link(entry) and not await crew.work_on(client, entry)):
            break
    return entry


async def land_by_itself(client: Client, run: Run, folder: Path, crew: LinkCrew) -> Sequence[str]:
    """Lands the work of a run where [deliver] auto of its base says so, and its repairs with the same crew."""
    section = (await read_project(folder, run.repository.base_commit)).deliver
    if not section.auto or not section.onto or run.parent_entry:
        return ()
    wishes = with_section(Wishes(resolver="resolver" in crew.crew.members), section)
    try:
        entry = await client.landing.enqueue(run.id, await terms_of(wishes, folder))
        entries = await land_now(client, entry, integrator_for(folder), crew)
    except (CallFailed, GitFailed) as error:
        return (f"not landed: {error}; `pointsman deliver {run.id}` does it at any time",)
    return tuple(line for entry in entries for line in entry_lines(entry))


def exit_code_of(entries: Sequence[pb.Entry]) -> int:
    """The exit code that tells where an entry and the layers above it are: that of the first which does not go on."""
    return next(filter(None, (EXIT_CODES.get(entry.state, EXIT_FAILED) for entry in entries)), 0)


@asynccontextmanager
async def trees_watched(client: Client, folder: Path | None) -> AsyncIterator[None]:
    """Tries the live trees of a repository against each other during the block."""
    if folder is None:
        yield
        return
    watching = asyncio.create_task(integrator_for(folder).watch_trees(client, asyncio.Event()))
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
