"""What stands in a text whatever its language: references to files, web and code, shapes of code, marks of programs."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import re2

from pointsman.services.router.domain.language.lexicon import MASK
from pointsman.services.router.domain.language.references import References, find_references
from pointsman.services.router.domain.language.rule_document import OwnRule, RuleProblem
from pointsman.services.router.domain.model import Trigger, TriggerKind

_FENCE = "reference.fence"
_CODE = "reference.code"
_FILE_NAME = "reference.file_name"
_SPOKEN = {
    _CODE: TriggerKind.CODE_BLOCK,
    _FILE_NAME: TriggerKind.PATH,
    "reference.at_hand": TriggerKind.CODE_INDICATOR,
}
_TERM = "reference.term"
_SET_MEMORY_BYTES = 64 << 20
MOST_COMBINATIONS = 4096
"""How many combinations of matching expressions are kept with what they stand for."""
_FENCE_MARK = re.compile(r"```|~~~")
# What the steps behind the one pass over the text need to know: whether it has anything for them.
BREAK = 1
COMMA = 2
ASKS = 4
APOSTROPHE = 8
MARK = 16
MARKS = ':!;()"`/=[]{}<>|&…“”—–。，？！、：«»‘'
_NAMED = "step.named"
Span: TypeAlias = tuple[int, int]
_NO_SPAN = (-1, -1)
Finder: TypeAlias = Callable[[bytes, int], Span]
"""Where the next match begins and ends, from a place on, in bytes; -1 if there is none."""
_STEPS = {
    "step.break": (r"\. |\n|[?!;] |\x02", BREAK),
    "step.comma": (",", COMMA),
    "step.asks": (r"\?", ASKS),
    "step.apostrophe": ("'", APOSTROPHE),
    "step.mark": (f"[{re.escape(MARKS)}]", MARK),
}


@dataclass(frozen=True, slots=True)
class PatternSet:
    """Expressions that are tried together in one pass, in linear time."""

    names: tuple[str, ...]
    expressions: Mapping[str, Any]
    match: Callable[[bytes], Sequence[int]]
    finders: Mapping[str, Finder]
    known: dict[tuple[int, ...], frozenset[str]] = field(default_factory=dict)
    """The names of each combination of expressions that was met; it does not grow with the texts."""

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
        """Where one expression matches."""
        searched = text.encode()
        find = self.finders[name]
        found: list[Span] = []
        position = 0
        while (span := find(searched, position))[0] >= 0:
            found.append(span)
            if position == len(searched):
                break
            position = max(span[1], position + 1)
        # Where every letter is one byte, places need no conversion, which costs more than the search.
        return found if len(searched) == len(text) else _in_letters(searched, found)

    def first(self, name: str, text: str) -> Span | None:
        """Where one expression first matches, if it does."""
        searched = text.encode()
        span = self.finders[name](searched, 0)
        if span[0] < 0:
            return None
        return span if len(searched) == len(text) else _in_letters(searched, [span])[0]


def _in_letters(searched: bytes, spans: list[Span]) -> list[Span]:
    """Places in bytes as places in letters, counted on from one to the next."""
    passed = letters = 0
    found: list[Span] = []
    for start, end in spans:
        begun = letters + len(searched[passed:start].decode())
        passed, letters = end, begun + len(searched[start:end].decode())
        found.append((begun, letters))
    return found


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
    finders = {name: finder_of(expression) for name, expression in compiled.items()}
    return PatternSet(tuple(patterns), compiled, _match_of(together), finders)


def _match_of(together: Any) -> Callable[[bytes], Sequence[int]]:
    """How to match a set: without the layer that takes text too, where there is one, for it takes as long as the match."""
    inner: Any = getattr(together, "_set", None)
    return getattr(inner, "Match", None) or (lambda text: together.Match(text) or ())


def finder_of(expression: Any) -> Finder:
    """How to find the next match of one expression, likewise: what makes an object of it takes twice as long as the search."""
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


def compile_pattern(name: str, pattern: str) -> Any:
    """One expression, compiled by RE2, or the reason why not."""
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True  # nobody asks for groups, and finding them takes several times as long
    try:
        expression = re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0]
        raise RuleProblem(name, reason.decode() if isinstance(reason, bytes) else str(reason)) from None
    if expression.search("") is not None:
        raise RuleProblem(name, "it matches the empty text")
    return expression


@dataclass(frozen=True, slots=True)
class Shapes:
    """The expressions over the whole text that match it, and the steps that reading it needs."""

    names: frozenset[str]
    marks: int
    named: bool
    """A word may be a reference by its form."""
    referring: bool


@dataclass(frozen=True, slots=True)
class ShapeSet:
    """The rules' expressions over the whole text, tried in one pass together with what the next steps need."""

    patterns: PatternSet
    match: Callable[[bytes], Sequence[int]]
    known: dict[tuple[int, ...], Shapes] = field(default_factory=dict)

    def matching(self, text: str) -> Shapes:
        """What one pass over the text finds."""
        hits = tuple(self.match(text.encode()))
        return self.known.get(hits) or self._learn(hits)

    def _learn(self, hits: tuple[int, ...]) -> Shapes:
        names = [self.patterns.names[hit] for hit in hits]
        spoken = frozenset(name for name in names if not name.startswith("step."))
        marks = sum(mark for step, (_, mark) in _STEPS.items() if step in names)
        named = _NAMED in names or _FENCE in names
        shapes = Shapes(spoken, marks, named, named or any(name in names for name in _SPOKEN))
        if len(self.known) < MOST_COMBINATIONS:
            self.known[hits] = shapes
        return shapes


