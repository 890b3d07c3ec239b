"""Reads single fields of a foreign document, and collects every problem with its path."""

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TypeVar

from pointsman.services.chassis.core.errors import Violation

Member = TypeVar("Member", bound=StrEnum)


class Reader:
    """Reads values of an expected type; any other becomes a problem, and the default is used. `at` is the path prefix."""

    def __init__(self, root: str) -> None:
        self._root = root
        self.problems: list[Violation] = []

    def add_problem(self, path: str, message: str) -> None:
        """Adds a problem with its path."""
        self.problems.append(Violation(f"{self._root}.{path}", message))

    def text(self, section: Mapping[str, Any], name: str, default: str | None = "", at: str = "") -> str:
        """A text; null means the default; required if there is no default."""
        value = section.get(name)
        if isinstance(value, str):
            return value
        if value is not None or default is None:
            self.add_problem(f"{at}{name}", "must be a text")
        return default or ""

    def flag(self, section: Mapping[str, Any], name: str, default: bool | None, at: str = "") -> bool | None:
        """A boolean."""
        value = section.get(name)
        if isinstance(value, bool):
            return value
        if value is not None:
            self.add_problem(f"{at}{name}", "must be true or false")
        return default

    def number(self, section: Mapping[str, Any], name: str, default: int, at: str = "") -> int:
        """A whole number that is not negative."""
        value = section.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        if value is not None:
            self.add_problem(f"{at}{name}", "must be a whole number, 0 or more")
        return default

    def fraction(self, section: Mapping[str, Any], name: str, at: str = "") -> float:
        """A number from 0 to 1."""
        value = section.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1:
            return value
        if value is not None:
            self.add_problem(f"{at}{name}", "must be a number from 0 to 1")
        return 1.0

    def choice(
        self, section: Mapping[str, Any], name: str, kind: type[Member], default: Member | None, at: str = ""
    ) -> Member:
        """A member of an enum; required if there is no default."""
        value = section.get(name)
        if isinstance(value, str) and value in set(kind):
            return kind(value)
        if value is not None or default is None:
            self.add_problem(f"{at}{name}", f"must be one of {', '.join(kind)}")
        return default or next(iter(kind))

    def choices(self, section: Mapping[str, Any], name: str, kind: type[Member], at: str = "") -> tuple[Member, ...]:
        """A list of members of an enum."""
        found = self.texts(section, name, at)
        if unknown := [text for text in found if text not in set(kind)]:
            self.add_problem(f"{at}{name}", f"{unknown[0]!r} is unknown; takes {', '.join(kind)}")
        return tuple(kind(text) for text in found if text in set(kind))

    def moment(self, section: Mapping[str, Any], name: str, default: datetime, at: str = "") -> datetime:
        """An ISO 8601 time; UTC if it has no zone."""
        value = section.get(name)
        if value is None:
            return default
        try:
            read = datetime.fromisoformat(value)
        except (TypeError, ValueError):
            self.add_problem(f"{at}{name}", "must be an ISO 8601 time")
            return default
        return read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)

    def section(self, section: Mapping[str, Any], name: str, at: str = "") -> dict[str, Any]:
        """An object; empty if absent."""
        value = section.get(name)
        if isinstance(value, dict):
            return value
        if value is not None:
            self.add_problem(f"{at}{name}", "must be an object")
        return {}

    def items(self, section: Mapping[str, Any], name: str, at: str = "") -> list[Any]:
        """A list; empty if absent."""
        value = section.get(name)
        if isinstance(value, list):
            return value
        if value is not None:
            self.add_problem(f"{at}{name}", "must be a list")
        return []

    def texts(self, section: Mapping[str, Any], name: str, at: str = "") -> tuple[str, ...]:
        """A list of texts."""
        found = self.items(section, name, at)
        if any(not isinstance(item, str) for item in found):
            self.add_problem(f"{at}{name}", "must hold texts only")
        return tuple(item for item in found if isinstance(item, str))

    def sections(self, section: Mapping[str, Any], name: str, at: str = "") -> list[dict[str, Any]]:
        """A list of objects."""
        found = self.items(section, name, at)
        if any(not isinstance(item, dict) for item in found):
            self.add_problem(f"{at}{name}", "must hold objects only")
        return [item for item in found if isinstance(item, dict)]

    def optional_texts(self, section: Mapping[str, Any], name: str, at: str = "") -> dict[str, str | None]:
        """An object whose values are texts or null."""
        found = self.section(section, name, at)
        if any(value is not None and not isinstance(value, str) for value in found.values()):
            self.add_problem(f"{at}{name}", "must hold texts or null")
        return {key: value for key, value in found.items() if value is None or isinstance(value, str)}
