"""Tells a person that a run asks: by webhook, Slack, ntfy or a command of the desktop; off until asked for.

The journal is followed from a place that is stored in a file and moved on only after a notice was taken: after a crash a
notice may come again, with the same id, and none is missed.
"""
