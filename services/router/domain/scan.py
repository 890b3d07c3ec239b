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


class Scan(NamedTuple):
    """The references of a text, the text with them masked, and everything else that matched."""

    references: tuple[Trigger, ...]
    masked: str
    hits: frozenset[str]


_NO_HITS: frozenset[str] = frozenset()


def scan(patterns: PatternSet, references: References, text: str) -> Scan:
    """Look for every reference, phrase and mark; what one reference covers is not looked at again."""
    hits = patterns.matching(text)
    found: list[Trigger] = []
    masked = text
    if _FENCE in hits:
        fences = [Trigger(TriggerKind.CODE_BLOCK, "code block", _FENCE, *span) for span in _fences(text)]
        masked, found = _mask(text, fences), fences
    if "." in text or "/" in text or "\\" in text:
        named, dotted = find_references(references, masked)
        masked, found = _mask(masked, named), found + named
        if dotted:
            hits.append("shape.identifier")
    if _AT_HAND in hits:
        at_hand = [_at_hand(match) for match in patterns.expressions[_AT_HAND].finditer(masked)]
        masked, found = _mask(masked, at_hand), found + at_hand
    if found:
        hits.append(MASK)
    return Scan(_distinct(found) if found else (), masked, frozenset(hits) if hits else _NO_HITS)


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
