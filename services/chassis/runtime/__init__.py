"""Puts the rooms together: one service as a process runs it, several services in one process, and their housekeeping.

Owns: `service` (Service, start, serve_until_stopped), `housekeeping` (clock, retention of answers, gauges, spans).
Invariant: a stopping process drains its calls before its store closes; a loop that fails is logged and started again.
Never: contains rules; it only wires.
"""
