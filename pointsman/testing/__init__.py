"""Helpers for testing what is built on Pointsman."""
