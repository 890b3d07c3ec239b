"""What a process says about itself: metrics, log lines, trace context, and records of calls and commits for their spans.

Owns: `metrics` (every Prometheus metric, declared once), `logs` (structlog set-up), `context` (W3C trace context and span
ids that can be derived again), `call_records` and `recording` (what spans of calls and commits are made from).
Invariant: recording never blocks and never fails the work it records; content of requests never enters a span or a log.
Never: exports spans itself (that is `spans`), or knows a context.
"""
