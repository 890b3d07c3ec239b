"""The orchestrator's tables, step by step."""
