"""Admission: refuses calls over the limit before their request is read, and gives urgent RPCs their own queue."""

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, NamedTuple

import grpc
from google.protobuf.descriptor import MethodDescriptor

from pointsman.api.common.v1 import common_pb2
from pointsman.services.chassis.core.errors import Code, Reason, Refusal
from pointsman.services.chassis.rpc.status import DETAILS_KEY, GRPC_CODES, status_of
from pointsman.services.chassis.telemetry import metrics

RETRY_SECONDS = 0.5


class MethodLimit(NamedTuple):
    """The handler of a method and the limit of its calls."""

    handler: Any
    in_flight: Collection[Any]
    """The calls that count against the limit."""
    limit: int


class AdmissionHandler(grpc.GenericRpcHandler):
    """Passes a call to the handler of its method, or rejects it while the method is at its limit."""

    def __init__(self, methods: Mapping[str, MethodLimit]) -> None:
        self._methods = methods
        self._rejecting = {name: _rejecting_handler(name, method.limit) for name, method in methods.items()}

    def service(self, handler_call_details: Any) -> Any:
        """The handler of a call; at the limit, one that refuses the call without reading its request."""
        method = self._methods.get(handler_call_details.method)
        if method is None:
            return None
        return method.handler if len(method.in_flight) < method.limit else self._rejecting[handler_call_details.method]


def is_urgent(method: MethodDescriptor) -> bool:
    """Whether the proto marks the RPC as urgent: gRPC keeps a queue for each such RPC, beside the one for all others."""
    return bool(method.GetOptions().Extensions[common_pb2.urgent])


def overloaded(limit: int) -> Refusal:
    """The refusal of a call over the limit."""
    return Refusal(
        Reason.OVERLOADED,
        "too many calls at once; try again",
        metadata={"limit": str(limit)},
        retry_after_seconds=RETRY_SECONDS,
    )


def _rejecting_handler(name: str, limit: int) -> Any:
    call_times = metrics.CallTimes(name)

    async def handle(_requests: Any, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        code, message, metadata = _rejection(limit)
        call_times.observe(code, 0.0)
        await context.abort(GRPC_CODES[code], message, metadata)

    return grpc.stream_stream_rpc_method_handler(handle)


@cache
def _rejection(limit: int) -> tuple[Code, str, tuple[tuple[str, bytes], ...]]:
    """How a call over the limit ends, encoded once: there are many of them when there is little time."""
    refusal = overloaded(limit)
    status = status_of(refusal)
    return refusal.code, status.message, ((DETAILS_KEY, status.SerializeToString()),)
