"""The pipeline context: the stages of a task, their barriers and retries, and the routes that agents report.

It owns pipelines (a DAG of stages with their delegations), the reports that stages write for later stages, and the
reflections on failed rounds. Invariants: a stage is completed only by its current delegation, and once; a barrier is
resolved once; retries never exceed their limit, so every pipeline ends; every wait ends by a timer or a person; a
fallback verdict is marked and never counts as proof.

It never calls another service, runs a command, opens a path from an agent's text, or copies the text of a report into
a directive.
"""
