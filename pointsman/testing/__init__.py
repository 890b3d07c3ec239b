"""Agents that need no model: for trying Pointsman out, and for testing what is built on it."""
