"""Sends the present tree of an assignment as it changes, so that conflicts are seen before work is handed in."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pointsman.api.orchestrator.v1.landing_pb2 import Snapshot
from pointsman.client import CallFailed
from pointsman.worker.git import Clone, GitFailed
from pointsman.worker.sdk import Job

PAUSE_SECONDS = 5.0
SHARE = 20
"""A look may take one part in this many of a worker's time: in a large repository it is taken less often."""
RENEW_SECONDS = 240.0
"""A tree that does not change is sent again, before it counts as left behind."""
MAX_BUNDLE_BYTES = 1024 * 1024
MAX_DECLARED = 256


@dataclass(slots=True)
class Sender:
    """Sends one assignment's tree, without what set-up made, whenever it has changed."""

    job: Job
    clone: Clone
    tree: Path
    left_out: Collection[str] = ()
    _sent: str = ""
    _sent_at: float = 0.0

    async def claim(self) -> None:
        """Says at once what the plan lets the task touch, before anything is written."""
        base = self.job.assignment.repository.base_commit
        await self._put(Snapshot(base_commit=base, commit=base))

    async def send(self, now: float) -> None:
        """Sends the tree unless it is the one that was sent last, and not long ago."""
        captured = await self.clone.capture(
            self.tree, self.job.assignment.repository.base_commit, self.job.agent_id, self.left_out
        )
        if captured.tree == self._sent and now - self._sent_at < RENEW_SECONDS:
            return
        is_base = captured.commit == captured.base
        bundle = b"" if is_base else await self.clone.make_bundle(captured.base, captured.commit, is_result=False)
        if len(bundle) <= MAX_BUNDLE_BYTES:
            await self._put(Snapshot(base_commit=captured.base, commit=captured.commit, bundle=bundle))
        self._sent, self._sent_at = captured.tree, now

    async def _put(self, snapshot: Snapshot) -> None:
        task = getattr(getattr(self.job.work, "handoff", None), "master_task", None)
        snapshot.task_id = self.job.assignment.task_id
        snapshot.declared_files.extend(task.files[:MAX_DECLARED] if task is not None else ())
        repository_id = self.job.assignment.repository.id
        await self.job.client.landing.put_snapshot(self.job.agent_id, self.job.key, repository_id, snapshot)


@asynccontextmanager
async def snapshots_sent(
    job: Job, clone: Clone | None, tree: Path, left_out: Collection[str] = (), pause_seconds: float = PAUSE_SECONDS
) -> AsyncIterator[None]:
    """Sends the tree as it changes while the block runs, and as it is at the end."""
    if clone is None:
        yield
        return
    sender = Sender(job, clone, tree, left_out)
    sending = asyncio.create_task(_send_always(sender, pause_seconds))
    try:
        yield
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
    with suppress(GitFailed, CallFailed, OSError):
        await sender.send(asyncio.get_running_loop().time())


async def _send_always(sender: Sender, pause_seconds: float) -> None:
    clock = asyncio.get_running_loop().time
    with suppress(CallFailed):
        await sender.claim()
    while True:
        await asyncio.sleep(pause_seconds)
        begun = clock()
        # files come and go under an agent's hands; the next look may go better
        with suppress(GitFailed, CallFailed, OSError):
            await sender.send(begun)
        await asyncio.sleep(max(0.0, SHARE * (clock() - begun) - pause_seconds))
