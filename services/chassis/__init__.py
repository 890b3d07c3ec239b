"""Chassis."""
