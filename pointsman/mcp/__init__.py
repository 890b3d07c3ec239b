"""Pointsman for clients of the Model Context Protocol: runs as tools, tasks and resources (the extra `pointsman[mcp]`).

A run is the durable handle: a task of the Tasks extension has the run's id, its questions are elicitation, and nothing
is stored here. What an agent or another person wrote is marked as such in every result.
"""
