"""The gRPC server of every service: admission, validation, authentication, errors and drain of all RPCs."""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from pointsman.credentials.channel import UNIX
from pointsman.credentials.folder import CredentialFolder
from pointsman.services.chassis.core.caller import ENGINE_REQUESTS, Caller
from pointsman.services.chassis.core.config import ServerSettings
from pointsman.services.chassis.core.errors import Reason, Refusal, invalid_field
from pointsman.services.chassis.core.ids import new_nonce
from pointsman.services.chassis.rpc.admission import AdmissionHandler, MethodLimit, is_urgent, overloaded
from pointsman.services.chassis.rpc.authentication import Access, MethodAccess, method_access, server_credentials
from pointsman.services.chassis.rpc.health import Health
from pointsman.services.chassis.rpc.in_process import InProcessContext, Metadata
from pointsman.services.chassis.rpc.status import abort, internal_error
from pointsman.services.chassis.rpc.stream_rights import Right, Rights
from pointsman.services.chassis.rpc.validation import Malformed, deserializer, read_metadata, validate
from pointsman.services.chassis.telemetry import metrics
from pointsman.services.chassis.telemetry.context import current_request, current_traceparent

MAX_PENDING = 4_000
"""Calls that gRPC queues for the handlers; it cancels more than these without a retry time. Its default is 1,000."""
STALL_SECONDS = 30.0
"""How long the caller of a stream may leave a message unread before the stream ends."""
URGENT_FACTOR = 2
"""The in-flight limit of urgent calls, as a multiple of the limit of all others."""


@dataclass(frozen=True, slots=True)
class _Method:
    """One RPC: its full name, the servicer's method, and what its descriptor says."""

    name: str
    handler: Callable[..., Any]
    serialize: Callable[[Any], bytes]
    has_request_id: bool
    position_field: str
    """The field of a streamed message that a stream resumes after: `seq` or `position`."""
    waits: bool
    """Whether it is a long poll (its request has a field `wait`): a drain ends it at once."""
    access: MethodAccess
    in_flight: Collection[Any]
    """The calls that count against its limit: unary calls, long polls, uploads or streams."""
    limit: int
    """How many of these may be in flight before a call is refused as OVERLOADED."""
    call_times: metrics.CallTimes


