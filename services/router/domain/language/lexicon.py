"""The English lexicon: the rule file's words, inflected once and mapped to flags, so that reading needs one look-up per word."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pointsman.services.router.domain.enums import TriggerKind
from pointsman.services.router.domain.rule_document import EnglishRules, RuleProblem

# Flags: what a word can be in a sentence. Plain integers, because an IntFlag costs more than the rest of a look-up, and at
# most 30 of them, because longer integers cost twice as much.
TOOL = 1 << 0
CHANGE = 1 << 1
MAKE = 1 << 2
READ = 1 << 3
ASK = 1 << 4
TELL = 1 << 5
WORK = 1 << 6
STRONG_WORK = 1 << 7
PROSE = 1 << 8
WEAK_PROSE = 1 << 9
FAULT = 1 << 10
QUESTION = 1 << 11
WH = 1 << 12
SUBJECT = 1 << 13
DETERMINER = 1 << 14
COPULA = 1 << 15
LEAD = 1 << 16
APPROVAL = 1 << 17
NEGATION = 1 << 18
FUNCTION = 1 << 19
THIRD = 1 << 20
FILLER = 1 << 21
GERUND = 1 << 22
CLAUSE = 1 << 23
REQUEST = 1 << 24
NOUNLIKE = 1 << 25
KEYWORD = 1 << 26
WEIGHTY = 1 << 27
FOREIGN = 1 << 28
KNOWN = 1 << 29
VERB = TOOL | CHANGE | MAKE | READ | ASK | TELL
_SPELT = TOOL | CHANGE | MAKE | READ | APPROVAL
# Senses: what else a word can mean; only some sentences need them.
DATA = 1 << 0
SURFACE = 1 << 1
SECURITY = 1 << 2
KEY_OWNER = 1 << 3
BULK = 1 << 4
VAGUE = 1 << 5
TIME = 1 << 6
PRODUCTION = 1 << 7
RISKY = 1 << 8
GIVEN = 1 << 9
TEXTUAL = 1 << 10
LINGUAL = 1 << 11
HARD_FAULT = 1 << 12
KEY = 1 << 13
_KEYS = ("key", "keys")
MASK = "\x01"
"""Replaces each letter of a reference in the masked text."""
_LONGEST_MASK = 256
_WEIGHTY = SECURITY | BULK | VAGUE | RISKY | KEY


def words_of(text: str) -> frozenset[str]:
    """The words of a blank-separated list."""
    return frozenset(text.split())


# The word classes of the rule file with their flags or senses.
_WORD_FLAGS = {
    "question": QUESTION, "wh": WH, "subject": SUBJECT, "determiner": DETERMINER, "copula": COPULA, "lead": LEAD,
    "approval": APPROVAL, "negation": NEGATION, "function": FUNCTION, "filler": FILLER, "clause": CLAUSE,
    "request": REQUEST, "nounlike": NOUNLIKE, "known": KNOWN,
}  # fmt: skip
_WORD_SENSES = {"given": GIVEN, "hard_fault": HARD_FAULT}
_NOUN_FLAGS = {"work": WORK, "strong_work": STRONG_WORK, "prose": PROSE, "weak_prose": WEAK_PROSE}
_NOUN_SENSES = {
    "textual": TEXTUAL, "lingual": LINGUAL, "data": DATA, "surface": SURFACE, "security": SECURITY,
    "key_owner": KEY_OWNER, "bulk": BULK, "vague": VAGUE, "time": TIME, "production": PRODUCTION,
}  # fmt: skip
_VERB_FLAGS = {"tool": TOOL, "change": CHANGE, "make": MAKE, "read": READ, "ask": ASK, "tell": TELL}
_STATIVE = "stative"
"""The class of verbs that describe a state and are never imperatives."""


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Every known English word with flags, senses and base form, and every keyword with stem, kind and rule."""

    flags: dict[str, int]
    senses: dict[str, int]
    base: dict[str, str]
    keywords: dict[str, tuple[str, TriggerKind, str]]


