"""The calls of many agents over one stream: what is said at the same time goes out together."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Any

import grpc
from google.rpc import status_pb2

from pointsman.api.orchestrator.v1 import session_pb2 as pb
from pointsman.api.orchestrator.v1.agent_pb2_grpc import AgentServiceStub
from pointsman.api.orchestrator.v1.session_pb2_grpc import SessionServiceStub
from pointsman.client.errors import CallFailed, Unavailable, failure_from, failure_of

MOST_AT_ONCE = 256
EXPIRY_SECONDS = 0.25
"""How often it is looked whose time is over: a timer for each call would cost more than the call's bytes."""
Metadata = Sequence[tuple[str, str]]
CODES = {code.value[0]: code for code in grpc.StatusCode}


class Session:
    """Stands for AgentService's stub; a stream that breaks fails what was asked over it, and the next call opens another."""

    def __init__(self, channel: grpc.aio.Channel, metadata: Metadata = ()) -> None:
        lists: Any = AgentServiceStub(channel)
        stub: Any = SessionServiceStub(channel)
        self._open: Callable[[], Any] = partial(stub.Converse, metadata=metadata)
        self._stream: _Stream | None = None
        self.ListAgents, self.ListAssignments = lists.ListAgents, lists.ListAssignments
        self.Poll, self.Heartbeat = partial(self._ask, "poll"), partial(self._ask, "heartbeat")
        self.Complete, self.Fail = partial(self._ask, "complete"), partial(self._ask, "fail")

    async def close(self) -> None:
        """Say no more; what still waits for an answer fails."""
        if self._stream is not None:
            await self._stream.close()

    async def _ask(self, kind: str, request: Any, timeout: float = 20.0, metadata: Metadata = ()) -> Any:  # noqa: ASYNC109 - as a stub's method
        if self._stream is None or self._stream.is_over:
            self._stream = _Stream(self._open())
        return await self._stream.ask(kind, request, timeout, dict(metadata).get("traceparent", ""))


class _Stream:
    """One stream, from its opening to its end."""

    def __init__(self, call: Any) -> None:
        self._call = call
        self._numbers = count(1)
        self._waiting: dict[int, tuple[asyncio.Future[Any], float]] = {}
        """Who waits for which answer, and until when."""
        self._asks: list[pb.Ask] = []
        self._news = asyncio.Event()
        self._reading = asyncio.create_task(self._read_all())
        self._beside = [asyncio.create_task(work()) for work in (self._write_all, self._expire_all)]
        """What ends with the reading."""
        self.is_over = False

    async def ask(self, kind: str, request: Any, seconds: float, traceparent: str) -> Any:
        """The answer, or the failure that the call would have ended with."""
        loop, number = asyncio.get_running_loop(), next(self._numbers)
        answered: asyncio.Future[Any] = loop.create_future()
        self._waiting[number] = (answered, loop.time() + seconds)
        self._asks.append(pb.Ask(number=number, traceparent=traceparent, **{kind: request}))
        self._news.set()
        try:
            return await answered
        finally:
            self._waiting.pop(number, None)

    async def close(self) -> None:
        """Hang up."""
        self._call.cancel()
        self._end(_gone(grpc.StatusCode.CANCELLED, "the session was closed"))
        await asyncio.gather(self._reading, *self._beside, return_exceptions=True)

    async def _write_all(self) -> None:
        try:
            while True:
                await self._news.wait()
                self._news.clear()
                while self._asks:
                    asks, self._asks = self._asks[:MOST_AT_ONCE], self._asks[MOST_AT_ONCE:]
                    await self._call.write(pb.ConverseRequest(asks=asks))
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            return

    async def _read_all(self) -> None:
        failure: CallFailed = _gone(grpc.StatusCode.UNAVAILABLE, "the server ended the session; ask again")
        try:
            while (message := await self._call.read()) is not grpc.aio.EOF:
                for answer in message.answers:
                    self._take(answer)
        except grpc.aio.AioRpcError as error:
            failure = failure_from(error)
        self._end(failure)

    def _take(self, answer: pb.Answered) -> None:
        waiting, _ = self._waiting.pop(answer.number, (None, 0.0))
        if waiting is None or waiting.done():
            return
        kind = str(answer.WhichOneof("answer"))
        if kind == "status":
            status = status_pb2.Status.FromString(answer.status)
            waiting.set_exception(failure_of(status, CODES[status.code], status.message))
        else:
            waiting.set_result(getattr(answer, kind))

    async def _expire_all(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(EXPIRY_SECONDS)
            now = loop.time()
            for waiting, until in self._waiting.values():
                if until <= now and not waiting.done():
                    waiting.set_exception(_gone(grpc.StatusCode.DEADLINE_EXCEEDED, "no answer in time"))

    def _end(self, failure: CallFailed) -> None:
        self.is_over = True
        for task in self._beside:
            task.cancel()
        waiting, self._waiting = self._waiting, {}
        for one, _ in waiting.values():
            if not one.done():
                one.set_exception(failure)


def _gone(code: grpc.StatusCode, message: str) -> Unavailable:
    return Unavailable("", code, message)
