"""Recognises in what a failed agent printed that its model's provider refused because of a limit."""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cache
from pathlib import Path

NEAR_LINES = 12
"""How far from the line that says it the time of the reset may stand."""
WRAPPED_LINES = 3
"""How many lines before the last one of a message in plain text are read with it."""
MAX_LINE = 4000
MAX_LINES = 400


class LimitKind(StrEnum):
    """What kind of limit it is."""

    THROTTLED = "throttled"
    QUOTA = "quota"
    OVERLOADED = "overloaded"


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit, when it is over as far as was said, and the line that said so."""

    kind: LimitKind
    reset_at: datetime | None
    line: str


@dataclass(frozen=True, slots=True)
class _Rule:
    kind: LimitKind
    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class _Reset:
    unit: str
    pattern: re.Pattern[str]

    def read(self, text: str, now: datetime) -> datetime | None:
        """The time that a text names."""
        found = self.pattern.search(text)
        if found is None:
            return None
        if self.unit == "utc":
            return datetime.fromisoformat(f"{found[1]}T{found[2]}:00").replace(tzinfo=UTC)
        number = float(found[1])
        if self.unit == "epoch":
            return datetime.fromtimestamp(number, UTC)
        return now + timedelta(seconds=number if self.unit == "seconds" else number / 1000)


def limit_in(lines: Sequence[str], now: datetime) -> Limit | None:
    """The limit that the last such line reports; None where none does."""
    shown = [line[-MAX_LINE:] for line in lines[-MAX_LINES:]]
    for place in range(len(shown) - 1, -1, -1):
        kind = _kind_of(shown, place)
        if kind is not None:
            near = "\n".join((shown[place], *reversed(shown[max(0, place - NEAR_LINES) : place]), *shown[place + 1 :]))
            return Limit(kind, _reset_in(near, now), shown[place])
    return None


def _kind_of(lines: Sequence[str], place: int) -> LimitKind | None:
    """What a line reports; of plain text that says no more than "rate limited", the lines before it may say that a quota is used up."""
    line = lines[place]
    kind = _first_kind(line)
    if kind is not LimitKind.THROTTLED or line.startswith("{"):
        return kind
    whole = " ".join(" ".join(lines[max(0, place - WRAPPED_LINES) : place + 1]).split())
    return LimitKind.QUOTA if _first_kind(whole) is LimitKind.QUOTA else kind


def _first_kind(text: str) -> LimitKind | None:
    return next((rule.kind for rule in _rules() if rule.pattern.search(text)), None)


def _reset_in(text: str, now: datetime) -> datetime | None:
    for reset in _resets():
        if (found := reset.read(text, now)) is not None:
            return found
    return None


@cache
def _table() -> dict[str, list[dict[str, str]]]:
    with (Path(__file__).parent / "limits.toml").open("rb") as file:
        return tomllib.load(file)


@cache
def _rules() -> tuple[_Rule, ...]:
    return tuple(_Rule(LimitKind(one["kind"]), re.compile(one["pattern"])) for one in _table()["rule"])


@cache
def _resets() -> tuple[_Reset, ...]:
    return tuple(_Reset(one["unit"], re.compile(one["pattern"])) for one in _table()["reset"])
