"""The client of the Agent Client Protocol that runs an agent for one assignment (the extra `pointsman[acp]`).

It runs inside the sandbox of the assignment, beside the agent: whatever file or terminal the agent asks it for is
within the same containment as the agent itself. What the agent says, does and uses it prints as JSON lines, which the
worker reads like the output of any other agent (`acp-json` in pointsman/usage/outputs.toml).
"""
