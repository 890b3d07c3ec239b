"""Sends the present tree of an assignment now and then, so that conflicts are seen before work is handed in."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from pointsman.api.orchestrator.v1.landing_pb2 import Snapshot
from pointsman.client import CallFailed
from pointsman.worker.git import Clone, GitFailed
from pointsman.worker.sdk import Job

PAUSE_SECONDS = 30.0
MAX_BUNDLE_BYTES = 1024 * 1024


@asynccontextmanager
async def snapshots_sent(
    job: Job, clone: Clone | None, tree: Path, left_out: Collection[str] = (), pause_seconds: float = PAUSE_SECONDS
) -> AsyncIterator[None]:
    """Sends the tree, without what set-up made, again and again while the block runs."""
    if clone is None:
        yield
        return
    sending = asyncio.create_task(_send_always(partial(send_snapshot, job, clone, tree, left_out), pause_seconds))
    try:
        yield
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


async def _send_always(send: Callable[[str], Awaitable[str]], pause_seconds: float) -> None:
    sent = ""
    while True:
        await asyncio.sleep(pause_seconds)
        try:
            sent = await send(sent)
        except (GitFailed, CallFailed, OSError):
            continue  # files come and go under an agent's hands; the next look may go better


async def send_snapshot(job: Job, clone: Clone, tree: Path, left_out: Collection[str], sent: str) -> str:
    """Sends the tree unless it is the one that was sent last; returns the tree."""
    repository = job.assignment.repository
    captured = await clone.capture(tree, repository.base_commit, job.agent_id, left_out)
    if captured.tree == sent:
        return sent
    bundle = await clone.make_bundle(captured.base, captured.commit)
    if len(bundle) <= MAX_BUNDLE_BYTES and bundle:
        snapshot = Snapshot(base_commit=captured.base, commit=captured.commit, bundle=bundle)
        await job.client.landing.put_snapshot(job.agent_id, job.key, repository.id, snapshot)
    return captured.tree
