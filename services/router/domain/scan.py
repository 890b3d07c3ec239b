"""What stands in a text whatever its language: references to files, web and code, shapes of code, marks of programs."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import re2

from pointsman.services.router.domain.document import RuleProblem
from pointsman.services.router.domain.lexicon import MASK
from pointsman.services.router.domain.references import References, find_references
from pointsman.services.router.domain.values import Trigger, TriggerKind

_FENCE = "reference.fence"
_CODE = "reference.code"
_FILE_NAME = "reference.file_name"
_SPOKEN = {
    _CODE: TriggerKind.CODE_BLOCK,
    _FILE_NAME: TriggerKind.PATH,
    "reference.at_hand": TriggerKind.CODE_INDICATOR,
}
_SET_MEMORY_BYTES = 64 << 20
_FENCE_MARK = re.compile(r"```|~~~")
_INNER_DOT = re.compile(r"\.[^\s.]")


@dataclass(frozen=True, slots=True)
class PatternSet:
    """Expressions that are tried together in one pass, in linear time."""

    names: tuple[str, ...]
    expressions: Mapping[str, Any]
    together: Any

    def matching(self, text: str) -> list[str]:
        """The names of the expressions that match somewhere in the text."""
        hits = self.together.Match(text.encode())
        if hits is None:
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


_new = tuple.__new__  # a tuple's constructor with names is a function in Python, and decisions are made of tuples


class Scan(NamedTuple):
    """The references of a text, the text with them masked, whether a dotted name of code is there, and its shapes."""

    references: tuple[Trigger, ...]
    masked: str
    dotted: bool
    shapes: list[str]
    """The expressions over the whole text that match it."""
    source: str
    """The text as it was written."""


def scan(shapes: PatternSet, references: References, text: str, source: str) -> Scan:
    """Look for every reference; what one covers is not looked at again."""
    matching = shapes.matching(text)
    if not (matching or "/" in text or "\\" in text or ("." in text and _INNER_DOT.search(text) is not None)):
        return _new(Scan, ((), text, False, matching, source))
    found: list[Trigger] = []
    masked = text
    if _FENCE in matching:
        found = [Trigger(TriggerKind.CODE_BLOCK, "code block", _FENCE, *span) for span in _fences(text)]
        masked = _mask(text, found)
    named, dotted = find_references(references, masked)
    if named:
        masked, found = _mask(masked, named), found + named
    for rule in matching:
        if rule in _SPOKEN:
            expression = shapes.expressions[rule]
            found_here = [expression.search(masked)] if rule == _CODE else expression.finditer(masked)
            spoken = [_spoken(rule, match) for match in found_here if match is not None]
            masked, found = _mask(masked, spoken), found + spoken
    several = tuple(found) if len(found) < 2 else _distinct(found)
    return _new(Scan, (several, masked, dotted, matching, source))


def _spoken(rule: str, match: Any) -> Trigger:
    """What is referred to by words, called by the last one: the codebase, the makefile."""
    if rule == _CODE:
        return Trigger(TriggerKind.CODE_BLOCK, "code", rule, match.start(), match.end())
    name = match.group().replace("code base", "codebase").rsplit(" ", 1)[-1]
    start = match.end() - len(name) if rule == _FILE_NAME else match.start()
    return Trigger(_SPOKEN[rule], name, rule, start, match.end())


def _mask(text: str, spans: list[Trigger]) -> str:
    if len(spans) == 1:
        start, end = spans[0].start, spans[0].end
        return f"{text[:start]}{MASK * (end - start)}{text[end:]}"
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
