"""How every call is made: with a deadline, the project, and retries with the same request_id."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import grpc

from pointsman.api.common.v1.common_pb2 import Transition
from pointsman.client.errors import CallFailed, RetryableError, failure_from

Answer = TypeVar("Answer")
FIRST_PAUSE_SECONDS = 0.1
MAX_PAUSE_SECONDS = 5.0
ADMISSION_SECONDS = 5.0
"""A stream that is open for this long was admitted, even without an item; a refused one ends at once."""
BATCH_SIZE = 100
"""As many transitions as a watch takes in one message; a server that knows no batches sends one."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What every call carries, and how long it is tried."""

    project: str = "local"
    token: str = ""
    deadline_seconds: float = 20.0
    """The deadline of one try."""
    patience_seconds: float = 30.0
    """How long retryable failures are retried."""
    traceparent: str = ""

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """The metadata that common.proto documents."""
        pairs = [("pointsman-project", self.project)]
        if self.traceparent:
            pairs.append(("traceparent", self.traceparent))
        if self.token:
            pairs.append(("authorization", f"Bearer {self.token}"))
        return tuple(pairs)


def _all_of(item: Any) -> list[Transition]:
    """The transitions of one message of a watch, at least one."""
    return [item.transition, *item.more]


def new_request_id() -> str:
    """A new idempotency key."""
    return secrets.token_hex(16)


class Patience:
    """The back-off between tries, and when to give up."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.renew()

    def renew(self) -> None:
        """Resets after a success."""
        self._give_up_at = asyncio.get_running_loop().time() + self._seconds
        self._tries = 0

    async def wait_after(self, failure: CallFailed) -> None:
        """Waits before the next try, as long as the server says or with exponential back-off; or raises the failure."""
        pause = failure.retry_after_seconds
        if pause is None:
            longest = min(FIRST_PAUSE_SECONDS * 2.0**self._tries, MAX_PAUSE_SECONDS)
            pause = longest * (0.5 + secrets.randbelow(1000) / 2000)
        if not isinstance(failure, RetryableError) or asyncio.get_running_loop().time() + pause > self._give_up_at:
            raise failure
        self._tries += 1
        await asyncio.sleep(pause)


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls on one channel."""

    channel: grpc.aio.Channel
    terms: Terms = field(default_factory=Terms)

    async def call(
        self, method: Callable[..., Awaitable[Answer]], request: Any, deadline_seconds: float = 0.0
    ) -> Answer:
        """Calls until there is an answer; safe for mutations because every try carries the same request_id."""
        patience = Patience(self.terms.patience_seconds)
        timeout = deadline_seconds or self.terms.deadline_seconds
        while True:
            try:
                return await method(request, timeout=timeout, metadata=self.terms.metadata)
            except grpc.aio.AioRpcError as error:
                failure = failure_from(error)
            except CallFailed as failed:
                failure = failed
            await patience.wait_after(failure)

    async def mutate(self, method: Callable[..., Awaitable[Answer]], request: Any) -> Answer:
        """Calls a mutation; a request without a request_id is sent with a new one."""
        if not request.request_id:
            # A copy: the caller may send the same message again and means another mutation then.
            given, request = request, type(request)()
            request.CopyFrom(given)
            request.request_id = new_request_id()
        return await self.call(method, request)

    async def pages(self, method: Callable[..., Awaitable[Answer]], request: Any) -> AsyncIterator[Answer]:
        """Every page of a list; advances the request's page token."""
        while True:
            answer: Any = await self.call(method, request)
            yield answer
            if not answer.next_page_token:
                return
            request.page.page_token = answer.next_page_token

    async def watch_entity(self, method: Callable[..., Any], request: Any) -> AsyncIterator[Transition]:
        """The transitions of one entity after the request's `after_seq`, to its end."""

        def open_after(seq: int) -> Any:
            request.after_seq = seq
            return method(request, metadata=self.terms.metadata)

        request.batch_size = BATCH_SIZE
        async for item in self.stream(open_after, lambda item: int(_all_of(item)[-1].seq), request.after_seq):
            for transition in _all_of(item):
                yield transition

    async def watch_store(self, method: Callable[..., Any], request: Any) -> AsyncIterator[Transition]:
        """The transitions of all entities of the project after the request's `after_position`; it does not end."""

        def open_after(position: int) -> Any:
            request.after_position = position
            return method(request, metadata=self.terms.metadata)

        request.batch_size = BATCH_SIZE
        async for item in self.stream(open_after, lambda item: int(_all_of(item)[-1].position), request.after_position):
            for transition in _all_of(item):
                yield transition

    async def stream(
        self, open_after: Callable[[int], Any], place: Callable[[Any], int], after: int
    ) -> AsyncIterator[Any]:
        """A stream that resumes after its last item when it breaks, without gap or repeat.

        One that was admitted and ends UNAUTHENTICATED is opened again: its token ran out, and a new one may be in its file.
        """
        patience, now = Patience(self.terms.patience_seconds), asyncio.get_running_loop().time
        while True:
            admitted_at = now() + ADMISSION_SECONDS
            try:
                async for item in open_after(after):
                    after, admitted_at = place(item), now()
                    patience.renew()
                    yield item
            except grpc.aio.AioRpcError as error:
                failure = failure_from(error)
            else:
                return
            if failure.code is grpc.StatusCode.UNAUTHENTICATED and now() >= admitted_at:
                continue
            await patience.wait_after(failure)
