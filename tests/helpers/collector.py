"""A real OTLP collector on loopback, over gRPC and over HTTP, that keeps what arrives."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, TypeVar

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """Keeps every span that is sent to it."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.resources: list[dict[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self.endpoint = ""
        self.refuse = 0

    async def Export(self, request: Any, context: Any) -> Any:
        """Take a batch, unless the test wants a failure."""
        if self.refuse > 0:
            self.refuse -= 1
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "not now")
        self.headers.append({key: str(value) for key, value in context.invocation_metadata()})
        self.keep(request)
        return trace_service_pb2.ExportTraceServiceResponse()

    def keep(self, request: Any) -> None:
        """Take a batch."""
        for resource in request.resource_spans:
            self.resources.append(values_of(resource.resource))
            for scope in resource.scope_spans:
                self.spans.extend(scope.spans)

    def by_id(self) -> dict[str, Any]:
        """The spans by id; one that was sent twice is there once."""
        return {span.span_id.hex(): span for span in self.spans}

    def of_trace(self, trace_id: str) -> dict[str, Any]:
        """The spans of one trace, by id."""
        return {key: span for key, span in self.by_id().items() if span.trace_id.hex() == trace_id}


Kept = TypeVar("Kept", bound=Collector)


def values_of(holder: Any) -> dict[str, str]:
    """The attributes of a span or a resource, as text."""
    return {
        pair.key: pair.value.string_value if pair.value.HasField("string_value") else str(pair.value.int_value)
        for pair in holder.attributes
    }


def collector() -> AbstractAsyncContextManager[Collector]:
    """A collector that listens for gRPC until the end of the block."""
    return listening(Collector())


@asynccontextmanager
async def listening(kept: Kept) -> AsyncIterator[Kept]:
    """The same with a collector of one's own."""
    server = grpc.aio.server()
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(kept, server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port("127.0.0.1:0")
    kept.endpoint = f"127.0.0.1:{port}"
    await server.start()
    try:
        yield kept
    finally:
        await server.stop(None)


@asynccontextmanager
async def http_collector() -> AsyncIterator[Collector]:
    """A collector that listens for HTTP until the end of the block."""
    kept = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            kept.headers.append({key.lower(): value for key, value in self.headers.items()} | {"path": self.path})
            plain = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
            kept.keep(trace_service_pb2.ExportTraceServiceRequest.FromString(plain))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_arguments: object) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    kept.endpoint = f"127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield kept
    finally:
        await asyncio.to_thread(server.shutdown)
        server.server_close()
        thread.join()
