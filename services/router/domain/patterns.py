"""Expressions compiled by RE2: many tried together in one pass over a text, in linear time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import re2

from pointsman.services.router.domain.rule_document import RuleProblem

_SET_MEMORY_BYTES = 64 << 20
_OWN_MEMORY_BYTES = 8 << 20
"""What RE2 may spend on an expression by itself; those of the rule file get as much as the set, for their long lists."""
MOST_COMBINATIONS = 4096
"""How many combinations of matching expressions are cached with their names."""
Span: TypeAlias = tuple[int, int]
"""Start and end of a match."""
_NO_SPAN = (-1, -1)
Finder: TypeAlias = Callable[[bytes, int], Span]
"""The span of the next match from a position on, in bytes; -1 if there is none."""


@dataclass(frozen=True, slots=True)
class PatternSet:
    """Named expressions that are matched together in one pass, in linear time."""

    names: tuple[str, ...]
    expressions: Mapping[str, Any]
    match: Callable[[bytes], Sequence[int]]
    finders: Mapping[str, Finder]
    known: dict[tuple[int, ...], frozenset[str]] = field(default_factory=dict)
    """Cache of the names of each combination of matching expressions; it does not grow with the texts."""

    def matching(self, text: str) -> frozenset[str]:
        """The names of the expressions that match somewhere in the text."""
        hits = tuple(self.match(text.encode()))
        names = self.known.get(hits)
        if names is None:
            names = frozenset(self.names[hit] for hit in hits)
            if len(self.known) < MOST_COMBINATIONS:
                self.known[hits] = names
        return names

    def spans(self, name: str, text: str) -> list[Span]:
        """The spans of all matches of one expression."""
        searched = text.encode()
        find = self.finders[name]
        found: list[Span] = []
        position = 0
        while (span := find(searched, position))[0] >= 0:
            found.append(span)
            if position == len(searched):
                break
            position = max(span[1], position + 1)
        # Offsets of an ASCII text need no conversion, which costs more than the search.
        return found if len(searched) == len(text) else _in_letters(searched, found)

    def first(self, name: str, text: str) -> Span | None:
        """The span of the first match of one expression."""
        searched = text.encode()
        span = self.finders[name](searched, 0)
        if span[0] < 0:
            return None
        return span if len(searched) == len(text) else _in_letters(searched, [span])[0]


def _in_letters(searched: bytes, spans: list[Span]) -> list[Span]:
    """Converts spans from bytes to letters, counting from one span to the next."""
    passed = letters = 0
    found: list[Span] = []
    for start, end in spans:
        begun = letters + len(searched[passed:start].decode())
        passed, letters = end, begun + len(searched[start:end].decode())
        found.append((begun, letters))
    return found


def pattern_set(patterns: Mapping[str, str]) -> PatternSet:
    """Compiles expressions; raises RuleProblem with the name of one that RE2 refuses."""
    options = re2.Options()
    options.max_mem = _SET_MEMORY_BYTES
    together = re2.Set.SearchSet(options)
    compiled: dict[str, Any] = {}
    for name, pattern in patterns.items():
        compiled[name] = compile_pattern(name, pattern, _SET_MEMORY_BYTES)
        together.Add(pattern)
    together.Compile()
    finders = {name: finder_of(expression) for name, expression in compiled.items()}
    return PatternSet(tuple(patterns), compiled, _match_of(together), finders)


def _match_of(together: Any) -> Callable[[bytes], Sequence[int]]:
    """The match function of a set on bytes; skips re2's wrapper for text, which takes as long as the match."""
    inner: Any = getattr(together, "_set", None)
    return getattr(inner, "Match", None) or (lambda text: together.Match(text) or ())


def finder_of(expression: Any) -> Finder:
    """The function that finds the next match; skips re2's match object, which takes twice as long as the search."""
    match: Any = getattr(getattr(expression, "_regexp", None), "Match", None)
    anchor: Any = getattr(getattr(re2, "_Anchor", None), "UNANCHORED", None)

    def find(searched: bytes, position: int) -> Span:
        span: Span = match(anchor, searched, position, len(searched))[0]
        return span

    def find_by_object(searched: bytes, position: int) -> Span:
        found: Any = expression.search(searched, position)
        span: Span = _NO_SPAN if found is None else found.span()
        return span

    return find_by_object if match is None or anchor is None else find


def compile_pattern(name: str, pattern: str, memory: int = _OWN_MEMORY_BYTES) -> Any:
    """Compiles one expression with RE2; raises RuleProblem if it is invalid or matches the empty text."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = memory
    options.never_capture = True  # groups are not needed, and finding them is several times slower
    try:
        expression = re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0]
        raise RuleProblem(name, reason.decode() if isinstance(reason, bytes) else str(reason)) from None
    if expression.search("") is not None:
        raise RuleProblem(name, "it matches the empty text")
    return expression
