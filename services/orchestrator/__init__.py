"""Orchestrator."""
