"""Reads what an agent prints as JSON lines: its words for people, its usage for the budget, its failures."""

import json
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from pointsman.usage.prices import cost_micros

MAX_LINE = 4 * 1024 * 1024
MAX_FAILURES = 400
MAX_SAID = 1_000_000


@dataclass(slots=True)
class Used:
    """What an agent used; a cost of None is unknown."""

    tokens: int = 0
    cost_micros: int | None = None
    model: str = ""

    @property
    def unpriced_tokens(self) -> int:
        """The tokens whose price nobody knows."""
        return self.tokens if self.cost_micros is None else 0


@dataclass(slots=True)
class AgentOutput:
    """One agent's output, read line by line as it comes; a format that is not named passes everything on as it is."""

    format: str
    show: Callable[[bytes], None]
    """Takes what people are to see."""
    failures: list[str] = field(default_factory=list)
    """Lines that report a failure, and lines that are no JSON."""
    _used: Used = field(default_factory=Used)
    _reported_micros: int = 0
    _said: bytearray = field(default_factory=bytearray)
    _pending: bytearray = field(default_factory=bytearray)

    def write(self, chunk: bytes) -> None:
        """Take what was printed."""
        self._pending += chunk
        *lines, rest = bytes(self._pending).split(b"\n")
        self._pending = bytearray(rest)
        for line in lines:
            self._line(line)
        if len(self._pending) > MAX_LINE:
            self.close()

    def close(self) -> None:
        """Take what is left as the last line."""
        if self._pending:
            line, self._pending = bytes(self._pending), bytearray()
            self._line(line)

    @property
    def said(self) -> bytes:
        """The agent's own words."""
        return bytes(self._said)

    @property
    def used(self) -> Used | None:
        """What it used; None where it reported nothing."""
        if not self._used.tokens:
            return None
        known = self._reported_micros or cost_micros(self._used.model, self._used.tokens)
        return Used(self._used.tokens, known, self._used.model)

    def _line(self, line: bytes) -> None:
        event = _event(line) if self.format else None
        if event is None:
            self.show(line + b"\n")
            self._keep(line.decode(errors="replace"))
            if not self.format:
                self._said += line + b"\n"
            return
        form, kind = _formats()[self.format], event.get("type", "")
        for text in _words(form, kind, event):
            self._said = (self._said + text.encode() + b"\n")[-MAX_SAID:]
            self.show(text.encode() + b"\n")
        if kind in form["errors"]:
            self._keep(line.decode(errors="replace"))
        if kind == form["usage"]["type"]:
            self._add(form["usage"], event)
        model = form.get("model", {})
        if kind == model.get("type"):
            self._used.model = next(iter(_at(event, model["keys"], keys=True)), self._used.model)

    def _add(self, form: dict[str, Any], event: dict[str, Any]) -> None:
        tokens = sum(_numbers(value) for path in form["tokens"] for value in _at(event, path))
        cost = sum(_numbers(value) for value in _at(event, form["cost"])) if "cost" in form else 0
        if form["take"] == "last":
            self._used.tokens, self._reported_micros = int(tokens), round(cost * 1_000_000)
        else:
            self._used.tokens += int(tokens)
            self._reported_micros += round(cost * 1_000_000)

    def _keep(self, line: str) -> None:
        if line.strip():
            self.failures.append(line)
            del self.failures[:-MAX_FAILURES]


@cache
def _formats() -> dict[str, Any]:
    with (Path(__file__).parent / "outputs.toml").open("rb") as file:
        return tomllib.load(file)


def formats() -> frozenset[str]:
    """The names of the formats that are known."""
    return frozenset(_formats())


def _event(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) and isinstance(found.get("type"), str) else None


def _words(form: dict[str, Any], kind: str, event: dict[str, Any]) -> Iterator[str]:
    """What the agent says in a line; a user's own words, which some repeat, are not its own."""
    path = form["said"].get(kind)
    if path is None or event.get("role") == "user":
        return
    yield from (value for value in _at(event, path) if isinstance(value, str))


def _at(value: Any, path: str, *, keys: bool = False) -> Iterator[Any]:
    """The values at a path of names; lists on the way are looked through."""
    name, _, rest = path.partition(".")
    for one in value if isinstance(value, list) else [value]:
        if not isinstance(one, dict) or name not in one:
            continue
        if rest:
            yield from _at(one[name], rest, keys=keys)
        elif keys:
            yield from one[name]
        else:
            yield one[name]


def _numbers(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else 0.0
