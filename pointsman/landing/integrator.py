"""The integrator: a worker that leases merge queues and lands their entries, one round after the other."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from pointsman._shared.git import GitFailed, text
from pointsman.api.handoff.v1.delivery_pb2 import Delivery
from pointsman.api.orchestrator.v1 import landing_pb2 as pb
from pointsman.api.orchestrator.v1.evidence_pb2 import Attempt
from pointsman.client import CallFailed, Client, NotFound, TerminalError, Unavailable
from pointsman.credentials.folder import CredentialRole
from pointsman.landing.forge import ForgeAway
from pointsman.landing.layers import layers_of, of_layer, titled
from pointsman.landing.messages import Story, landing_message
from pointsman.landing.permissions import Permissions
from pointsman.landing.prediction import Predictor
from pointsman.landing.proposals import Proposals
from pointsman.landing.proving import TreeProver
from pointsman.landing.request_body import trace_of
from pointsman.landing.round import Item, Prove, Round, read_item
from pointsman.landing.steps import Reach, Step
from pointsman.landing.target import Blocked, Target, drop_entry_ref, entry_refs
from pointsman.landing.work import fetch_work
from pointsman.project import InvalidProjectFile
from pointsman.worker.base_project import project_at
from pointsman.worker.folders import work_folder
from pointsman.worker.git import Clone, repository_id
from pointsman.worker.handoff import safe_name

WAIT_SECONDS = 20.0
KEEP_SECONDS = 10.0
AWAY_SECONDS = 2.0
FORGE_AWAY_SECONDS = 10.0
PREDICT_PAUSE_SECONDS = 1.0
MAX_BATCH = 32

log = logging.getLogger("pointsman.integrator")


@dataclass(frozen=True, slots=True)
class Place:
    """Where an integrator works: its folder of the data directory, the user's repository, and what it may touch."""

    root: Path
    folder: Path
    permissions: Permissions = field(default_factory=Permissions)
    max_batch: int = MAX_BATCH


