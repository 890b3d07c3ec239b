"""ArtifactService: bodies by their content."""

import hashlib
from collections.abc import AsyncIterator

from pointsman.api.orchestrator.v1 import artifact_pb2 as artifact
from pointsman.services.chassis.core.caller import Caller, Role
from pointsman.services.chassis.core.errors import invalid_field, not_found
from pointsman.services.orchestrator.store import OrchestratorStore
from pointsman.services.orchestrator.store.artifacts import NO_QUOTA, Artifact, Quota


class ArtifactServicer:
    """ArtifactService."""

    def __init__(self, store: OrchestratorStore, max_bytes: int, quota: Quota = NO_QUOTA) -> None:
        self._store = store
        self._max_bytes, self._quota = max_bytes, quota

    async def Put(self, requests: AsyncIterator[artifact.PutRequest], caller: Caller) -> artifact.PutResponse:
        """Store a body, checked against its digest."""
        first = await anext(requests, artifact.PutRequest())
        if not first.HasField("start"):
            raise invalid_field("start", "the first message says what is put")
        wanted = first.start.artifact
        with self._store.artifacts.receiving(caller.project, self._max_bytes) as body:
            async for request in requests:
                if body.size_bytes + len(request.chunk) > min(self._max_bytes, wanted.size_bytes):
                    raise invalid_field("chunk", "the body is longer than it may be")
                body.write(request.chunk)
            if (body.sha256, body.size_bytes) != (wanted.sha256, wanted.size_bytes):
                raise invalid_field("start.artifact", "digest or size do not match the body")
            principal = "" if Role.SERVICE in caller.roles else caller.principal
            stored = Artifact(
                caller.project, body.sha256, body.size_bytes, wanted.media_type, first.start.run_id, principal
            )
            await self._store.artifacts.put(stored, body.file, self._quota)
        return artifact.PutResponse(artifact=wanted)

    async def Get(self, request: artifact.GetRequest, caller: Caller) -> AsyncIterator[artifact.GetResponse]:
        """A body in chunks."""
        number = 0
        while (chunk := await self._store.artifacts.chunk(caller.project, request.sha256, number)) is not None:
            yield artifact.GetResponse(chunk=chunk)
            number += 1
        if number == 0 and request.sha256 != hashlib.sha256(b"").hexdigest():
            raise not_found("artifact", request.sha256)
