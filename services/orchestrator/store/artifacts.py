"""Bodies by their content: stored once for each project, read in chunks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, MetaData, bindparam, select

from pointsman.services.chassis.sql import insert_or_ignore
from pointsman.services.chassis.store import Store
from pointsman.services.orchestrator.store import tables


@dataclass(frozen=True, slots=True)
class Artifact:
    """What is known of a stored body."""

    project: str
    sha256: str
    size_bytes: int
    media_type: str
    run_id: str


class Artifacts:
    """The stored bodies."""

    def __init__(self, store: Store, metadata: MetaData) -> None:
        self._store = store
        self.table = tables.artifacts(metadata)
        self.chunks = tables.artifact_chunks(metadata)
        self._insert = insert_or_ignore(store.database, self.table)
        self._insert_chunk = insert_or_ignore(store.database, self.chunks)
        chunk = self.chunks.c
        self._chunk = select(chunk.body).where(
            chunk.project == bindparam("project"),
            chunk.sha256 == bindparam("sha256"),
            chunk.number == bindparam("number"),
        )

    async def put(self, artifact: Artifact, chunks: Sequence[bytes]) -> None:
        """Store a body whose digest was checked."""
        key = {"project": artifact.project, "sha256": artifact.sha256}
        rows = [{**key, "number": number, "body": body} for number, body in enumerate(chunks)]
        facts = {"size_bytes": artifact.size_bytes, "media_type": artifact.media_type, "run_id": artifact.run_id}

        def job(connection: Connection) -> None:
            connection.execute(self._insert, {**key, **facts})
            if rows:
                connection.execute(self._insert_chunk, rows)

        await self._store.perform(job)

    async def chunk(self, project: str, sha256: str, number: int) -> bytes | None:
        """One chunk; None after the last, and when there is no such artifact."""
        parameters = {"project": project, "sha256": sha256, "number": number}
        return await self._store.database.read(
            lambda connection: connection.execute(self._chunk, parameters).scalar_one_or_none()
        )


def pieces(body: bytes, size: int) -> Iterator[bytes]:
    """A body in pieces of at most the size."""
    for start in range(0, len(body), size):
        yield body[start : start + size]
