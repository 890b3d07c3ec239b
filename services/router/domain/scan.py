"""What stands in a text whatever its language: references to files, web and code, shapes of code, marks of programs."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import re2

from pointsman.services.router.domain.document import PatternRule, RuleProblem
from pointsman.services.router.domain.values import Trigger, TriggerKind

MASK = "\x01"
_FENCE = "reference.fence"
_SET_MEMORY_BYTES = 64 << 20
# No repetition is nested in another one, so this expression cannot backtrack far: a match costs what it is long.
_HAS_LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True, slots=True)
class PatternSet:
    """Expressions that are tried together in one pass, in linear time."""

    names: tuple[str, ...]
    expressions: Mapping[str, Any]
    together: Any

    def matching(self, text: str) -> tuple[str, ...]:
        """The names of the expressions that match somewhere in the text."""
        hits = self.together.Match(text)
        if not hits:
            return ()
        names = self.names
        return tuple([names[hit] for hit in sorted(hits)])


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
class Scan:
    """The references of a text, the text with them masked, and the other marks that it bears."""

    references: tuple[Trigger, ...]
    masked: str
    marks: frozenset[str]


NO_MARKS: frozenset[str] = frozenset()


def scan(patterns: PatternSet, rules: Mapping[str, PatternRule], text: str) -> Scan:
    """Look for every reference and mark; what one reference covers is not looked at again."""
    names = patterns.matching(text)
    if not names:
        return Scan((), text, NO_MARKS)
    references: list[Trigger] = []
    masked = text
    for name in names:
        if not name.startswith("reference."):
            continue
        spans = tuple(_spans(patterns, rules, name, masked))
        kind = TriggerKind[rules[name].kind]
        references.extend(Trigger(kind, _reference_name(name, text[a:b]), name, a, b) for a, b in spans)
        masked = _mask(masked, spans)
    return Scan(_distinct(references), masked, frozenset(names))


def _mask(text: str, spans: tuple[tuple[int, int], ...]) -> str:
    pieces: list[str] = []
    position = 0
    for start, end in spans:
        pieces += (text[position:start], MASK * (end - start))
        position = end
    return "".join((*pieces, text[position:]))


def _spans(patterns: PatternSet, rules: Mapping[str, PatternRule], name: str, text: str) -> Iterator[tuple[int, int]]:
    if name == _FENCE:
        yield from _fences(text)
        return
    rule = rules[name]
    exempt = rule.exempt.split()
    for match in patterns.expressions[name].finditer(text):
        start, end = match.span(1 if match.re.groups else 0)
        found = text[start:end].rstrip(".")
        if found in exempt or MASK in found or not _shaped(found, rule):
            continue
        yield start, start + len(found)


def _shaped(found: str, rule: PatternRule) -> bool:
    """A path of several parts needs a mark of one: his/her/their is none."""
    return not rule.needs or (any(mark in found for mark in rule.needs) and _HAS_LETTER.search(found) is not None)


def _fences(text: str) -> Iterator[tuple[int, int]]:
    """From an opening fence to its end, or to the end of the text."""
    position = 0
    while True:
        start = min((at for at in (text.find("```", position), text.find("~~~", position)) if at >= 0), default=-1)
        if start < 0:
            return
        closing = text.find(text[start : start + 3], start + 3)
        position = len(text) if closing < 0 else closing + 3
        yield start, position


def _reference_name(rule: str, found: str) -> str:
    """How a trigger is called: by what stands there, or by the last word of a phrase (the codebase)."""
    if rule == _FENCE:
        return "code block"
    return found.replace("code base", "codebase").rsplit(" ", 1)[-1]


def _distinct(references: list[Trigger]) -> tuple[Trigger, ...]:
    seen: dict[tuple[str, str], Trigger] = {}
    for reference in sorted(references, key=lambda trigger: trigger.start):
        seen.setdefault((reference.kind, reference.name), reference)
    return tuple(seen.values())