class Server:
    """Listens, and passes admitted calls to servicers as `method(request, caller)`."""

    def __init__(self, settings: ServerSettings, credentials: CredentialFolder | None = None) -> None:
        """Serve callers with the credentials of a data directory, with those that the settings name, or without any."""
        self._settings = settings
        self._credentials = credentials
        self._access = Access(settings, credentials)
        self.rights = Rights(self._access)
        self._server = grpc.aio.server(options=_options(settings))
        self._health = Health(settings.max_health_watchers)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        self._names: list[str] = []
        self._unary_methods: dict[str, tuple[_Method, Callable[[bytes], Message | Malformed]]] = {}
        self._calls: dict[asyncio.Task[Any] | None, float] = {}
        self._waiting: dict[asyncio.Task[Any] | None, float] = {}
        self._overdue: set[asyncio.Task[Any] | None] = set()
        self._streams: set[asyncio.Task[Any] | None] = set()
        self._revoked: dict[asyncio.Task[Any] | None, Refusal] = {}
        """Streams whose caller has lost its right, with the refusal that ends them."""
        self._uploads: set[asyncio.Task[Any] | None] = set()
        self._draining = False

    def add(self, descriptor: ServiceDescriptor, servicer: object) -> None:
        """Serve every RPC of a service; a method that the servicer lacks answers UNIMPLEMENTED."""
        methods = {method.name: method for method in descriptor.methods}
        handlers = {name: self._handler(descriptor, method, servicer) for name, method in methods.items()}
        limits = {name: MethodLimit(handlers[name], *self._limit_of(method)) for name, method in methods.items()}
        admission = AdmissionHandler({f"/{descriptor.full_name}/{name}": limit for name, limit in limits.items()})
        self._server.add_generic_rpc_handlers((admission,))
        self._server.add_registered_method_handlers(
            descriptor.full_name, {name: handlers[name] for name, method in methods.items() if is_urgent(method)}
        )
        self._names.append(descriptor.full_name)

    def listen(self) -> int:
        """Bind the address; returns the port, also if the system has chosen it."""
        self._settings.check_exposure()
        credentials = server_credentials(self._settings, self._credentials)
        try:
            if credentials is not None:
                return self._server.add_secure_port(self._settings.address, credentials)
            return self._server.add_insecure_port(self._settings.address)
        except RuntimeError:
            raise OSError(f"cannot listen on {self._settings.address}; is another process there?") from None

    def listen_on_socket(self, path: Path) -> str:
        """Bind a Unix socket, besides the port; returns its address."""
        address = f"{UNIX}{path}"
        try:
            self._server.add_insecure_port(address)
        except RuntimeError:
            raise OSError(f"cannot listen on {address}") from None
        return address

    async def start(self) -> None:
        """Start serving."""
        if self._settings.reflection:
            names = (*self._names, health_pb2.DESCRIPTOR.services_by_name["Health"].full_name, reflection.SERVICE_NAME)
            reflection.enable_server_reflection(names, self._server)
        await self._server.start()
        for name in ("", *self._names):
            await self._health.set(name, health_pb2.HealthCheckResponse.SERVING)

    async def end_overdue_calls(self) -> None:
        """A loop: cancel calls that exceed the deadline cap; cheaper than a timer for each call."""
        while True:
            await asyncio.sleep(min(1.0, self._settings.deadline_cap_seconds / 4))
            latest = time.monotonic() - self._settings.deadline_cap_seconds
            for task, begun in (*self._calls.items(), *self._waiting.items()):
                if begun < latest and task is not None and task not in self._overdue:
                    self._overdue.add(task)
                    task.cancel()

    async def drain(self) -> None:
        """Refuse new calls, end streams and long polls with UNAVAILABLE, and wait for calls in flight."""
        self._draining = True
        await self._health.enter_graceful_shutdown()
        for task in (*self._streams, *self._waiting):
            if task is not None:
                task.cancel()
        await self._server.stop(self._settings.drain_seconds)

    def _handler(self, service: ServiceDescriptor, method: MethodDescriptor, servicer: object) -> Any:
        name = f"/{service.full_name}/{method.name}"
        missing = _unimplemented_stream if method.server_streaming else _unimplemented
        fields = method.input_type.fields_by_name
        bound = _Method(
            name,
            getattr(servicer, method.name, None) or missing(name),
            GetMessageClass(method.output_type).SerializeToString,
            "request_id" in fields,
            "position" if "after_position" in fields else "seq",
            "wait" in fields,
            method_access(name, method),
            *self._limit_of(method),
            metrics.CallTimes(name),
        )
        read = deserializer(GetMessageClass(method.input_type))
        if method.client_streaming:
            return grpc.stream_unary_rpc_method_handler(self._upload(bound), read)
        if method.server_streaming:
            return grpc.unary_stream_rpc_method_handler(self._stream(bound), read)
        self._unary_methods[name] = (bound, read)
        return grpc.unary_unary_rpc_method_handler(self._unary(bound), read)

    async def call(self, name: str, request: bytes, metadata: Metadata) -> bytes:
        """Answer a unary call of a service of this process; in a task of its own, as gRPC does."""
        method, read = self._unary_methods[name]
        return await asyncio.create_task(self._answer(method, read(request), InProcessContext(metadata)))

    def _limit_of(self, method: MethodDescriptor) -> tuple[Collection[Any], int]:
        """The calls that count against the limit of a method, and the limit."""
        if method.server_streaming:
            return self._streams, self._settings.max_streams
        if method.client_streaming:
            return self._uploads, self._settings.max_uploads
        if "wait" in method.input_type.fields_by_name:
            return self._waiting, self._settings.max_streams
        return self._calls, self._settings.max_in_flight * (URGENT_FACTOR if is_urgent(method) else 1)

    def _unary(self, method: _Method) -> Callable[..., Any]:
        async def handle(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
            try:
                return await self._answer(method, request, context)
            except Refusal as refusal:
                await abort(context, refusal)

        return handle

    async def _answer(self, method: _Method, request: Any, context: Any) -> bytes:
        """Handle one call: the serialized answer, or a Refusal for any failure."""
        calls = self._waiting if method.waits else self._calls
        task = asyncio.current_task()
        begun = calls[task] = time.monotonic()
        code = "CANCELLED"
        try:
            caller = self._admit(method, request, context)
            answer = method.serialize(await method.handler(request, caller))
            code = "OK"
        except asyncio.CancelledError:
            refusal = self._cancellation_refusal(task)
            if refusal is None:
                raise
            code = refusal.code
            raise refusal from None
        except Exception as error:  # noqa: BLE001 - the one place where every failure becomes a status
            refusal = _refusal_for(error)
            code = refusal.code
            raise refusal from None
        else:
            return answer
        finally:
            del calls[task]
            self._overdue.discard(task)
            method.call_times.observe(code, time.monotonic() - begun)

    def _cancellation_refusal(self, task: "asyncio.Task[Any] | None") -> Refusal | None:
        """The refusal for a call that the server has cancelled; None if the caller has."""
        if task in self._overdue:
            return _deadline_exceeded()
        return _shutting_down() if self._draining else None

    def _stream(self, method: _Method) -> Callable[..., Any]:
        async def handle(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> None:
            task = asyncio.current_task()
            self._streams.add(task)
            begun, code = time.monotonic(), "CANCELLED"
            try:
                caller = self._admit(method, request, context)
                with self._hold_right(method, caller, context):
                    await _send_all(method, request, caller, context)
                code = "OK"
            except asyncio.CancelledError:
                ended = self._revoked.get(task) or self._cancellation_refusal(task)
                if ended is None:
                    raise
                code = ended.code
                await abort(context, ended)
            except Exception as error:  # noqa: BLE001 - as for unary calls
                refusal = _refusal_for(error)
                code = refusal.code
                await abort(context, refusal)
            finally:
                self._streams.discard(task)
                self._revoked.pop(task, None)
                method.call_times.observe(code, time.monotonic() - begun)

        return handle

    def _hold_right(self, method: _Method, caller: Caller, context: Any) -> AbstractContextManager[None]:
        """A context in which the stream of the current task ends when its caller loses its right."""
        task = asyncio.current_task()
        assert task is not None

        def end(refusal: Refusal) -> None:
            self._revoked[task] = refusal
            task.cancel()

        return self.rights.hold(Right(context, context.invocation_metadata(), caller.project, method.access), end)

    def _upload(self, method: _Method) -> Callable[..., Any]:
        async def handle(requests: AsyncIterator[Any], context: grpc.aio.ServicerContext[Any, Any]) -> Any:
            task = asyncio.current_task()
            self._uploads.add(task)
            begun, code = time.monotonic(), "CANCELLED"
            try:
                caller = self._admit(method, None, context)
                async with asyncio.timeout(self._settings.deadline_cap_seconds):
                    answer = method.serialize(await method.handler(_valid(requests), caller))
                code = "OK"
            except Exception as error:  # noqa: BLE001 - as for unary calls
                refusal = _refusal_for(error)
                code = refusal.code
                await abort(context, refusal)
            else:
                return answer
            finally:
                self._uploads.discard(task)
                method.call_times.observe(code, time.monotonic() - begun)

        return handle

    def _admit(self, method: _Method, request: Message | Malformed | None, context: Any) -> Caller:
        """Admit a call: check drain, limits, credentials, role, project and request; the caller for the servicer."""
        if self._draining:
            raise _shutting_down()
        if len(method.in_flight) > method.limit:
            raise overloaded(method.limit)
        metadata = context.invocation_metadata()
        project, traceparent = read_metadata(metadata)
        current_traceparent.set(traceparent)
        current_request.set(request)
        grant = self._access.authenticate(context, metadata)
        self._access.authorize(grant, project, method.access)
        caller = Caller(
            grant.name,
            project,
            grant.roles,
            traceparent,
            capabilities=grant.capabilities,
            projects=grant.projects,
        )
        if request is None:
            return caller
        valid = validate(request, method.name)
        if not method.has_request_id:
            return caller
        if valid.request_id.startswith(ENGINE_REQUESTS):
            raise invalid_field("request_id", f"must not begin with '{ENGINE_REQUESTS}'")
        body = method.name.encode() + valid.SerializeToString(deterministic=True)
        fingerprint = hashlib.blake2b(body, digest_size=16).hexdigest()
        return replace(caller, request_id=valid.request_id, fingerprint=fingerprint)


async def _send_all(method: _Method, request: Any, caller: Caller, context: grpc.aio.ServicerContext[Any, Any]) -> None:
    """Send a stream with flow control; a client that stops reading is refused with the position to resume after."""
    after = getattr(request, f"after_{method.position_field}", 0)
    async for response in method.handler(request, caller):
        try:
            async with asyncio.timeout(STALL_SECONDS):
                await context.write(method.serialize(response))
        except TimeoutError:
            raise _too_slow(after) from None
        after = getattr(_last_of(response), method.position_field, after)


def _last_of(response: Any) -> Any:
    """What a stream resumes after: the last transition of a message, or the message itself."""
    more = getattr(response, "more", None)
    return more[-1] if more else getattr(response, "transition", response)


async def _valid(requests: AsyncIterator[Any]) -> AsyncIterator[Message]:
    async for request in requests:
        yield validate(request, "stream")


def _refusal_for(error: Exception) -> Refusal:
    if isinstance(error, Refusal):
        return error
    if isinstance(error, TimeoutError):
        return _deadline_exceeded()
    return internal_error(error, new_nonce())


def _unimplemented(name: str) -> Callable[..., Any]:
    async def handler(_request: Any, _caller: Caller) -> Any:
        raise Refusal(Reason.UNIMPLEMENTED, f"{name} is not offered here", metadata={"method": name})

    return handler


def _unimplemented_stream(name: str) -> Callable[..., Any]:
    async def handler(request: Any, caller: Caller) -> AsyncIterator[Any]:
        yield await _unimplemented(name)(request, caller)

    return handler


def _deadline_exceeded() -> Refusal:
    return Refusal(Reason.DEADLINE_EXCEEDED, "the call took too long; ask again with the same request_id")


def _shutting_down() -> Refusal:
    return Refusal(Reason.UNAVAILABLE, "the service is stopping; try again", retry_after_seconds=0.5)


def _too_slow(after: int) -> Refusal:
    return Refusal(
        Reason.WATCHER_TOO_SLOW, "read faster, or resume after the last one you have", metadata={"after": str(after)}
    )


def _options(settings: ServerSettings) -> list[tuple[str, int]]:
    return [
        ("grpc.max_receive_message_length", settings.max_message_bytes),
        ("grpc.max_send_message_length", settings.max_message_bytes * 4),
        ("grpc.max_metadata_size", settings.max_metadata_bytes),
        ("grpc.absolute_max_metadata_size", settings.max_metadata_bytes),
        ("grpc.so_reuseport", 0),
        ("grpc.server.max_pending_requests", MAX_PENDING),
        ("grpc.server.max_pending_requests_hard_limit", MAX_PENDING),
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
        ("grpc.keepalive_permit_without_calls", 1),
    ]
