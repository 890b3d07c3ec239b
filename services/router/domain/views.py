"""Queries over stored decisions and their results."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Filter:
    """Which decisions to list."""

    mode: str = ""
    run_id: str = ""
    task_id: str = ""
    start: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True, slots=True)
class Stats:
    """Counts of decisions in a time window."""

    decisions: int
    answers: int
    actions: int
    strong: int
    weak: int
    fast_paths: int
    debates: int
    overrides: int
    clarifications: int
