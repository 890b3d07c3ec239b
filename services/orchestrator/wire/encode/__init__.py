"""Encodes domain values to protobuf answers and requests to peers."""

from pointsman.services.orchestrator.wire.encode import (
    agents,
    delivery,
    documents,
    evidence,
    landing,
    leases,
    machine,
    mocking,
    outputs,
    peers,
    runs,
    schedules,
    transitions,
)

__all__ = [
    "agents",
    "delivery",
    "documents",
    "evidence",
    "landing",
    "leases",
    "machine",
    "mocking",
    "outputs",
    "peers",
    "runs",
    "schedules",
    "transitions",
]
