"""A file of tasks in any format, as read: tasks, the place of each for messages, and problems."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pointsman.services.chassis.core.errors import Violation
from pointsman.services.workflow.domain.commands import PlannedTask

MAX_NAME = 500
MAX_REQUIREMENT = 4000
MAX_ACTION = 2000
MAX_PROBLEMS = 100


@dataclass(frozen=True, slots=True)
class TasksFile:
    """A file of tasks as read."""

    tasks: tuple[PlannedTask, ...]
    places: tuple[str, ...]
    problems: tuple[Violation, ...]
    from_tracker: bool = False
    """Whether anybody who may write to a tracker wrote its texts: they are untrusted up to the prompt."""


@dataclass(slots=True)
class Problems:
    """Everything that is wrong with a file, each with its line."""

    found: list[Violation] = field(default_factory=list)

    def add(self, line: int, message: str) -> None:
        """Add a problem; a hundred are enough to begin with."""
        if len(self.found) < MAX_PROBLEMS:
            self.found.append(Violation(f"markdown:{line}", f"line {line}: {message}"))


def text_of(record: Mapping[str, Any], name: str) -> str:
    """A text field of a JSON record; empty if it is missing or null."""
    value = record.get(name)
    return value.strip() if isinstance(value, str) else ""


def records_of(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a list, or of a GraphQL connection (`{"nodes": […]}`); anything else has none."""
    listed = value.get("nodes") if isinstance(value, Mapping) else value
    return [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []


def split_text(text: str) -> tuple[str, tuple[str, ...]]:
    """A long text as a requirement and, for what does not fit there, as actions; nothing is cut off."""
    rest = text[MAX_REQUIREMENT:]
    return text[:MAX_REQUIREMENT], tuple(rest[at : at + MAX_ACTION] for at in range(0, len(rest), MAX_ACTION))


def unique(ids: Iterable[str]) -> tuple[str, ...]:
    """The ids without repetition, in order."""
    return tuple(dict.fromkeys(ids))
