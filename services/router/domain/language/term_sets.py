"""The term sets of another language, compiled to expressions that are matched in one pass; matches are a bit mask."""

import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields

from pointsman.services.router.domain.language.lexicon import MASK
from pointsman.services.router.domain.patterns import MOST_COMBINATIONS, PatternSet, pattern_set
from pointsman.services.router.domain.rule_document import LanguageRules, RuleProblem

DO = 1 << 0
MAKE = 1 << 1
READ = 1 << 2
TELL = 1 << 3
WORK = 1 << 4
PROSE = 1 << 5
FAULT = 1 << 6
QUESTION = 1 << 7
POLITE = 1 << 8
WISH = 1 << 9
THANKS = 1 << 10
APPROVAL = 1 << 11
DECLINED = 1 << 12
"""No longer needed, or done by the writer: never mind, I will do it tomorrow."""
SOLVED = 1 << 13
"""The writer has solved it already."""
NARRATED = 1 << 14
"""What writers narrate of themselves; its verbs and nouns ask for no work unless something else does."""
SPENT = 1 << 15
"""Clauses about what is not to be done, done already, or left to the writer; they ask for nothing."""
EXPLANATION = 1 << 16
"""An explanation is requested: explain to me how …."""
TURN = 1 << 17
"""Words like but, still, however."""
GENERAL = 1 << 18
"""Questions about effort, worth and abilities, which ask for no work."""
FOLLOW_UP = 1 << 19
"""Questions about a fault that was just named: any idea?"""
IMPERATIVE = 1 << 20
"""A first word with the ending of an imperative, right before an object."""
OPENER = 1 << 21
"""The question words that open a question."""
STARTER = 1 << 22
"""A verb of doing at the very beginning: without a question mark the text is not a question."""
JOINED = 1 << 23
"""A verb of doing at the beginning of a later clause."""
REQUEST = 1 << 24
"""The polite words that are not only wishes; in a question only these request something."""
TAG = 1 << 31
"""A word at the end that asks for consent to the order before it: ok?"""
WELL = 1 << 32
"""Good news and praise: it works, all green, well done."""
DENIED = 1 << 33
"""Words that deny: not, never, no."""
_DERIVED = {"opener": OPENER, "starter": STARTER, "joined": JOINED, "request": REQUEST}
_BITS = _DERIVED | {
    "do": DO, "make": MAKE, "read": READ, "tell": TELL, "work": WORK, "prose": PROSE, "fault": FAULT, "question": QUESTION,
    "polite": POLITE, "wish": WISH, "thanks": THANKS, "approval": APPROVAL, "declined": DECLINED, "solved": SOLVED,
    "narrated": NARRATED, "spent": SPENT, "told": EXPLANATION, "turn": TURN, "general": GENERAL, "follow_up": FOLLOW_UP,
    "imperative": IMPERATIVE, "destructive": 1 << 25, "data": 1 << 26, "deployment": 1 << 27, "security": 1 << 28,
    "bulk": 1 << 29, "vague": 1 << 30, "tag": TAG, "well": WELL,
    "denied": DENIED,
}  # fmt: skip
_NO_LISTS = frozenset({"script", "letters", "stopwords", "verb_ending", "imperative", "tag"})
_LISTS = tuple(part.name for part in fields(LanguageRules) if part.name not in _NO_LISTS)
_DOING = ("do", "make", "read")
_SEPARATORS = r"(?:[,.;!?，。；！？、\n]|\b(?:und|dann|et|puis|y|luego|e|poi|depois)\b|然后|并且?|接着|顺便)"


