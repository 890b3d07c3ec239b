"""Decodes protobuf requests and peers' answers to domain values."""

from pointsman.services.orchestrator.wire.decode import (
    documents,
    landing,
    mocking,
    outputs,
    peers,
    results,
    runs,
    schedules,
)

__all__ = ["documents", "landing", "mocking", "outputs", "peers", "results", "runs", "schedules"]
