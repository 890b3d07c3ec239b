"""What stands in a text whatever its language: references to files, web and code, shapes of code, marks of programs."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import re2

from pointsman.services.router.domain.document import RuleProblem
from pointsman.services.router.domain.references import References, find_references
from pointsman.services.router.domain.values import Trigger, TriggerKind

MASK = "\x01"
_FENCE = "reference.fence"
_AT_HAND = "reference.at_hand"
_SET_MEMORY_BYTES = 64 << 20
_FENCE_MARK = re.compile(r"```|~~~")


@dataclass(frozen=True, slots=True)
class PatternSet:
    """Expressions that are tried together in one pass, in linear time."""

    names: tuple[str, ...]
    expressions: Mapping[str, Any]
    together: Any

    def matching(self, text: str) -> list[str]:
        """The names of the expressions that match somewhere in the text."""
        hits = self.together.Match(text)
        if not hits:
            return []
        names = self.names
        return [names[hit] for hit in hits]


def pattern_set(patterns: Mapping[str, str]) -> PatternSet:
    """Compile expressions; one that RE2 does not take is refused by its name."""
    options = re2.Options()
    options.max_mem = _SET_MEMORY_BYTES
    together = re2.Set.SearchSet(options)
    compiled: dict[str, Any] = {}
    for name, pattern in patterns.items():
        compiled[name] = compile_pattern(name, pattern)
        together.Add(pattern)
    together.Compile()
    return PatternSet(tuple(patterns), compiled, together)


def compile_pattern(name: str, pattern: str) -> Any:
    """One expression, compiled by RE2, or the reason why not."""
    options = re2.Options()
    options.log_errors = False
    try:
        expression = re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0]
        raise RuleProblem(name, reason.decode() if isinstance(reason, bytes) else str(reason)) from None
    if expression.search("") is not None:
        raise RuleProblem(name, "it matches the empty text")
    return expression


@dataclass(frozen=True, slots=True)
class Probe:
    """One expression that is only tried where one of the literals it needs is in the text."""

    needs: tuple[str, ...]
    plain_needs: tuple[str, ...]
    """Those that a text in ASCII can have."""
    expression: Any

    def find(self, text: str) -> Any:
        """The first match, or None."""
        for need in self.plain_needs if text.isascii() else self.needs:
            if need in text:
                return self.expression.search(text)
        return None


def build_probe(name: str, pattern: str, needs: str) -> Probe:
    """Compile an expression; its needs are literals separated by bars."""
    if not needs:
        raise RuleProblem(name, "it names no literal that it needs")
    literals = tuple(needs.split("|"))
    return Probe(literals, tuple(filter(str.isascii, literals)), compile_pattern(name, pattern))


class Scan(NamedTuple):
    """The references of a text, the text with them masked, and whether it has a dotted name of some code."""

    references: tuple[Trigger, ...]
    masked: str
    dotted: bool


def scan(probes: Mapping[str, Probe], references: References, text: str) -> Scan:
    """Look for every reference; what one covers is not looked at again."""
    found: list[Trigger] = []
    masked = text
    dotted = False
    if "```" in text or "~~~" in text:
        found = [Trigger(TriggerKind.CODE_BLOCK, "code block", _FENCE, *span) for span in _fences(text)]
        masked = _mask(text, found)
    if "." in text or "/" in text or "\\" in text:
        named, dotted = find_references(references, masked)
        if named:
            masked, found = _mask(masked, named), found + named
    if probes[_AT_HAND].find(masked) is not None:
        at_hand = [_at_hand(match) for match in probes[_AT_HAND].expression.finditer(masked)]
        masked, found = _mask(masked, at_hand), found + at_hand
    return Scan(_distinct(found) if found else (), masked, dotted)


def _at_hand(match: Any) -> Trigger:
    """The code at hand, called by its last word: the codebase."""
    name = match.group().replace("code base", "codebase").rsplit(" ", 1)[-1]
    return Trigger(TriggerKind.CODE_INDICATOR, name, _AT_HAND, match.start(), match.end())


def _mask(text: str, spans: list[Trigger]) -> str:
    pieces: list[str] = []
    position = 0
    for span in spans:
        pieces += (text[position : span.start], MASK * (span.end - span.start))
        position = span.end
    return "".join((*pieces, text[position:])) if spans else text


def _fences(text: str) -> Iterator[tuple[int, int]]:
    """From an opening fence to the next one like it, or to the end of the text."""
    opened: re.Match[str] | None = None
    for mark in _FENCE_MARK.finditer(text):
        if opened is None:
            opened = mark
        elif mark.group() == opened.group():
            yield opened.start(), mark.end()
            opened = None
    if opened is not None:
        yield opened.start(), len(text)


def _distinct(references: list[Trigger]) -> tuple[Trigger, ...]:
    seen: dict[tuple[str, str], Trigger] = {}
    for reference in sorted(references, key=lambda trigger: trigger.start):
        seen.setdefault((reference.kind, reference.name), reference)
    return tuple(seen.values())
