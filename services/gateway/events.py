"""Streams as server-sent events: `id` is the resume position, refusals are events, keep-alives fill silence."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import grpc
import msgspec

from pointsman.services.chassis.core.errors import Refusal, invalid_field
from pointsman.services.gateway import metrics
from pointsman.services.gateway.contract import RESUME_FIELDS, Method
from pointsman.services.gateway.errors import body_of
from pointsman.services.gateway.peers import refused
from pointsman.services.gateway.wire import encode

MEDIA_TYPE = "text/event-stream"
OPENING = b": open\nretry: 1000\n\n"
KEEP_ALIVE = b": alive\n\n"
END = b"event: end\ndata: {}\n\n"
LAST_EVENT_ID = "Last-Event-ID"


@dataclass(frozen=True, slots=True)
class EventStream:
    """One streaming call as server-sent events."""

    method: Method
    call: grpc.aio.UnaryStreamCall[Any, Any]
    channel: grpc.aio.Channel
    keep_alive_seconds: float
    stopped: asyncio.Event
    """Set when the gateway stops: streams end, and clients reconnect to its successor."""
    hold_right: Callable[[Callable[[Refusal], None]], AbstractContextManager[None]]
    """A context that watches the caller's right and calls back when it is revoked."""

    async def events(self) -> AsyncIterator[bytes]:
        """The encoded events; the opening comment is sent once the service is reached."""
        revoked: asyncio.Future[Refusal] = asyncio.get_running_loop().create_future()
        with self.hold_right(revoked.set_result):
            async for event in self._events(revoked):
                yield event

    async def _events(self, revoked: "asyncio.Future[Refusal]") -> AsyncIterator[bytes]:
        stopping = asyncio.ensure_future(self.stopped.wait())
        reading = asyncio.ensure_future(self.call.read())
        reached = asyncio.ensure_future(self.channel.channel_ready())
        metrics.event_streams.inc()
        try:
            await asyncio.wait((reached, reading, stopping), return_when=asyncio.FIRST_COMPLETED)
            if reached.done():
                yield OPENING
            while not stopping.done():
                waited = (reading, stopping, revoked)
                await asyncio.wait(waited, timeout=self.keep_alive_seconds, return_when=asyncio.FIRST_COMPLETED)
                if revoked.done():
                    yield _refusal(revoked.result())
                    return
                if reading.done():
                    answer = reading.result()
                    yield END if answer is grpc.aio.EOF else self._event(answer)
                    if answer is grpc.aio.EOF:
                        return
                    reading = asyncio.ensure_future(self.call.read())
                elif not stopping.done():
                    yield KEEP_ALIVE
        except grpc.aio.AioRpcError as error:
            yield _refusal(refused(error, self.method))
        finally:
            metrics.event_streams.dec()
            reached.cancel()
            reading.cancel()
            stopping.cancel()
            self.call.cancel()

    def _event(self, answer: Any) -> bytes:
        place = b""
        if self.method.resume_field:
            number = getattr(answer.transition, RESUME_FIELDS[self.method.resume_field])
            place = f"id: {number}\n".encode()
        return place + b"data: " + msgspec.json.encode(encode(answer)) + b"\n\n"


def _refusal(refusal: Refusal) -> bytes:
    return b"event: refusal\ndata: " + msgspec.json.encode(body_of(refusal)) + b"\n\n"


def resume(method: Method, request: Any, last_event_id: str) -> None:
    """Resume after the Last-Event-ID, which overrides the field of the request."""
    if not last_event_id or not method.resume_field:
        return
    if not last_event_id.isascii() or not last_event_id.isdigit() or len(last_event_id) > 18:
        raise invalid_field(LAST_EVENT_ID, "must be the id of an event of this stream")
    setattr(request, method.resume_field, int(last_event_id))
