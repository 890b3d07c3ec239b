"""Readers and writers of foreign formats: workflow-state.json and tasks.md."""
