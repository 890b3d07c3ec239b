"""Fifty branches through real services: what is lost, landed twice, unproven, and named before the hand-in."""
