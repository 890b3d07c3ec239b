"""HTTP endpoints of every RPC and of the mock policy: decode, one call of a service, encode."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
from google.protobuf.message import Message
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.core.ids import new_nonce
from pointsman.services.chassis.rpc.status import internal_error
from pointsman.services.chassis.rpc.validation import validate
from pointsman.services.gateway.authentication import Authentication
from pointsman.services.gateway.compression import FAST, GZIP, VARY, WORTH_COMPRESSING, compress, takes_gzip
from pointsman.services.gateway.config import GatewaySettings
from pointsman.services.gateway.contract import METHODS, PREFIX, Method
from pointsman.services.gateway.errors import CLOSE, JSON, Rejected, response_of
from pointsman.services.gateway.events import LAST_EVENT_ID, MEDIA_TYPE, EventStream, resume
from pointsman.services.gateway.mock_policy import MOCK_PATH, as_request, as_words, get_policy, set_policy
from pointsman.services.gateway.peers import Peers
from pointsman.services.gateway.wire import decode, encode, from_query, read_json

LINES = "application/x-ndjson"
Endpoint = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Gateway:
    """The contract over HTTP."""

    peers: Peers
    settings: GatewaySettings
    authentication: Authentication
    stopped: asyncio.Event

    def routes(self) -> list[BaseRoute]:
        """A route for each RPC and the mock policy; every other path under /api/v1 is not found."""
        return [
            *(
                Route(path, with_error_responses(self._endpoint(method)), methods=_verbs(method))
                for path, method in METHODS.items()
            ),
            Route(MOCK_PATH, with_error_responses(self.get_mock_policy), methods=["GET"]),
            Route(MOCK_PATH, with_error_responses(self.set_mock_policy), methods=["POST"]),
            Route(
                f"{PREFIX}/{{rest:path}}",
                with_error_responses(_unknown),
                methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            ),
        ]

    async def get_mock_policy(self, request: Request) -> Response:
        """The mock policy, with the names of the command line."""
        method, message = get_policy()
        answer = await self.peers.call(method, message, self.authentication.admit(method, request))
        return _json(as_words(answer), request)

    async def set_mock_policy(self, request: Request) -> Response:
        """Change how a mock role behaves."""
        body = read_json(await self._body(request), MOCK_PATH)
        method, message = set_policy(as_request(body, new_nonce()))
        answer = await self.peers.call(method, message, self.authentication.admit(method, request))
        return _json(as_words(answer), request)

    def _endpoint(self, method: Method) -> Endpoint:
        if method.streams_in:
            return lambda request: self._upload(method, request)
        if method.streams_out:
            return lambda request: self._stream(method, request)
        return lambda request: self._unary(method, request)

    async def _unary(self, method: Method, request: Request) -> Response:
        metadata = self.authentication.admit(method, request)
        message = await self._message(method, request)
        return _json(encode(await self.peers.call(method, message, metadata)), request)

    async def _stream(self, method: Method, request: Request) -> Response:
        metadata = self.authentication.admit(method, request)
        message = await self._message(method, request)
        resume(method, message, request.headers.get(LAST_EVENT_ID, ""))
        validate(message, method.full_name)
        if request.method == "HEAD":
            return Response(media_type=MEDIA_TYPE)
        call = self.peers.watch(method, message, metadata)
        channel = self.peers.channel(method)
        hold_right = partial(self.authentication.watch, method, request)
        events = EventStream(method, call, channel, self.settings.keep_alive_seconds, self.stopped, hold_right).events()
        return StreamingResponse(events, media_type=MEDIA_TYPE, headers={"Cache-Control": "no-store"})

    async def _upload(self, method: Method, request: Request) -> Response:
        metadata = self.authentication.admit(method, request)
        _require(request, LINES)
        messages = self._lines(method, request)
        try:
            return _json(encode(await self.peers.upload(method, messages, metadata)), request)
        finally:
            await messages.aclose()  # type: ignore[attr-defined]

    async def _message(self, method: Method, request: Request) -> Message:
        if request.method in ("GET", "HEAD"):
            return decode(from_query(request.query_params.multi_items(), method.fields), method.request)
        return decode(read_json(await self._body(request), method.full_name), method.request)

    async def _body(self, request: Request) -> bytes:
        _require(request, JSON)
        parts, size = [], 0
        async for part in request.stream():
            size += len(part)
            if size > self.settings.max_body_bytes:
                raise _too_large(self.settings.max_body_bytes)
            parts.append(part)
        return b"".join(parts)

    async def _lines(self, method: Method, request: Request) -> AsyncIterator[Message]:
        """The messages of a body with one JSON object per line."""
        rest, size = b"", 0
        async for part in request.stream():
            size += len(part)
            *lines, rest = (rest + part).split(b"\n")
            if size > self.settings.max_upload_bytes or len(rest) > self.settings.max_body_bytes:
                raise _too_large(self.settings.max_upload_bytes)
            for line in lines:
                if line.strip():
                    yield decode(read_json(line, method.full_name), method.request)
        if rest.strip():
            yield decode(read_json(rest, method.full_name), method.request)


def with_error_responses(endpoint: Endpoint) -> Endpoint:
    """An endpoint whose refusals and exceptions become responses."""

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Refusal as refusal:
            return response_of(refusal)
        except ClientDisconnect:
            return Response(status_code=499)
        except Exception as error:  # noqa: BLE001 - the one place where every failure becomes an answer
            return response_of(internal_error(error, new_nonce()))

    return answer


def _verbs(method: Method) -> list[str]:
    return ["GET", "POST"] if method.is_read else ["POST"]


def _require(request: Request, media_type: str) -> None:
    """Require a content type that another site cannot send without a CORS preflight."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given != media_type:
        raise Rejected(415, Reason.MALFORMED_MESSAGE, f"send Content-Type: {media_type}", {"Accept-Post": media_type})


def _too_large(limit: int) -> Rejected:
    return Rejected(413, Reason.INVALID_FIELD, f"must be at most {limit} bytes", CLOSE)


def _json(value: Any, request: Request) -> Response:
    """The value as JSON; 304 for a read whose caller has it already."""
    body, headers = msgspec.json.encode(value), {"Cache-Control": "no-store", **VARY}
    if request.method == "GET":
        headers["ETag"] = f'"{hashlib.sha256(body).hexdigest()[:24]}"'
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
    if len(body) > WORTH_COMPRESSING and takes_gzip(request):
        body, headers = compress(body, FAST), {**headers, **GZIP}
    return Response(body, media_type=JSON, headers=headers)


async def _unknown(request: Request) -> Response:
    known = METHODS.get(request.url.path)
    if known is None:
        raise Rejected(404, Reason.UNIMPLEMENTED, "no such path; /openapi.json lists all of them")
    allowed = ", ".join(_verbs(known))
    raise Rejected(405, Reason.UNIMPLEMENTED, f"this RPC is called with {allowed}", {"Allow": allowed})
