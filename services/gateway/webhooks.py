"""Webhooks of forges: a signed delivery lets the integrators look at their pull requests now, and nothing else."""

import hashlib
import hmac
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from pointsman.api.orchestrator.v1.landing_pb2 import WakeForgeRequest
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.rpc.client import metadata_for
from pointsman.services.gateway.contract import METHODS, PREFIX
from pointsman.services.gateway.errors import CLOSE, Rejected, response_of
from pointsman.services.gateway.peers import Peers

WAKE = METHODS[f"{PREFIX}/orchestrator.LandingService/WakeForge"]
PATH = "/webhooks"
MAX_BODY_BYTES = 1024 * 1024
MAX_DELIVERIES = 4096
MIN_SECRET_BYTES, OTHERS = 16, 0o077
PROJECT = "local"
"""A wake-up names no project: it reaches every integrator, and says nothing but that a look is worth it."""


def _is_from_github(secret: bytes, headers: Headers, body: bytes) -> bool:
    expected = f"sha256={hmac.new(secret, body, hashlib.sha256).hexdigest()}"
    return hmac.compare_digest(expected.encode(), headers.get("x-hub-signature-256", "").encode())


def _is_from_gitlab(secret: bytes, headers: Headers, _body: bytes) -> bool:
    return hmac.compare_digest(secret, headers.get("x-gitlab-token", "").encode())


@dataclass(frozen=True, slots=True)
class Forge:
    """How a forge shows that a delivery is its own, and names it."""

    is_signed: Callable[[bytes, Headers, bytes], bool]
    delivery: str


FORGES: Mapping[str, Forge] = {
    "github": Forge(_is_from_github, "x-github-delivery"),
    "gitlab": Forge(_is_from_gitlab, "x-gitlab-event-uuid"),
}


@dataclass(frozen=True, slots=True)
class Webhooks:
    """Takes deliveries that carry the secret; the gateway itself is the caller of the services."""

    peers: Peers
    secret: Callable[[], bytes]
    _seen: "OrderedDict[str, None]" = field(default_factory=OrderedDict)

    def routes(self) -> list[BaseRoute]:
        """One path for each forge."""
        return [Route(f"{PATH}/{{forge}}", self.receive, methods=["POST"])]

    async def receive(self, request: Request) -> Response:
        """Wakes once for each delivery; what it says is not read."""
        try:
            return await self._receive(request)
        except Refusal as refusal:
            return response_of(refusal)
        except ClientDisconnect:
            return Response(status_code=499)

    async def _receive(self, request: Request) -> Response:
        forge = FORGES.get(request.path_params["forge"])
        if forge is None:
            raise Rejected(404, Reason.UNIMPLEMENTED, f"no such forge; known are {', '.join(FORGES)}")
        body = await _body(request)
        if not forge.is_signed(self.secret(), request.headers, body):
            raise Rejected(401, Reason.UNAUTHENTICATED, "the delivery is not signed with the secret of this gateway")
        named = f"{request.path_params['forge']}/{request.headers.get(forge.delivery, '')}"
        delivery = hashlib.sha256(named.encode()).hexdigest()
        if delivery in self._seen:
            return JSONResponse({"status": "duplicate"})
        await self.peers.call(WAKE, WakeForgeRequest(request_id=delivery), metadata_for(PROJECT, ""))
        self._seen[delivery] = None
        if len(self._seen) > MAX_DELIVERIES:
            self._seen.popitem(last=False)
        return JSONResponse({"status": "taken"}, 202)


async def _body(request: Request) -> bytes:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > MAX_BODY_BYTES:
            raise Rejected(413, Reason.INVALID_FIELD, f"must be at most {MAX_BODY_BYTES} bytes", CLOSE)
        parts.append(part)
    return b"".join(parts)


def read_secret(path: Path) -> bytes:
    """The secret in a file; refused where others can read it, or it is too short to be one."""
    if path.stat().st_mode & OTHERS:
        raise ValueError(f"{path} can be read by others; `chmod 600` it")
    secret = path.read_bytes().strip()
    if len(secret) < MIN_SECRET_BYTES:
        raise ValueError(f"{path} has less than {MIN_SECRET_BYTES} bytes; make it longer")
    return secret
