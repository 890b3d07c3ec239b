"""Calls before they are read: what cannot wait has a queue of its own, and what is too much is turned away unread."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import grpc
from google.protobuf.descriptor import MethodDescriptor

from pointsman.api.common.v1 import common_pb2
from pointsman.services.chassis.core.errors import Reason, Refusal
from pointsman.services.chassis.rpc.status import DETAILS_KEY, GRPC_CODES, status_of
from pointsman.services.chassis.telemetry import metrics

RETRY_SECONDS = 0.5


class MethodLimit(NamedTuple):
    """Where calls of a method go."""

    handler: Any
    beside: Collection[Any]
    """The calls that they are counted with."""
    limit: int


class AdmissionHandler(grpc.GenericRpcHandler):
    """Knows the handler of each method of a service."""

    def __init__(self, places: Mapping[str, MethodLimit]) -> None:
        self._places = places
        self._away = {name: _rejecting_handler(name, place.limit) for name, place in places.items()}

    def service(self, handler_call_details: Any) -> Any:
        """Who takes the call; while there are too many of its kind, one who refuses it without reading its request."""
        place = self._places.get(handler_call_details.method)
        if place is None:
            return None
        return place.handler if len(place.beside) < place.limit else self._away[handler_call_details.method]


def is_urgent(method: MethodDescriptor) -> bool:
    """Whether the proto marks the RPC as urgent: gRPC keeps a queue for each such RPC, beside the one for all others."""
    return bool(method.GetOptions().Extensions[common_pb2.urgent])


def overloaded(limit: int) -> Refusal:
    """The one answer to a call too many."""
    return Refusal(
        Reason.OVERLOADED,
        "too many calls at once; try again",
        metadata={"limit": str(limit)},
        retry_after_seconds=RETRY_SECONDS,
    )


def _rejecting_handler(name: str, limit: int) -> Any:
    refusal, took = overloaded(limit), metrics.CallTimes(name)
    status = status_of(refusal)
    metadata = ((DETAILS_KEY, status.SerializeToString()),)

    async def handle(_requests: Any, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        took.observe(refusal.code, 0.0)
        await context.abort(GRPC_CODES[refusal.code], status.message, metadata)

    return grpc.stream_stream_rpc_method_handler(handle)
