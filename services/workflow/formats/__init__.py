"""workflow-state.json and tasks.md, read and written; rules stand in `domain`."""
