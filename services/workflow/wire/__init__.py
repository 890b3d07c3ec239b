"""Workflow messages to domain values and back. Pure: no clock, no store."""
