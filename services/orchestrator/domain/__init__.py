"""The orchestrator's domain: a table of transitions, and what happens on the way. Pure."""
