"""A real OTLP/gRPC collector on loopback that keeps what arrives."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc


class Collector(trace_service_pb2_grpc.TraceServiceServicer):
    """Keeps every span that is sent to it."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.endpoint = ""
        self.refuse = 0

    async def Export(self, request: Any, context: Any) -> Any:
        """Take a batch, unless the test wants a failure."""
        if self.refuse > 0:
            self.refuse -= 1
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "not now")
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                self.spans.extend(scope.spans)
        return trace_service_pb2.ExportTraceServiceResponse()

    def by_id(self) -> dict[str, Any]:
        """The spans by id; one that was sent twice is there once."""
        return {span.span_id.hex(): span for span in self.spans}


@asynccontextmanager
async def collector() -> AsyncIterator[Collector]:
    """A collector that listens until the end of the block."""
    server = grpc.aio.server()
    kept = Collector()
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(kept, server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port("127.0.0.1:0")
    kept.endpoint = f"127.0.0.1:{port}"
    await server.start()
    try:
        yield kept
    finally:
        await server.stop(None)
