"""The pipeline context: a task's stages, its barriers and retries, and what an agent may say at the end of a stage.

It owns pipelines (a DAG of stages with their delegations), the reports that stages leave for each other, and the
reflections that failed rounds leave behind. Always true: a stage is completed only by the delegation that is current,
and counted once; a barrier is resolved once; retries never pass their limit, so nothing loops for ever; what waits has
a timer or a person; a verdict that is a fallback is marked and never counts as proof.

It never calls another service, runs a command, opens a path that an agent named, or puts the text of a report into an
instruction.
"""
