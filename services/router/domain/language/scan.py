"""Scans a text in any language: references to files, web and code, shapes of code, markers of programs."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pointsman.services.router.domain.enums import TriggerKind
from pointsman.services.router.domain.language.lexicon import MASK
from pointsman.services.router.domain.language.references import References, find_references
from pointsman.services.router.domain.model import Trigger
from pointsman.services.router.domain.patterns import MOST_COMBINATIONS, PatternSet, pattern_set
from pointsman.services.router.domain.rule_document import OwnRule

_FENCE = "reference.fence"
_CODE = "reference.code"
_FILE_NAME = "reference.file_name"
_SPOKEN = {
    _CODE: TriggerKind.CODE_BLOCK,
    _FILE_NAME: TriggerKind.PATH,
    "reference.at_hand": TriggerKind.CODE_INDICATOR,
}
_TERM = "reference.term"
_FENCE_MARK = re.compile(r"```|~~~")
# Which characters the text has, so that the next steps can skip work.
BREAK = 1
COMMA = 2
ASKS = 4
APOSTROPHE = 8
MARK = 16
MARKS = ':!;()"`/=[]{}<>|&…“”—–。，？！、：«»‘'
_NAMED = "step.named"
_STEPS = {
    "step.break": (r"\. |\n|[?!;] |\x02", BREAK),
    "step.comma": (",", COMMA),
    "step.asks": (r"\?", ASKS),
    "step.apostrophe": ("'", APOSTROPHE),
    "step.mark": (f"[{re.escape(MARKS)}]", MARK),
}


@dataclass(frozen=True, slots=True)
class Shapes:
    """The expressions that match a text, and which steps reading it needs."""

    names: frozenset[str]
    marks: int
    named: bool
    """Whether a word may be a reference by its form."""
    referring: bool


@dataclass(frozen=True, slots=True)
class ShapeSet:
    """The rules' expressions over the whole text, tried in one pass together with the checks for the next steps."""

    patterns: PatternSet
    match: Callable[[bytes], Sequence[int]]
    known: dict[tuple[int, ...], Shapes] = field(default_factory=dict)

    def matching(self, text: str) -> Shapes:
        """The shapes of a text, found in one pass."""
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
    """Compiles the rules' expressions and those of the steps."""
    steps = {name: pattern for name, (pattern, _) in _STEPS.items()}
    together = pattern_set({**patterns, **steps, _NAMED: r"[/\\]|\.[^\s.]"})
    return ShapeSet(together, together.match)


class Message:
    """One message while it is classified: its text, its references, and the text with the references masked."""

    __slots__ = (
        "already_debated",
        "as_action",
        "compound",
        "dotted",
        "identified",
        "lower",
        "masked",
        "misspelt",
        "own",
        "references",
        "score",
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
        """Whether the caller overrides the mode to ACTION."""
        self.references: tuple[Trigger, ...] = ()
        self.seen = 0
        """The lexicon flags of all its words together."""
        self.dotted = False
        """Whether it has a dotted name of code."""
        self.own: tuple[tuple[OwnRule, Any], ...] = ()
        """The project's own rules that match, each with its match."""
        self.identified: bool | None = None
        """Whether it has an identifier outside its references; None until looked up."""
        self.score: int | None = None
        """What the second layer gave it; None where no word was weighed."""
        self.misspelt: dict[str, str] = {}
        """How the message spells a word that was corrected."""
        self.compound: bool | None = None
        """Whether it has a camel-case name; None until looked up."""


def mask_references(patterns: PatternSet, references: References, message: Message, named: bool) -> None:
    """Finds every reference and masks it, so that later steps ignore its text."""
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
    """References by words, named by the last word: the codebase, the makefile. Only the first piece of code counts."""
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
    """The spans of code fences, from an opening mark to the next equal one, or to the end of the text."""
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