class Integrator:
    """Lands the entries of one repository."""

    def __init__(
        self,
        name: str,
        place: Place,
        proposals: Proposals,
        reach: Reach = lambda _step: None,
        prove: Prove | None = None,
    ) -> None:
        """`prove` takes the place of the proof that the project file describes."""
        self.name = name
        self._place, self._proposals, self._reach, self._prove = place, proposals, reach, prove
        self._clone: Clone | None = None
        self._repository_id = ""
        proposals.merged_commit = self._merged_commit

    async def run(self, client: Client, until: asyncio.Event) -> None:
        """Works until a stop signal; retries while the control plane is unavailable."""
        async with client.acting_as(CredentialRole.INTEGRATOR, self.name) as own:
            await self.prepare()
            beside = (
                asyncio.create_task(self._proposals.follow(own, self.name, self._repository_id, until)),
                asyncio.create_task(self._predict(own, until)),
            )
            try:
                while not until.is_set():
                    await self._once(own, until)
            finally:
                for task in beside:
                    task.cancel()
                await asyncio.gather(*beside, return_exceptions=True)

    async def _predict(self, client: Client, until: asyncio.Event) -> None:
        """Tries live trees against each other whenever there is a new one."""
        assert self._clone is not None, "prepared before"
        predictor = Predictor(self._clone, self._repository_id)
        while not until.is_set():
            with contextlib.suppress(CallFailed, GitFailed):
                await predictor.predict(client, WAIT_SECONDS)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(until.wait(), PREDICT_PAUSE_SECONDS)

    async def watch_trees(self, client: Client, until: asyncio.Event) -> None:
        """Only sees conflicts coming, and lands nothing."""
        async with client.acting_as(CredentialRole.INTEGRATOR, self.name) as own:
            await self.prepare()
            await self._predict(own, until)

    async def look(self, client: Client) -> None:
        """Looks once at the pull requests of the repository."""
        await self.prepare()
        await self._proposals.look(client, self.name, self._repository_id)

    async def _once(self, client: Client, until: asyncio.Event) -> None:
        try:
            await self.round(client, WAIT_SECONDS)
        except Unavailable:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(until.wait(), AWAY_SECONDS)
        except (CallFailed, GitFailed, ForgeAway) as error:
            log.warning("the round did not come to its end, and is tried again: %s", error)
            pause = AWAY_SECONDS
            if isinstance(error, ForgeAway):
                pause = max(FORGE_AWAY_SECONDS, error.retry_after_seconds)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(until.wait(), pause)

    async def prepare(self) -> None:
        """Makes the private clone."""
        if self._clone is not None:
            return
        root, folder = self._place.root, self._place.folder
        self._repository_id = await repository_id(folder)
        clone = Clone(root / "repositories" / f"{safe_name(self._repository_id)}.git", folder, root / "assignments")
        await clone.prepare()
        scratch = partial(work_folder, root / "assignments", "landing")
        self._prove = self._prove or TreeProver(clone.path, root, folder, scratch).prove
        self._clone = clone

    async def round(self, client: Client, wait_seconds: float = 0.0) -> int:
        """Takes a queue and lands what it can of it; how many entries were taken."""
        await self.prepare()
        held = await client.landing.take(self.name, [self._repository_id], self._place.max_batch, wait_seconds)
        if not held.queue_id:
            return 0
        self._reach(Step.TAKEN)
        async with self._renewed(client, held):
            try:
                await self._land(client, held)
            except Blocked as blocked:
                await self._block(client, held, str(blocked))
        await self._drop_refs(client)
        return len(held.entries)

    async def _drop_refs(self, client: Client) -> None:
        """Deletes the refs that linked runs of landed entries started from."""
        for entry_id in await entry_refs(self._place.folder):
            with contextlib.suppress(NotFound):
                if (await client.landing.get(entry_id)).state == pb.ENTRY_STATE_LANDED:
                    await drop_entry_ref(self._place.folder, entry_id)

    @asynccontextmanager
    async def _renewed(self, client: Client, held: pb.TakeEntriesResponse) -> AsyncIterator[None]:
        """Keeps the lease of a queue while it is worked on, and gives it back."""

        async def keep() -> None:
            while True:
                await asyncio.sleep(KEEP_SECONDS)
                await client.landing.keep(self.name, held.queue_id, held.epoch)

        keeping = asyncio.create_task(keep())
        try:
            yield
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
        with contextlib.suppress(TerminalError):
            await client.landing.keep(self.name, held.queue_id, held.epoch, release=True)

    async def _land(self, client: Client, held: pb.TakeEntriesResponse) -> None:
        assert self._prove is not None, "prepared before"
        target, tip = await self._target(held.entries[0].terms)
        report = partial(self._report, client, held.epoch)
        landing = Round(target, self._prove, report, partial(_delivery, client), self._reach)
        fresh = [entry for entry in held.entries if entry.state == pb.ENTRY_STATE_PROVING]
        recorded = [entry for entry in held.entries if entry.state == pb.ENTRY_STATE_LANDING]
        await landing.recover([entry for entry in recorded if not _is_proposed(entry)])
        proposed = [entry for entry in recorded if _is_proposed(entry)]
        items = [await self._item(client, target, entry, tip) for entry in fresh]
        ready = [item for item in items if item is not None]
        plain = [item for item in ready if not _is_proposed(item.entry)]
        await landing.land(plain, "" if landing.landed else tip)
        # a pull request is proven alone: it may be merged without the others
        alone = [await landing.candidate(item) for item in ready if _is_proposed(item.entry)]
        for entry in (*proposed, *filter(None, alone)):
            await self._proposals.propose(target, entry, await self._story(client, entry), landing.report)

    async def _target(self, terms: pb.LandingTerms) -> tuple[Target, str]:
        """The target branch and its tip, if the project lets it be touched."""
        assert self._clone is not None, "prepared before"
        secrets = await self._proposals.git_secrets(terms.remote)
        target = Target(self._clone.path, self._place.folder, terms.target, terms.remote, secrets)
        tip = await target.tip()
        try:
            section = (await project_at(self._clone.path, tip)).deliver
        except InvalidProjectFile as error:
            raise Blocked(f"the project file of {terms.target} has problems: {error}") from None
        self._place.permissions.require(section, terms.remote, terms.target)
        return target, tip

    async def _merged_commit(self, entry: pb.Entry) -> str:
        """The tip of the target, if it holds the proposed commit; empty as long as it does not."""
        target, tip = await self._target(entry.terms)
        return tip if await target.contains(entry.proposal.head, tip) else ""

    async def _item(self, client: Client, target: Target, entry: pb.Entry, tip: str) -> Item | None:
        """The entry with its work in the clone; one whose work cannot be had asks a person."""
        assert self._clone is not None, "prepared before"
        try:
            await fetch_work(client, self._clone, entry)
            entry = await self._split(client, entry)
        except (GitFailed, NotFound, Blocked) as error:
            found = pb.LandingFinding(kind=pb.FINDING_KIND_BLOCKED, text=f"the work cannot be had: {error}")
            await client.landing.report(self.name, entry, entry.epoch, found=found)
            return None
        story = await self._story(client, entry)
        return await read_item(target, entry, landing_message(story), tip)

    async def _split(self, client: Client, entry: pb.Entry) -> pb.Entry:
        """The entry as the lowest layer of its stack, where one is asked for and nobody has split it yet."""
        assert self._clone is not None, "prepared before"
        if not entry.terms.stack or entry.HasField("stack"):
            return entry
        layers = titled(await layers_of(self._clone.path, entry), await self._story(client, entry))
        entry = await client.landing.report(self.name, entry, entry.epoch, split=layers)
        self._reach(Step.SPLIT)
        return entry

    async def _story(self, client: Client, entry: pb.Entry) -> Story:
        assert self._clone is not None, "prepared before"
        names = await text(self._clone.path, "log", "--format=%an", f"{entry.floor}..{entry.commit}")
        delivery = await _delivery(client, entry.work_run_id)
        story = of_layer(Story(entry, delivery, tuple(filter(None, names.splitlines()))))
        if not _is_proposed(entry):
            return story
        attempts = await _attempts(client, entry.work_run_id)
        return replace(story, attempts=attempts, trace=await self._trace(client, entry))

    async def _trace(self, client: Client, entry: pb.Entry) -> str:
        """Where the trace of the work is; empty for a run that is forgotten, or whose project file cannot be read."""
        assert self._clone is not None, "prepared before"
        try:
            run = await client.runs.get(entry.work_run_id)
            console = (await project_at(self._clone.path, entry.base_commit)).notify.console
        except (NotFound, InvalidProjectFile):
            return ""
        return trace_of(run.id, run.traceparent, console)

    async def _report(self, client: Client, epoch: int, entry: pb.Entry, **said: Any) -> pb.Entry:
        return await client.landing.report(self.name, entry, epoch, **said)

    async def _block(self, client: Client, held: pb.TakeEntriesResponse, why: str) -> None:
        """Nobody can land anything here: each entry that is still in our hands asks a person."""
        found = pb.LandingFinding(kind=pb.FINDING_KIND_BLOCKED, text=why)
        for entry in held.entries:
            with contextlib.suppress(TerminalError):
                await client.landing.report(self.name, entry, held.epoch, found=found)


def _is_proposed(entry: pb.Entry) -> bool:
    return entry.terms.way == pb.LANDING_WAY_PULL_REQUEST


async def _delivery(client: Client, run_id: str) -> Delivery:
    """What a run delivered; nothing for one that is forgotten."""
    try:
        return await client.runs.delivery(run_id)
    except NotFound:
        return Delivery(run_id=run_id)


async def _attempts(client: Client, run_id: str) -> tuple[Attempt, ...]:
    """The attempts at a run's tasks, with evidence and findings."""
    try:
        return tuple([attempt async for attempt in client.runs.evidence(run_id) if attempt.status == "accepted"])
    except NotFound:
        return ()
