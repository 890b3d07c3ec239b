"""What agents print, as pieces for one watcher."""

from collections.abc import Iterator, Sequence
from typing import Any

from pointsman.api.handoff.v1 import handoff_pb2 as handoff
from pointsman.api.orchestrator.v1 import agent_pb2 as agent
from pointsman.api.orchestrator.v1 import assignment_pb2 as assignments
from pointsman.services.chassis.core.codec import from_json
from pointsman.services.orchestrator.domain.model import Assignment
from pointsman.services.orchestrator.wire import enums

TRANSCRIPT_TYPE = "text/plain"


class OutputReader:
    """Finds what one watcher of a run, or of one of its tasks, has not seen yet."""

    def __init__(self, task_id: str = "") -> None:
        self._task_id = task_id
        self._seen: dict[tuple[str, int], int] = {}

    def unseen(self, rows: Sequence[Any]) -> Iterator[agent.OutputChunk]:
        """The new pieces; one that was overwritten before it was seen is left out, as its offset shows."""
        for row in rows:
            key, begins_at = (row.assignment_id, row.epoch), row.end_offset - len(row.tail)
            seen = max(self._seen.get(key, 0), begins_at)
            item: Assignment = from_json(row.body, Assignment)
            if seen >= row.end_offset or self._task_id not in ("", item.task_id):
                continue
            self._seen[key] = row.end_offset
            yield agent.OutputChunk(
                assignment_id=row.assignment_id,
                purpose=enums.PURPOSE.to_wire(item.purpose),
                task_id=item.task_id,
                stage=item.stage,
                agent_id=row.agent_id,
                epoch=row.epoch,
                offset=seen,
                text=row.tail[seen - begins_at :],
            )


def transcript(row: Any) -> assignments.Transcript:
    """Where the whole output of a lease is."""
    artifact = handoff.ArtifactRef(
        sha256=row.transcript_sha256, size_bytes=row.transcript_bytes, media_type=TRANSCRIPT_TYPE
    )
    return assignments.Transcript(epoch=row.epoch, agent_id=row.agent_id, artifact=artifact)
