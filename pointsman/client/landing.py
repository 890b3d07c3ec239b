"""Merge queues: put work in, follow it, answer for it; and the integrator's side."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from pointsman.api.common.v1.common_pb2 import Transition
from pointsman.api.orchestrator.v1 import landing_pb2 as pb
from pointsman.api.orchestrator.v1.agent_pb2 import LeaseKey
from pointsman.api.orchestrator.v1.landing_pb2_grpc import LandingServiceStub
from pointsman.client.calls import Calls, new_request_id

TAKE_MARGIN_SECONDS = 10.0


class Landing:
    """LandingService."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._stub = LandingServiceStub(calls.channel)

    async def enqueue(self, run_id: str, terms: pb.LandingTerms, request_id: str = "") -> pb.Entry:
        """Puts a run's accepted work into the queue of a branch."""
        request = pb.EnqueueRequest(request_id=request_id, run_id=run_id, terms=terms)
        return (await self._calls.mutate(self._stub.Enqueue, request)).entry

    async def get(self, entry_id: str) -> pb.Entry:
        """An entry as it is now."""
        return (await self._calls.call(self._stub.GetEntry, pb.GetEntryRequest(entry_id=entry_id))).entry

    async def all(
        self, states: Sequence[pb.EntryState.ValueType] = (), *, repository_id: str = "", run_id: str = ""
    ) -> AsyncIterator[pb.Entry]:
        """Entries, newest first."""
        request = pb.ListEntriesRequest(states=states, repository_id=repository_id, run_id=run_id)
        async for page in self._calls.pages(self._stub.ListEntries, request):
            for entry in page.entries:
                yield entry

    async def answer(
        self, entry_id: str, reply: pb.EntryReply.ValueType, text: str = "", request_id: str = ""
    ) -> pb.Entry:
        """Answers an entry that asks."""
        request = pb.AnswerEntryRequest(request_id=request_id, entry_id=entry_id, reply=reply, text=text)
        return (await self._calls.mutate(self._stub.AnswerEntry, request)).entry

    async def cancel(self, entry_id: str, reason: str = "", request_id: str = "") -> pb.Entry:
        """Takes an entry out of its queue; branch and bundle stay."""
        request = pb.CancelEntryRequest(request_id=request_id, entry_id=entry_id, reason=reason)
        return (await self._calls.mutate(self._stub.CancelEntry, request)).entry

    def watch(self, entry_id: str, after_seq: int = 0) -> AsyncIterator[Transition]:
        """An entry's transitions, to its end."""
        request = pb.WatchEntryRequest(entry_id=entry_id, after_seq=after_seq)
        return self._calls.watch_entity(self._stub.WatchEntry, request)

    async def take(
        self, agent_id: str, repository_ids: Sequence[str], max_entries: int = 0, wait_seconds: float = 0.0
    ) -> pb.TakeEntriesResponse:
        """Leases a queue with something to do; without a queue id when the wait was over."""
        request = pb.TakeEntriesRequest(agent_id=agent_id, repository_ids=repository_ids, max_entries=max_entries)
        request.wait.FromMicroseconds(round(wait_seconds * 1_000_000))
        request.request_id = new_request_id()
        return await self._calls.call(self._stub.TakeEntries, request, wait_seconds + TAKE_MARGIN_SECONDS)

    async def keep(self, agent_id: str, queue_id: str, epoch: int, *, release: bool = False) -> None:
        """Holds a queue longer, or gives it back."""
        request = pb.KeepQueueRequest(agent_id=agent_id, queue_id=queue_id, epoch=epoch, release=release)
        await self._calls.mutate(self._stub.KeepQueue, request)

    async def report(self, agent_id: str, entry: pb.Entry, epoch: int, **said: Any) -> pb.Entry:
        """Says what was found or done about an entry: one of `proven`, `landed`, `base_moved`, `found` and others."""
        request = pb.ReportEntryRequest(entry_id=entry.id, agent_id=agent_id, epoch=epoch, **said)
        return (await self._calls.mutate(self._stub.ReportEntry, request)).entry

    async def put_snapshot(self, agent_id: str, lease: LeaseKey, repository_id: str, snapshot: pb.Snapshot) -> None:
        """Keeps the present tree of an assignment."""
        request = pb.PutSnapshotRequest(agent_id=agent_id, lease=lease, repository_id=repository_id, snapshot=snapshot)
        await self._calls.mutate(self._stub.PutSnapshot, request)

    async def snapshots(
        self, repository_id: str, have: Sequence[str] = (), after: Timestamp | None = None, wait_seconds: float = 0.0
    ) -> pb.ListSnapshotsResponse:
        """The present trees of live runs, without the bundles of commits that are there; waits for one after a time."""
        request = pb.ListSnapshotsRequest(repository_id=repository_id, have_commits=have, after=after)
        request.wait.FromMicroseconds(round(wait_seconds * 1_000_000))
        return await self._calls.call(self._stub.ListSnapshots, request, wait_seconds + TAKE_MARGIN_SECONDS)

    async def put_predictions(self, repository_id: str, predictions: Sequence[pb.Prediction]) -> None:
        """Replaces what is predicted for a repository."""
        request = pb.PutPredictionsRequest(repository_id=repository_id, predictions=predictions)
        await self._calls.mutate(self._stub.PutPredictions, request)

    async def wake_forge(self, request_id: str = "") -> None:
        """Asks the integrators for a look at their open pull requests."""
        await self._calls.mutate(self._stub.WakeForge, pb.WakeForgeRequest(request_id=request_id))

    async def forge_woken(self, agent_id: str, wait_seconds: float) -> bool:
        """Waits until a look at pull requests is asked for; whether it was."""
        request = pb.WaitForForgeRequest(agent_id=agent_id)
        request.wait.FromMicroseconds(round(wait_seconds * 1_000_000))
        return (await self._calls.call(self._stub.WaitForForge, request, wait_seconds + TAKE_MARGIN_SECONDS)).woken

    async def predictions(self, run_id: str = "") -> Sequence[pb.Prediction]:
        """The conflicts that are coming, of one run or of the project."""
        request = pb.ListPredictionsRequest(run_id=run_id)
        return (await self._calls.call(self._stub.ListPredictions, request)).predictions
