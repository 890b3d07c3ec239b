"""Export of OpenTelemetry spans, configured by the standard OTEL_ variables.

`names` lists the attributes, `span_record` holds plain values, `span` encodes them, `sender` sends them. Records wait in
a bounded `queue`: a worker's `recorder` sends them from a thread, a service passes them to its exporting process.
Only this file is imported unless a collector is configured: without one, tracing costs nothing.
"""

import hashlib
import os
from collections.abc import Mapping

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
EXPORTER = "OTEL_TRACES_EXPORTER"
GRPC, HTTP = "grpc", "http/protobuf"
OPT_IN, GENAI = "OTEL_SEMCONV_STABILITY_OPT_IN", "gen_ai_latest_experimental"


def exports_spans(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the standard variables name a collector."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    chosen = environment.get(EXPORTER, "").strip().lower() or "otlp"
    if chosen not in ("otlp", "none"):
        raise SystemExit(f"pointsman: {EXPORTER}={chosen} is not known here; possible: otlp, none")
    return chosen == "otlp" and any(environment.get(name) for name in ENDPOINTS)


def exports_genai(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the semantic conventions for generative AI, which are in development, are opted in to."""
    return GENAI in (word.strip() for word in environment.get(OPT_IN, "").split(","))


def protocol(environment: Mapping[str, str] = os.environ) -> str:
    """The OTLP protocol: gRPC, unless the variables ask for HTTP."""
    chosen = next((environment[name] for name in PROTOCOLS if environment.get(name)), GRPC).strip().lower()
    if chosen not in (GRPC, HTTP):
        raise SystemExit(f"pointsman: {PROTOCOLS[1]}={chosen} is not spoken here; possible: {GRPC}, {HTTP}")
    return chosen


def derived_span_id(seed: str) -> bytes:
    """The span id of a seed: the same seed gives the same id."""
    return hashlib.sha256(seed.encode()).digest()[:8]
