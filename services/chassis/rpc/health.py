"""The standard health service; it needs no credentials, so its watchers are limited."""

from typing import Any

import grpc
from grpc_health.v1.health import aio as health_aio

from pointsman.services.chassis.core.errors import invalid_field
from pointsman.services.chassis.rpc.admission import overloaded
from pointsman.services.chassis.rpc.status import abort

MAX_NAME = 256


class Health(health_aio.HealthServicer):  # type: ignore[misc] # the library has no types
    """Limits the number of watchers; they do not count as other streams."""

    def __init__(self, max_watchers: int) -> None:
        super().__init__()
        self._max_watchers = max_watchers
        self._watchers = 0

    async def Watch(self, request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> None:  # noqa: N802
        """Stream the state of a service and each change."""
        if len(request.service) > MAX_NAME:
            await abort(context, invalid_field("service", f"must be at most {MAX_NAME} characters"))
        if self._watchers >= self._max_watchers:
            await abort(context, overloaded(self._max_watchers))
        self._watchers += 1
        try:
            await super().Watch(request, context)
        finally:
            self._watchers -= 1
