"""Isolation levels, from none to a container, and the settings that bound them."""

import os
from enum import IntEnum

MAX_LEVEL_SETTING = "POINTSMAN_SANDBOX_MAX_LEVEL"
"""The strongest level that is used; tests and people who debug force a lower one with it."""


class Level(IntEnum):
    """How strongly a command is isolated; compared by strength."""

    NONE = 0
    LANDLOCK = 1
    NAMESPACES = 2
    CONTAINER = 3

    def __str__(self) -> str:
        return self.name.lower()


class UnknownLevel(ValueError):
    """A text that names no isolation level."""


class TooWeak(Exception):
    """The machine cannot isolate as strongly as was required."""


def level_named(text: str) -> Level:
    """The level that a text names."""
    try:
        return Level[text.strip().upper()]
    except KeyError:
        names = ", ".join(map(str, Level))
        raise UnknownLevel(f"{text!r} is no isolation level; choose one of {names}") from None


def max_level() -> Level:
    """The strongest level that may be used, by setting."""
    return level_named(os.environ.get(MAX_LEVEL_SETTING) or Level.CONTAINER.name)
