"""Artifacts: content-addressed bodies."""

import hashlib
from collections.abc import AsyncIterator
from typing import Any

from pointsman.api.handoff.v1.handoff_pb2 import ArtifactRef
from pointsman.api.orchestrator.v1 import artifact_pb2 as pb
from pointsman.api.orchestrator.v1.artifact_pb2_grpc import ArtifactServiceStub
from pointsman.client.calls import Calls
from pointsman.client.errors import WrongContent

CHUNK_BYTES = 1024 * 1024
MAX_BYTES = 256 * 1024 * 1024


class Artifacts:
    """ArtifactService."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._stub = ArtifactServiceStub(calls.channel)

    async def put(self, body: bytes, media_type: str, run_id: str = "", *, held_out: bool = False) -> ArtifactRef:
        """Stores a body; storing it twice changes nothing. One that is held out is for operators and verifiers alone."""
        who = pb.ARTIFACT_CLASS_HELD_OUT if held_out else pb.ARTIFACT_CLASS_UNSPECIFIED
        digest = hashlib.sha256(body).hexdigest()
        wanted = ArtifactRef(sha256=digest, size_bytes=len(body), media_type=media_type)

        async def parts() -> AsyncIterator[pb.PutRequest]:
            yield pb.PutRequest(start=pb.PutStart(artifact=wanted, run_id=run_id, artifact_class=who))
            for start in range(0, len(body), CHUNK_BYTES):
                yield pb.PutRequest(chunk=body[start : start + CHUNK_BYTES])

        async def send(_request: None, **terms: Any) -> pb.PutResponse:
            return await self._stub.Put(parts(), **terms)

        return (await self._calls.call(send, None)).artifact

    async def get(self, artifact: ArtifactRef) -> bytes:
        """Fetches a body and checks its digest."""

        async def receive(request: pb.GetRequest, **terms: Any) -> bytes:
            body = bytearray()
            async for part in self._stub.Get(request, **terms):
                body += part.chunk
                if len(body) > MAX_BYTES:
                    raise WrongContent(f"{artifact.sha256} is longer than {MAX_BYTES} bytes")
            return bytes(body)

        body = await self._calls.call(receive, pb.GetRequest(sha256=artifact.sha256))
        if hashlib.sha256(body).hexdigest() != artifact.sha256:
            raise WrongContent(f"the body of {artifact.sha256} has another digest")
        return body
