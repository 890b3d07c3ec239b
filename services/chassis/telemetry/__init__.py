"""Metrics, logs, trace context, and records of calls and commits for their spans.

Owns: `metrics` (the Prometheus metrics of every service), `logs` (structlog set-up), `context` (W3C trace context and
derived span ids), `recording` (records of calls and commits).
Invariant: recording never blocks and never fails the work it records; content of requests never enters a span or a log.
Never: exports spans itself (that is `spans`), or knows a context.
"""
