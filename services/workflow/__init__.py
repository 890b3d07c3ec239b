"""The workflow context: which tasks of an epic are next, what blocks them, and when the workflow pauses or ends.

Owns workflows (epics) with their tasks, dependencies, constraints, pauses, context usage and audits.

Invariants: a task is handed out to one caller at a time, never before its dependencies are completed or skipped and
its blockers unblocked; a workflow changes state along eleven transitions and no other; it never completes with failed
or blocked tasks, or with a hard constraint that is neither verified nor waived by name.

It never runs a command, opens a file that a caller names, calls another service, or holds in memory what a restart
would lose. The cost of a command does not grow with the number of tasks: the header has counters, tasks are child rows.
"""
