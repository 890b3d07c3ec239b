"""English words as flags: the rule file's lists, inflected once, so that a message needs one look-up per word."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntFlag

from pointsman.services.router.domain.document import EnglishRules, RuleProblem


class Word(IntFlag):
    """What a word can be."""

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
    DATA = 1 << 10
    SURFACE = 1 << 11
    SECURITY = 1 << 12
    KEY_OWNER = 1 << 13
    BULK = 1 << 14
    VAGUE = 1 << 15
    TIME = 1 << 16
    PRODUCTION = 1 << 17
    FAULT = 1 << 18
    QUESTION = 1 << 19
    WH = 1 << 20
    SUBJECT = 1 << 21
    DETERMINER = 1 << 22
    COPULA = 1 << 23
    LEAD = 1 << 24
    APPROVAL = 1 << 25
    NEGATION = 1 << 26
    FUNCTION = 1 << 27
    THIRD = 1 << 28
    FILLER = 1 << 29
    GERUND = 1 << 30
    CLAUSE = 1 << 31
    REQUEST = 1 << 32
    RISKY = 1 << 33
    GIVEN = 1 << 34
    TEXTUAL = 1 << 35
    HARD_FAULT = 1 << 36
    LINGUAL = 1 << 37
    NOUNLIKE = 1 << 38


# Flags as plain numbers: combining the members of an enum costs more than all the rest of a look-up.
TOOL, CHANGE, MAKE, READ, ASK, TELL = (int(Word[name]) for name in ("TOOL", "CHANGE", "MAKE", "READ", "ASK", "TELL"))
WORK, STRONG_WORK, PROSE, WEAK_PROSE = (int(Word[name]) for name in ("WORK", "STRONG_WORK", "PROSE", "WEAK_PROSE"))
FAULT, QUESTION, WH, SUBJECT = (int(Word[name]) for name in ("FAULT", "QUESTION", "WH", "SUBJECT"))
DETERMINER, COPULA, LEAD, APPROVAL = (int(Word[name]) for name in ("DETERMINER", "COPULA", "LEAD", "APPROVAL"))
THIRD, FILLER, GERUND = (int(Word[name]) for name in ("THIRD", "FILLER", "GERUND"))
FUNCTION = int(Word.FUNCTION)
CLAUSE, REQUEST, NEGATION = int(Word.CLAUSE), int(Word.REQUEST), int(Word.NEGATION)
DATA, SURFACE, SECURITY, KEY_OWNER = (int(Word[name]) for name in ("DATA", "SURFACE", "SECURITY", "KEY_OWNER"))
BULK, VAGUE, TIME, PRODUCTION = (int(Word[name]) for name in ("BULK", "VAGUE", "TIME", "PRODUCTION"))
RISKY, GIVEN, TEXTUAL = int(Word.RISKY), int(Word.GIVEN), int(Word.TEXTUAL)
HARD_FAULT, LINGUAL, NOUNLIKE = int(Word.HARD_FAULT), int(Word.LINGUAL), int(Word.NOUNLIKE)
VERB = int(Word.TOOL | Word.CHANGE | Word.MAKE | Word.READ | Word.ASK | Word.TELL)
_WORD_CLASSES = (
    "question",
    "wh",
    "subject",
    "determiner",
    "copula",
    "lead",
    "approval",
    "negation",
    "function",
    "filler",
    "clause",
    "request",
    "given",
    "hard_fault",
    "nounlike",
)
_NOUN_CLASSES = (
    "work",
    "strong_work",
    "prose",
    "weak_prose",
    "textual",
    "lingual",
    "data",
    "surface",
    "security",
    "key_owner",
    "bulk",
    "vague",
    "time",
    "production",
)
_VERB_CLASSES = ("tool", "change", "make", "read", "ask", "tell")


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Every known English word with its flags, and every counted form with its stem."""

    flags: Mapping[str, int]
    stems: Mapping[str, str]
    base: Mapping[str, str]
    keyword_rules: Mapping[str, str]


def build_lexicon(english: EnglishRules, risky: Iterable[str]) -> Lexicon:
    """Inflect and merge the lists; risky are the verbs that may start a debate."""
    flags: dict[str, int] = {}
    _check_classes("english.words", english.words, _WORD_CLASSES)
    _check_classes("english.nouns", english.nouns, _NOUN_CLASSES)
    _check_classes("english.verbs", english.verbs, _VERB_CLASSES)
    for name, words in (*english.words.items(), *english.nouns.items()):
        _mark(flags, words.split(), Word[name.upper()])
    _mark(flags, english.faults.split(), Word.FAULT)
    base: dict[str, str] = {}
    for name, words in english.verbs.items():
        for verb in words.split():
            _mark_verb(flags, base, verb, Word[name.upper()], english)
    _mark(flags, (form for verb in risky for form in _present(verb, english)), Word.RISKY)
    keyword_rules = {word: f"keyword.{group}" for group, words in english.keywords.items() for word in words.split()}
    stems = {form: verb for verb in keyword_rules for form in _present(verb, english)}
    return Lexicon(flags, stems, base, keyword_rules)


def _check_classes(rule: str, given: Mapping[str, str], known: Iterable[str]) -> None:
    """A class the procedure does not know would be silently without effect: refuse it."""
    odd = set(given).symmetric_difference(known)
    if odd:
        raise RuleProblem(rule, f"classes missing or unknown: {', '.join(sorted(odd))}")


def _mark(flags: dict[str, int], words: Iterable[str], flag: Word) -> None:
    for word in words:
        flags[word] = flags.get(word, 0) | int(flag)


def _mark_verb(flags: dict[str, int], base: dict[str, str], verb: str, flag: Word, english: EnglishRules) -> None:
    forms = _present(verb, english)
    _mark(flags, forms[:1], flag)
    _mark(flags, forms[1:2], Word.THIRD)
    _mark(flags, forms[2:3], Word.GERUND)
    for form in forms:
        base.setdefault(form, verb)


def _present(verb: str, english: EnglishRules) -> tuple[str, str, str]:
    """The forms that can ask for something: base, third person, gerund. Past tense asks for nothing."""
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
