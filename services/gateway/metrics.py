"""Prometheus metrics of the gateway."""

from prometheus_client import Counter, Gauge

from pointsman.services.chassis.telemetry.metrics import declare

http_requests = declare(
    Counter("pointsman_http_requests", "Requests that the gateway answered, by HTTP status.", ("status",)), "requests"
)
event_streams = declare(Gauge("pointsman_event_streams", "Event streams that the gateway holds open."), "streams")
