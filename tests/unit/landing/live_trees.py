"""The trees of live tasks in memory, and what is predicted from them."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from pointsman.api.orchestrator.v1 import landing_pb2 as pb


@dataclass(slots=True)
class LiveTrees:
    """The side of LandingService that sees conflicts coming."""

    trees: dict[str, pb.Snapshot] = field(default_factory=dict)
    entries: list[pb.Entry] = field(default_factory=list)
    stored: list[pb.Prediction] = field(default_factory=list)
    puts: int = 0
    sent_bundles: int = 0

    @property
    def client(self) -> Any:
        """As much of a client as a worker and a predictor use."""
        return SimpleNamespace(landing=self)

    async def put_snapshot(self, agent_id: str, _lease: Any, _repository_id: str, snapshot: pb.Snapshot) -> None:
        self.puts += 1
        self.put(agent_id, snapshot)

    def put(self, run_id: str, snapshot: pb.Snapshot) -> None:
        stored = pb.Snapshot()
        stored.CopyFrom(snapshot)
        stored.run_id = run_id
        self.trees[run_id] = stored

    async def snapshots(
        self, _repository_id: str, have: Sequence[str] = (), _after: Any = None, _wait: float = 0.0
    ) -> pb.ListSnapshotsResponse:
        answer = pb.ListSnapshotsResponse(snapshots=self.trees.values())
        for one in answer.snapshots:
            one.bundle = b"" if one.commit in have else one.bundle
            self.sent_bundles += bool(one.bundle)
        return answer

    async def all(self, states: Sequence[Any] = (), **_wanted: str) -> AsyncIterator[pb.Entry]:
        for entry in self.entries:
            if entry.state in states:
                yield entry

    async def put_predictions(self, _repository_id: str, predictions: Sequence[pb.Prediction]) -> None:
        self.stored = list(predictions)

    def pairs(self) -> list[tuple[str, str, list[str]]]:
        """Runs that were predicted to conflict, with the files."""
        return [(one.run_id, one.other_run_id, list(one.files)) for one in self.stored]
