"""Many calls over one stream: each is checked, done and answered like a call of its own, in whatever order they end."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from buf.validate import validate_pb2
from pointsman._shared.protobuf_bytes import VARINT, held, tag, varint
from pointsman.services.chassis.core.errors import Reason, Refusal, invalid_field
from pointsman.services.chassis.rpc.status import to_status

MESSAGE_BYTES = 1024 * 1024
"""Answers that are ready together are sent together, as long as they are not more than this."""
MOST_READY = 1024
STALL_SECONDS = 30.0
"""How long a reader may stand still before it is told to come back."""
CALL, NUMBER, STATUS = "call", "number", "status"

Answer = Callable[[Any, str, bool], Awaitable[bytes]]
"""Does one call: its request, its trace context, and whether there may be a NUL in it; the bytes of its answer, or a Refusal."""


class Shape(NamedTuple):
    """What the messages of a session are made of."""

    read: Callable[[bytes], Any]
    most_asks: int
    """How many asks one request may hold: a constraint of the proto."""
    answers: bytes
    """The tag of one answer in a response."""
    tags: Mapping[str, bytes]
    """The tag in which each kind of call is answered."""


def shape_of(method: MethodDescriptor) -> Shape:
    """A session's requests hold asks with a number and one call each, its responses answers with the same."""
    (asks,), (answers,) = method.input_type.fields, method.output_type.fields
    most_asks = asks.GetOptions().Extensions[validate_pb2.field].repeated.max_items
    answer: Any = answers.message_type
    tags = {field.name: tag(field.number) for field in answer.fields}
    tags[NUMBER] = tag(answer.fields_by_name[NUMBER].number, VARINT)
    return Shape(GetMessageClass(method.input_type).FromString, most_asks, tag(answers.number), tags)


def calls_of(method: MethodDescriptor) -> dict[str, str]:
    """The message that is asked with, by the name of each kind of call."""
    (asks,) = method.input_type.fields
    ask: Any = asks.message_type
    return {field.name: field.message_type.full_name for field in ask.oneofs_by_name[CALL].fields}


class Session:
    """One stream."""

    def __init__(self, shape: Shape, calls: Mapping[str, Answer], context: Any, most_open: int) -> None:
        self._shape = shape
        self._calls = calls
        self._context = context
        self._most_open = most_open
        self._open: set[asyncio.Task[None]] = set()
        self._ready: list[bytes] = []
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._is_over = False
        self._reading: asyncio.Task[None] | None = None

    async def converse(self) -> None:
        """Until the caller has said all and everything is answered, or it does not read."""
        self._reading = asyncio.create_task(self._read_all())
        writing = asyncio.create_task(self._write_all())
        try:
            await asyncio.wait((self._reading, writing), return_when=asyncio.FIRST_COMPLETED)
            self._is_over = True
            self._news.set()
            await writing
            if not self._reading.cancelled():
                await self._reading
        finally:
            tasks = (self._reading, writing, *self._open)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def stop(self) -> None:
        """Listen no more; what was asked is still answered."""
        if self._reading is not None:
            self._reading.cancel()

    async def _read_all(self) -> None:
        while (data := await self._context.read()) is not grpc.aio.EOF:
            may_hold_nul = b"\0" in data
            for ask in self._read(data):
                task = asyncio.create_task(self._one(ask, may_hold_nul=may_hold_nul))
                self._open.add(task)
                task.add_done_callback(self._close)
            while len(self._open) > self._most_open or len(self._ready) > MOST_READY:
                self._room.clear()
                await self._room.wait()

    def _read(self, data: bytes) -> Any:
        """The asks in a request, counted before anything is done for one of them."""
        try:
            asks = self._shape.read(data).asks
        except (DecodeError, RecursionError):
            raise Refusal(Reason.MALFORMED_MESSAGE, "the bytes are not a valid request") from None
        if len(asks) > self._shape.most_asks:
            raise invalid_field(
                "asks", f"{len(asks)} in one message, {self._shape.most_asks} are allowed; send several messages"
            )
        return asks

    def _close(self, task: "asyncio.Task[None]") -> None:
        self._open.discard(task)
        self._news.set()

    async def _one(self, ask: Any, *, may_hold_nul: bool) -> None:
        """Do one call and have its answer sent."""
        kind = ask.WhichOneof(CALL)
        try:
            if kind is None:
                raise invalid_field(CALL, "say what is asked")
            body = await self._calls[kind](getattr(ask, kind), ask.traceparent, may_hold_nul)
        except Refusal as refusal:
            kind, body = STATUS, to_status(refusal)[1].SerializeToString()
        answer = self._shape.tags[NUMBER] + varint(ask.number) + held(self._shape.tags[kind], body)
        self._ready.append(held(self._shape.answers, answer))

    async def _write_all(self) -> None:
        """Send answers that are ready together in one message."""
        while not (self._is_over and not self._open and not self._ready):
            await self._news.wait()
            self._news.clear()
            while self._ready:
                message = self._next_message()
                await self._send(message)
            self._room.set()

    async def _send(self, message: bytes) -> None:
        try:
            async with asyncio.timeout(STALL_SECONDS):
                await self._context.write(message)
        except TimeoutError:
            raise Refusal(
                Reason.WATCHER_TOO_SLOW, "read the answers faster; ask again with the same request_id"
            ) from None

    def _next_message(self) -> bytes:
        length = taken = 0
        while taken < len(self._ready) and (taken == 0 or length + len(self._ready[taken]) <= MESSAGE_BYTES):
            length += len(self._ready[taken])
            taken += 1
        message = b"".join(self._ready[:taken])
        del self._ready[:taken]
        return message
