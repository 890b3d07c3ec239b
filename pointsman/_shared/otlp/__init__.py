"""Spans as they leave a process, by the standard OTEL_ variables.

What they may say is in `names`, how they are put together in `span`, where they go in `sending`. What is noted while a
process works waits in a `queue`: a worker's `recorder` sends it from a thread, a service lets another process do it.
Only this file is imported before a collector is named: off is free.
"""

import hashlib
import os
from collections.abc import Mapping

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
EXPORTER = "OTEL_TRACES_EXPORTER"
GRPC, HTTP = "grpc", "http/protobuf"


def exports_spans(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the standard variables name a collector."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    chosen = environment.get(EXPORTER, "").strip().lower() or "otlp"
    if chosen not in ("otlp", "none"):
        raise SystemExit(f"pointsman: {EXPORTER}={chosen} is not known here; possible: otlp, none")
    return chosen == "otlp" and any(environment.get(name) for name in ENDPOINTS)


def protocol(environment: Mapping[str, str] = os.environ) -> str:
    """How the collector is spoken to: gRPC, unless the variables ask for HTTP."""
    chosen = next((environment[name] for name in PROTOCOLS if environment.get(name)), GRPC).strip().lower()
    if chosen not in (GRPC, HTTP):
        raise SystemExit(f"pointsman: {PROTOCOLS[1]}={chosen} is not spoken here; possible: {GRPC}, {HTTP}")
    return chosen


def derived_span_id(told: str) -> bytes:
    """A span id that is the same whenever it is asked for."""
    return hashlib.sha256(told.encode()).digest()[:8]
