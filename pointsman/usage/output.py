"""Reads what an agent prints as JSON lines: its words for people, its usage for the budget, its failures."""

import json
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from pointsman.usage.prices import cost_micros

MAX_LINE = 4 * 1024 * 1024
MAX_FAILURES = 400
MAX_SAID = 1_000_000
MAX_TOOL_CALLS = 1000


@dataclass(slots=True)
class Used:
    """What an agent used; a cost of None is unknown."""

    input_tokens: int = 0
    output_tokens: int = 0
    undivided_tokens: int = 0
    """Tokens of prompts and answers, where the agent reports only their sum."""
    cost_micros: int | None = None
    model: str = ""

    @property
    def tokens(self) -> int:
        """All of them."""
        return self.input_tokens + self.output_tokens + self.undivided_tokens

    @property
    def unpriced_tokens(self) -> int:
        """The tokens whose price nobody knows."""
        return self.tokens if self.cost_micros is None else 0


@dataclass(slots=True)
class ToolCall:
    """A call of a tool by an agent, as it reports it; never what was called with."""

    id: str
    kind: str
    begin_ns: int
    end_ns: int = 0
    failed: bool = False


@dataclass(slots=True)
class AgentOutput:
    """One agent's output, read line by line as it comes; a format that is not named passes everything on as it is."""

    format: str
    show: Callable[[bytes], None]
    """Takes what people are to see."""
    now_ns: Callable[[], int] = time.time_ns
    on_event: Callable[[dict[str, Any]], None] = lambda _event: None
    """Takes every line that is an event."""
    failures: list[str] = field(default_factory=list)
    """Lines that report a failure, and lines that are no JSON."""
    tool_calls: dict[str, ToolCall] = field(default_factory=dict)
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
        used = self._used
        listed = cost_micros(used.model, used.input_tokens, used.output_tokens, used.undivided_tokens)
        return replace(used, cost_micros=self._reported_micros or listed)

    def _line(self, line: bytes) -> None:
        event = _event(line) if self.format else None
        if event is None:
            self.show(line + b"\n")
            self._keep(line.decode(errors="replace"))
            if not self.format:
                self._said += line + b"\n"
            return
        self.on_event(event)
        form, kind = _formats()[self.format], event.get("type", "")
        for text in _words(form, kind, event):
            self._said = (self._said + text.encode() + b"\n")[-MAX_SAID:]
            self.show(text.encode() + b"\n")
        if kind in form["errors"]:
            self._keep(line.decode(errors="replace"))
        if kind == form["usage"]["type"]:
            self._add(form["usage"], event)
        if "tools" in form:
            self._follow_tool(form["tools"], kind, event)
        model = form.get("model", {})
        if kind == model.get("type"):
            self._used.model = next(iter(_at(event, model["keys"], keys=True)), self._used.model)

    def _add(self, form: dict[str, Any], event: dict[str, Any]) -> None:
        cost = sum(_numbers(value) for value in _at(event, form["cost"])) if "cost" in form else 0
        used = self._used
        if form["take"] == "last":
            used.input_tokens = used.output_tokens = used.undivided_tokens = self._reported_micros = 0
        used.input_tokens += _tokens(event, form.get("input", ()))
        used.output_tokens += _tokens(event, form.get("output", ()))
        used.undivided_tokens += _tokens(event, form.get("both", ()))
        self._reported_micros += round(cost * 1_000_000)

    def _follow_tool(self, form: dict[str, str], kind: str, event: dict[str, Any]) -> None:
        name = str(event.get(form["id"], ""))
        if kind == form["begin"] and name not in self.tool_calls and len(self.tool_calls) < MAX_TOOL_CALLS:
            self.tool_calls[name] = ToolCall(name, str(event.get(form["kind"], "")), self.now_ns())
        elif kind == form["end"] and (call := self.tool_calls.get(name)) is not None:
            call.end_ns, call.failed = self.now_ns(), event.get(form["status"]) == form["failed"]

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


def _tokens(event: dict[str, Any], paths: Sequence[str]) -> int:
    return int(sum(_numbers(value) for path in paths for value in _at(event, path)))


def _numbers(value: Any) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else 0.0