def build_lexicon(english: EnglishRules, risky: Iterable[str], foreign: Iterable[str]) -> Lexicon:
    """Inflects and merges the word classes; risky verbs may trigger a debate, foreign words are distinctive of other languages."""
    _check_classes("english.words", english.words, {*_WORD_FLAGS, *_WORD_SENSES})
    _check_classes("english.nouns", english.nouns, {*_NOUN_FLAGS, *_NOUN_SENSES})
    _check_classes("english.verbs", english.verbs, {*_VERB_FLAGS, _STATIVE})
    flags: dict[str, int] = {}
    senses: dict[str, int] = {}
    for lists, marked, numbers in (
        (english.words, flags, _WORD_FLAGS),
        (english.words, senses, _WORD_SENSES),
        (english.nouns, flags, _NOUN_FLAGS),
        (english.nouns, senses, _NOUN_SENSES),
    ):
        for name, number in numbers.items():
            _mark(marked, lists[name].split(), number)
    _mark(flags, english.faults.split(), FAULT)
    base = _mark_verbs(flags, english)
    _mark(senses, (form for verb in risky for form in _present(verb, english)), RISKY)
    _mark(senses, _KEYS, KEY)
    keywords = _keywords(english)
    _mark(flags, keywords, KEYWORD)
    _mark(flags, senses, KNOWN)
    _mark(flags, [word for word in foreign if word not in flags], FOREIGN)
    _mark(flags, [word for word, sense in senses.items() if sense & _WEIGHTY], WEIGHTY)
    masks = [MASK * length for length in range(1, _LONGEST_MASK)]
    _mark(flags, masks, WORK | STRONG_WORK)
    _mark(senses, masks, DATA)
    return Lexicon(_shared(flags), _shared(senses), base, keywords)


def spelt_verbs(lexicon: Lexicon) -> list[str]:
    """The verbs of doing and the approvals, which are understood when they are misspelt."""
    return [word for word, flag in lexicon.flags.items() if flag & _SPELT and word.isascii()]


def _shared(marked: dict[str, int]) -> dict[str, int]:
    """Interns equal integers: a few hundred objects fit into the processor's cache, thousands do not."""
    numbers: dict[int, int] = {}
    return {word: numbers.setdefault(number, number) for word, number in marked.items()}


def _check_classes(rule: str, given: Mapping[str, str], known: Iterable[str]) -> None:
    """Refuses unknown and missing word classes, which would silently have no effect."""
    odd = set(given).symmetric_difference(known)
    if odd:
        raise RuleProblem(rule, f"classes missing or unknown: {', '.join(sorted(odd))}")


def _mark(flags: dict[str, int], words: Iterable[str], flag: int) -> None:
    for word in words:
        flags[word] = flags.get(word, 0) | flag


def _mark_verbs(flags: dict[str, int], english: EnglishRules) -> dict[str, str]:
    """Flags every form of every verb, and returns the base form of each."""
    base: dict[str, str] = {}
    for name, words in english.verbs.items():
        for verb in words.split():
            forms = _present(verb, english)
            if name == _STATIVE:
                _mark(flags, forms[:2], THIRD)
                continue
            for form, flag in zip(forms, (_VERB_FLAGS[name], THIRD, GERUND), strict=True):
                _mark(flags, [form], flag)
                base.setdefault(form, verb)
    return base


def _keywords(english: EnglishRules) -> dict[str, tuple[str, TriggerKind, str]]:
    """The stem, the kind and the rule of every form that counts as a trigger."""
    found = {
        form: (verb, TriggerKind.KEYWORD, f"keyword.{group}")
        for group, words in english.keywords.items()
        for verb in words.split()
        for form in _present(verb, english)
    }
    indicators = english.code_indicators.split()
    return found | {word: (word, TriggerKind.CODE_INDICATOR, "code_indicator") for word in indicators}


def _present(verb: str, english: EnglishRules) -> tuple[str, str, str]:
    """Base form, third person and gerund of a verb; the past tense never asks for anything."""
    return verb, _third_person(verb), _gerund(verb, english.doubling.split())


def _third_person(verb: str) -> str:
    if verb.endswith(("s", "sh", "ch", "x", "z", "o")):
        return verb + "es"
    if verb.endswith("y") and verb[-2:-1] not in "aeiou":
        return verb[:-1] + "ies"
    return verb + "s"


def _gerund(verb: str, doubling: list[str]) -> str:
    if verb in doubling:
        return verb + verb[-1] + "ing"
    if verb.endswith("e") and not verb.endswith(("ee", "ye", "oe")):
        return verb[:-1] + "ing"
    return verb + "ing"