@dataclass(slots=True)
class Language:
    """One language: its stop words and term sets, compiled for the first message in it."""

    code: str
    script: str
    letters: frozenset[str]
    stopwords: frozenset[str]
    patterns: Mapping[str, str]
    bits: tuple[int, ...]
    """The bit of each term set, in the order of the patterns."""
    compiled: PatternSet | None = None
    bitmasks: dict[tuple[int, ...], int] = field(default_factory=dict)
    """Cache of the bit mask of each combination of matching expressions; it does not grow with the texts."""
    names: dict[int, frozenset[str]] = field(default_factory=dict)
    """Cache of the term set names of each bit mask."""

    @property
    def term_sets(self) -> PatternSet:
        """The term sets, compiled at first use: most messages need no other language."""
        if self.compiled is None:
            try:
                self.compiled = pattern_set(self.patterns)
            except RuleProblem as problem:
                raise RuleProblem(f"languages.{self.code}.{problem.rule}", problem.problem) from None
        return self.compiled

    def hits(self, text: str) -> int:
        """The bit mask of the term sets that match the text."""
        term_sets = self.compiled
        if term_sets is None:
            term_sets = self.term_sets
        found = tuple(term_sets.match(text.encode()))
        bitmask = self.bitmasks.get(found, -1)
        if bitmask < 0:
            bitmask = sum(self.bits[hit] for hit in found)
            if len(self.bitmasks) < MOST_COMBINATIONS:
                self.bitmasks[found] = bitmask
        return bitmask

    def names_of(self, hits: int) -> frozenset[str]:
        """The names of the term sets in a bit mask."""
        names = self.names.get(hits)
        if names is None:
            names = frozenset(name for name, bit in _BITS.items() if hits & bit)
            if len(self.names) < MOST_COMBINATIONS:
                self.names[hits] = names
        return names


def build_language(code: str, rules: LanguageRules) -> Language:
    """Builds the expressions of one language's term sets."""
    script = rules.script
    patterns = {name: _any_of(getattr(rules, name).split(), script) for name in _LISTS}
    wishes = rules.wish.split()
    patterns["request"] = _any_of([item for item in rules.polite.split() if item not in wishes], script)
    if rules.imperative:
        patterns["imperative"] = _any_of(rules.imperative.split(), script)
    if rules.verb_ending:
        for name in _DOING:
            patterns[name] = _verbs(getattr(rules, name).split(), rules)
    tags = "|".join(_stem(item, script) for item in rules.tag.split())
    patterns["tag"] = rf"[,、，\s]\s*(?:{tags})\s*[?？]\s*$"
    openers = [item for item in rules.question.split() if item.startswith("^")]
    if openers:
        patterns["opener"] = _any_of(openers, script)
    verbs = f"{rules.do} {rules.make} {rules.read}".split()
    patterns["starter"] = _any_of([f"^{verb}" for verb in verbs], script)
    joined = "|".join(_stem(verb, script) for verb in verbs)
    patterns["joined"] = rf"{_SEPARATORS}[^\pL]*(?:{joined})"
    bits = tuple(_BITS[name] for name in patterns)
    return Language(code, script, frozenset(rules.letters), frozenset(rules.stopwords.split()), patterns, bits)


def _verbs(items: list[str], rules: LanguageRules) -> str:
    """The expression of verbs with their endings; at the beginning also nouns of verbs, as in titles of tasks: update of …."""
    narrow = _any_of([item.replace("*", MASK) for item in items], rules.script).replace(MASK, rules.verb_ending)
    first = _any_of([f"^{item}" for item in items if "*" in item], rules.script)
    return f"{narrow}|{first}" if first else narrow


def _any_of(items: list[str], script: str) -> str:
    """One expression of all entries; adjacent entries with a `^` share their prefix."""
    runs = itertools.groupby(items, lambda item: item.startswith("^"))
    return "|".join(_first(run, script) if first else _anywhere(run, script) for first, run in runs)


def _first(items: Iterable[str], script: str) -> str:
    """Entries at the beginning; they share the class of non-letters, whose ranges, once per entry, would exceed RE2's memory."""
    return rf"^[^\pL]*(?:{'|'.join(_stem(item, script) for item in items)})"


def _anywhere(items: Iterable[str], script: str) -> str:
    return "|".join(_item(item, script) for item in items)


def _stem(item: str, script: str) -> str:
    """The expression of one entry without word boundaries: `_` is a blank, `*` any ending."""
    return item.removeprefix("^").replace("_", " ").replace("*", "[а-яё]*" if script == "cyrillic" else "[a-z]*")


def _item(item: str, script: str) -> str:
    """The expression of one entry anywhere in the text, as a whole word in alphabetic scripts."""
    if item in ("?", "¿"):
        return re.escape(item)
    body = _stem(item, script)
    if script == "latin":
        return rf"\b{body}\b"
    # RE2's \b knows ASCII only, so the edges of a Cyrillic word are spelt out.
    return rf"(?:^|[^а-яё]){body}(?:$|[^а-яё])" if script == "cyrillic" else body
