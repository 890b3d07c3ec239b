"""ArtifactService: bodies by their content."""

import hashlib
from collections.abc import AsyncIterator

from pointsman.api.orchestrator.v1 import artifact_pb2 as artifact
from pointsman.services.chassis.core.caller import Caller, Role
from pointsman.services.chassis.core.errors import Reason, Refusal, invalid_field, not_found
from pointsman.services.orchestrator.domain.enums import Capability
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
        wanted, is_held_out = first.start.artifact, first.start.artifact_class == artifact.ARTIFACT_CLASS_HELD_OUT
        if is_held_out:
            _require_judge(caller, wanted.sha256)
        with self._store.artifacts.receiving(caller.project, self._max_bytes) as body:
            async for request in requests:
                if body.size_bytes + len(request.chunk) > min(self._max_bytes, wanted.size_bytes):
                    raise invalid_field("chunk", "the body is longer than it may be")
                body.write(request.chunk)
            if (body.sha256, body.size_bytes) != (wanted.sha256, wanted.size_bytes):
                raise invalid_field("start.artifact", "digest or size do not match the body")
            principal = "" if Role.SERVICE in caller.roles else caller.principal
            stored = Artifact(
                caller.project, body.sha256, body.size_bytes, wanted.media_type, first.start.run_id, principal,
                is_held_out,
            )  # fmt: skip
            await self._store.artifacts.put(stored, body.file, self._quota)
        return artifact.PutResponse(artifact=wanted)

    async def Get(self, request: artifact.GetRequest, caller: Caller) -> AsyncIterator[artifact.GetResponse]:
        """A body in chunks."""
        if await self._store.artifacts.is_held_out(caller.project, request.sha256):
            _require_judge(caller, request.sha256)
        number = 0
        while (chunk := await self._store.artifacts.chunk(caller.project, request.sha256, number)) is not None:
            yield artifact.GetResponse(chunk=chunk)
            number += 1
        if number == 0 and request.sha256 != hashlib.sha256(b"").hexdigest():
            raise not_found("artifact", request.sha256)


def _require_judge(caller: Caller, sha256: str) -> None:
    """Refuses callers other than operators and verifiers: held-out checks must not reach an agent."""
    if Role.OPERATOR not in caller.roles and not caller.may(Capability.VERIFY.lower()):
        raise Refusal(
            Reason.PERMISSION_DENIED,
            f"{caller.principal} may not read or put held-out checks; show the credential of an operator, or one that is "
            "granted the capability verify",
            metadata={"artifact": sha256},
        )
