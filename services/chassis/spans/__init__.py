"""Transitions as OpenTelemetry spans, derived from the journal and exported by a separate process.

Owns: `follower` (reads the journal by position, under a lease), `transitions` (rows with what their spans need),
`transition_spans` (row to span), `exporter` (the client of the exporting process), `export_process`, `export_protocol`.
Invariant: span ids derive from (trace, entity, seq): a span is never lost with a killed process and never doubled by a re-send.
Never: delays a commit, or exports content.
"""
