"""The commits of an entry's work."""

from pointsman.api.orchestrator.v1 import landing_pb2 as pb
from pointsman.client import Client
from pointsman.worker.git import Clone


async def fetch_work(client: Client, clone: Clone, entry: pb.Entry) -> None:
    """The work's commits, from the user's repository or from the bundle, within the bounds of every work."""
    if not await clone.has(entry.base_commit):
        await clone.fetch_source(entry.base_commit)
    if not await clone.has(entry.commit):
        if entry.bundle.sha256:
            await clone.take_bundle(await client.artifacts.get(entry.bundle), entry.commit)
        else:
            await clone.fetch_source(entry.commit)
    await clone.require_bounds(entry.commit, entry.base_commit)
