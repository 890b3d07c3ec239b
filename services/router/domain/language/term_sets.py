"""The lists of another language as expressions that are tried in one pass; what a text has of them is one number."""

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
SOLVED = 1 << 13
NARRATED = 1 << 14
"""What the writer tells of himself: the verbs and things in it are not to be worked on, unless he asks for something too."""
SPENT = 1 << 15
"""Clauses that ask for nothing: not to be done, done already, or left to the writer."""
TOLD = 1 << 16
TURN = 1 << 17
GENERAL = 1 << 18
FOLLOW_UP = 1 << 19
IMPERATIVE = 1 << 20
"""A first word with the ending of an order, right before an object."""
OPENER = 1 << 21
"""The words of the list of questions that open one."""
STARTER = 1 << 22
"""A verb of doing at the very beginning: what follows is no question, unless it is marked as one."""
JOINED = 1 << 23
"""A verb of doing at the beginning of a later clause."""
REQUEST = 1 << 24
"""The polite words that are no mere wish: in a question only these ask for something."""
_DERIVED = {"opener": OPENER, "starter": STARTER, "joined": JOINED, "request": REQUEST}
_BITS = _DERIVED | {
    "do": DO, "make": MAKE, "read": READ, "tell": TELL, "work": WORK, "prose": PROSE, "fault": FAULT, "question": QUESTION,
    "polite": POLITE, "wish": WISH, "thanks": THANKS, "approval": APPROVAL, "declined": DECLINED, "solved": SOLVED,
    "narrated": NARRATED, "spent": SPENT, "told": TOLD, "turn": TURN, "general": GENERAL, "follow_up": FOLLOW_UP,
    "imperative": IMPERATIVE, "destructive": 1 << 25, "data": 1 << 26, "deployment": 1 << 27, "security": 1 << 28,
    "bulk": 1 << 29, "vague": 1 << 30,
}  # fmt: skip
_NO_LISTS = frozenset({"script", "stopwords", "verb_ending", "imperative"})
_LISTS = tuple(part.name for part in fields(LanguageRules) if part.name not in _NO_LISTS)
_DOING = ("do", "make", "read")
_SEPARATORS = r"(?:[,.;!?，。；！？、\n]|\b(?:und|dann|et|puis|y|luego|e|poi|depois)\b|然后|并且?|接着|顺便)"


@dataclass(slots=True)
class Language:
    """One language: its words, matched from the first message on that is written in it."""

    code: str
    script: str
    stopwords: frozenset[str]
    patterns: Mapping[str, str]
    bits: tuple[int, ...]
    """What stands for each list in a number, in the order of the patterns."""
    compiled: PatternSet | None = None
    bitmasks: dict[tuple[int, ...], int] = field(default_factory=dict)
    """The number of each combination of expressions that was met; it does not grow with the texts."""
    names: dict[int, frozenset[str]] = field(default_factory=dict)
    """The names of each of these numbers."""

    @property
    def term_sets(self) -> PatternSet:
        """The lists, compiled when they are first needed: most messages need no other language."""
        if self.compiled is None:
            try:
                self.compiled = pattern_set(self.patterns)
            except RuleProblem as problem:
                raise RuleProblem(f"languages.{self.code}.{problem.rule}", problem.problem) from None
        return self.compiled

    def hits(self, text: str) -> int:
        """Which lists have something that stands in the text."""
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
        """The lists that a number stands for, by their names."""
        names = self.names.get(hits)
        if names is None:
            names = frozenset(name for name, bit in _BITS.items() if hits & bit)
            if len(self.names) < MOST_COMBINATIONS:
                self.names[hits] = names
        return names


def build_language(code: str, rules: LanguageRules) -> Language:
    """The lists of one language as expressions."""
    script = rules.script
    patterns = {name: _any_of(getattr(rules, name).split(), script) for name in _LISTS}
    wishes = rules.wish.split()
    patterns["request"] = _any_of([item for item in rules.polite.split() if item not in wishes], script)
    if rules.imperative:
        patterns["imperative"] = _any_of(rules.imperative.split(), script)
    if rules.verb_ending:
        for name in _DOING:
            patterns[name] = _verbs(getattr(rules, name).split(), rules)
    openers = [item for item in rules.question.split() if item.startswith("^")]
    if openers:
        patterns["opener"] = _any_of(openers, script)
    verbs = f"{rules.do} {rules.make} {rules.read}".split()
    patterns["starter"] = _any_of([f"^{verb}" for verb in verbs], script)
    joined = "|".join(_stem(verb, script) for verb in verbs)
    patterns["joined"] = rf"{_SEPARATORS}[^\pL]*(?:{joined})"
    bits = tuple(_BITS[name] for name in patterns)
    return Language(code, script, frozenset(rules.stopwords.split()), patterns, bits)


def _verbs(items: list[str], rules: LanguageRules) -> str:
    """Verbs in their own endings; at the beginning also the noun of a verb, as titles of tasks have it: update of …."""
    narrow = _any_of([item.replace("*", MASK) for item in items], rules.script).replace(MASK, rules.verb_ending)
    first = _any_of([f"^{item}" for item in items if "*" in item], rules.script)
    return f"{narrow}|{first}" if first else narrow


def _any_of(items: list[str], script: str) -> str:
    """Entries as one expression; those next to each other with a `^` share what may stand before them."""
    runs = itertools.groupby(items, lambda item: item.startswith("^"))
    return "|".join(_first(run, script) if first else _anywhere(run, script) for first, run in runs)


def _first(items: Iterable[str], script: str) -> str:
    """Entries at the beginning. What is no letter is a class of a thousand ranges: with one for each entry no automaton fits."""
    return rf"^[^\pL]*(?:{'|'.join(_stem(item, script) for item in items)})"


def _anywhere(items: Iterable[str], script: str) -> str:
    return "|".join(_item(item, script) for item in items)


def _stem(item: str, script: str) -> str:
    """One entry without its edges: `_` a blank, `*` any ending."""
    return item.removeprefix("^").replace("_", " ").replace("*", "[а-яё]*" if script == "cyrillic" else "[a-z]*")


def _item(item: str, script: str) -> str:
    """One entry anywhere in the text; words are whole in alphabets."""
    if item in ("?", "¿"):
        return re.escape(item)
    body = _stem(item, script)
    if script == "latin":
        return rf"\b{body}\b"
    # RE2's \b knows ASCII only, so the edges of a Cyrillic word are spelt out.
    return rf"(?:^|[^а-яё]){body}(?:$|[^а-яё])" if script == "cyrillic" else body
