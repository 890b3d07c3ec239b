"""The part of LandingService that sees conflicts coming."""

from sqlalchemy import Connection

from pointsman.api.orchestrator.v1 import landing_pb2 as pb
from pointsman.services.chassis.core.caller import Caller
from pointsman.services.chassis.core.errors import Reason, Refusal, invalid_field
from pointsman.services.chassis.rpc.paging import seconds_of, timestamp
from pointsman.services.orchestrator.domain.views import Prediction, Snapshot
from pointsman.services.orchestrator.servicer.holders import granted, holder_of, lease_key
from pointsman.services.orchestrator.store import OrchestratorStore
from pointsman.services.orchestrator.store.polling import run_of

INTEGRATE = "integrate"
MOST_BRIEF, MOST_FILES = 8, 3


class PredictionServicer:
    """Snapshots in, predictions out."""

    def __init__(self, store: OrchestratorStore) -> None:
        self._store = store

    async def PutSnapshot(self, request: pb.PutSnapshotRequest, caller: Caller) -> pb.PutSnapshotResponse:
        """Keep the present tree of an assignment, for its lease's holder only."""
        holder, key = holder_of(request.agent_id, caller), lease_key(request.lease)
        it, run_id = request.snapshot, run_of(request.lease.assignment_id)
        tree = (it.base_commit, it.commit, it.bundle)
        snapshot = Snapshot(request.lease.assignment_id, run_id, *tree, it.task_id, tuple(it.declared_files))

        def job(connection: Connection) -> Refusal | None:
            _, lost = self._store.matcher.renew(connection, holder, [key], granted(caller))
            if lost:
                metadata = {"kind": "assignment", "id": key.assignment_id}
                return Refusal(
                    Reason.LEASE_LOST, "the lease is not yours any more; stop working on it", metadata=metadata
                )
            if self._store.matcher.repository_of(connection, key) != request.repository_id:
                return invalid_field("repository_id", "the assignment is about another repository; name its own")
            self._store.predictions.put(connection, caller.project, request.repository_id, snapshot)
            return None

        if (refusal := await self._store.store.write(job)) is not None:
            raise refusal
        return pb.PutSnapshotResponse()

    async def ListSnapshots(self, request: pb.ListSnapshotsRequest, caller: Caller) -> pb.ListSnapshotsResponse:
        """The present trees of live runs."""
        require_integrator(caller)
        where, trees = (caller.project, request.repository_id), self._store.predictions
        await trees.wait(*where, request.after.ToMicroseconds(), seconds_of(request.wait))
        found = await trees.fresh(*where, frozenset(request.have_commits))
        return pb.ListSnapshotsResponse(
            snapshots=map(_snapshot, found.snapshots), as_of=timestamp(found.as_of_us), more=found.more
        )

    async def PutPredictions(self, request: pb.PutPredictionsRequest, caller: Caller) -> pb.PutPredictionsResponse:
        """Replace what is predicted for a repository."""
        require_integrator(caller)
        found = [
            Prediction(one.run_id, one.other_run_id, tuple(one.files), 0, one.task_id, one.other_task_id, one.declared)
            for one in request.predictions
        ]
        await self._store.predictions.replace(caller.project, request.repository_id, found)
        return pb.PutPredictionsResponse()

    async def ListPredictions(self, request: pb.ListPredictionsRequest, caller: Caller) -> pb.ListPredictionsResponse:
        """The conflicts that are coming."""
        found = await self._store.predictions.of(caller.project, request.run_id)
        most, files = (MOST_BRIEF, MOST_FILES) if request.brief else (len(found), None)
        shown = [
            pb.Prediction(
                run_id=one.run_id,
                task_id=one.task_id,
                other_run_id=one.other_run_id,
                other_task_id=one.other_task_id,
                files=one.files[:files],
                seen_at=timestamp(one.at_us),
                declared=one.declared,
            )
            for one in found[:most]
        ]
        return pb.ListPredictionsResponse(predictions=shown, left_off=len(found) - len(shown))


def _snapshot(one: Snapshot) -> pb.Snapshot:
    return pb.Snapshot(
        run_id=one.run_id, task_id=one.task_id, declared_files=one.declared_files, base_commit=one.base_commit,
        commit=one.commit, bundle=one.bundle,
    )  # fmt: skip


def require_integrator(caller: Caller) -> None:
    """Refuses a principal that may not land anything."""
    if not caller.may(INTEGRATE):
        raise Refusal(
            Reason.PERMISSION_DENIED,
            f"'{caller.principal}' was not granted the capability '{INTEGRATE}'; use the credential of the integrator",
            metadata={"capability": INTEGRATE},
        )
