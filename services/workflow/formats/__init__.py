"""Readers and writers of foreign formats: workflow-state.json, tasks.md, and the task files of other tools."""