def shape_set(patterns: Mapping[str, str]) -> ShapeSet:
    """Compile the rules' expressions and those of the steps."""
    steps = {name: pattern for name, (pattern, _) in _STEPS.items()}
    together = pattern_set({**patterns, **steps, _NAMED: r"[/\\]|\.[^\s.]"})
    return ShapeSet(together, together.match)


class Message:
    """One message on its way through the procedure: its text, the references in it, the text with them masked."""

    __slots__ = (
        "already_debated",
        "as_action",
        "compound",
        "dotted",
        "identified",
        "lower",
        "masked",
        "own",
        "references",
        "seen",
        "shapes",
        "source",
    )

    def __init__(self, source: str, lower: str, shapes: frozenset[str], already_debated: bool) -> None:
        self.source = source
        self.lower = self.masked = lower
        self.shapes = shapes
        self.already_debated = already_debated
        self.as_action = False
        """Whether somebody calls it ACTION who may, whatever it does."""
        self.references: tuple[Trigger, ...] = ()
        self.seen = 0
        """What all its words together can be."""
        self.dotted = False
        """Whether a dotted name of some code is there."""
        self.own: tuple[tuple[OwnRule, Any], ...] = ()
        """The project's own rules that match, with where they do."""
        self.identified: bool | None = None
        """Whether it names some code outside its references, once somebody has looked."""
        self.compound: bool | None = None
        """Whether a compound name of some code is in it, once somebody has looked."""


def refer(patterns: PatternSet, references: References, message: Message, named: bool) -> None:
    """Look for every reference; what one covers is not looked at again."""
    matching, masked = message.shapes, message.lower
    found: list[Trigger] = []
    if named:
        if _FENCE in matching:
            found = [Trigger(TriggerKind.CODE_BLOCK, "code block", _FENCE, *span) for span in fences(masked)]
            masked = _mask(masked, found)
        files, message.dotted = find_references(references, masked)
        if files:
            masked, found = _mask(masked, files), found + files
    if matching:
        for rule in _SPOKEN:
            if rule in matching:
                spoken = list(_spoken(patterns, rule, masked))
                masked, found = _mask(masked, spoken), found + spoken
    message.masked = masked
    message.references = tuple(found) if len(found) < 2 else _distinct(found)


def _spoken(patterns: PatternSet, rule: str, text: str) -> Iterator[Trigger]:
    """What is referred to by words, called by the last one: the codebase, the makefile. Of code the first is enough."""
    if rule == _CODE:
        if (code := patterns.first(rule, text)) is not None:
            yield Trigger(TriggerKind.CODE_BLOCK, "code", rule, *code)
        return
    terms = {start for start, _ in patterns.spans(_TERM, text)}
    for first, end in patterns.spans(rule, text):
        if first in terms:
            continue
        name = text[first:end].replace("code base", "codebase").rsplit(" ", 1)[-1]
        yield Trigger(_SPOKEN[rule], name, rule, end - len(name) if rule == _FILE_NAME else first, end)


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


def fences(text: str) -> Iterator[tuple[int, int]]:
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
