"""What an English sentence does: ask, tell, order, approve, wish, report a fault, or just talk."""

import re
from dataclasses import dataclass
from enum import StrEnum

from pointsman.services.router.domain.lexicon import VERB, Lexicon, Word
from pointsman.services.router.domain.scan import MASK, PatternSet

# Single character classes only, each followed by what it excludes: no backtracking beyond one character.
_TOKEN = re.compile(r"\w(?:[\w'+#]|[.-](?=\w))*|\x01+|[^\s\w]")
_BOUNDARY = re.compile(r"(?<=[.!?])[\s\"')]+|\n+|;\s")
_CLAUSE_MARKS = frozenset(
    {",", "and", "then", "but", "or", ":", "-", "–", "—", "(", "so", "also", "please", ";", "after", "if"}
)
_OBJECTS = frozenset("the a an my our your its their this these those all every each both it them".split())
_REQUESTS = frozenset({"can", "could", "would", "will"})
_PARTNERS = frozenset({"you", "u", "we", "someone", "anyone", "somebody"})
_VERB_ENDINGS = ("ize", "ise", "ify")

TOOL, CHANGE, MAKE, READ, ASK, TELL = (int(Word[name]) for name in ("TOOL", "CHANGE", "MAKE", "READ", "ASK", "TELL"))
WORK, STRONG_WORK, PROSE, WEAK_PROSE = (int(Word[name]) for name in ("WORK", "STRONG_WORK", "PROSE", "WEAK_PROSE"))
FAULT, QUESTION, WH, SUBJECT = (int(Word[name]) for name in ("FAULT", "QUESTION", "WH", "SUBJECT"))
DETERMINER, COPULA, LEAD, APPROVAL = (int(Word[name]) for name in ("DETERMINER", "COPULA", "LEAD", "APPROVAL"))
NEGATION, FUNCTION, THIRD, FILLER = (int(Word[name]) for name in ("NEGATION", "FUNCTION", "THIRD", "FILLER"))
GERUND = int(Word.GERUND)
_REFERENCE = WORK | STRONG_WORK | int(Word.DATA)
_SKIPPED = LEAD | FILLER


class Act(StrEnum):
    """What a sentence does; the value is the rule that says so."""

    ORDER = "order.verb"
    APPROVAL = "order.approval"
    COMMAND = "order.command_line"
    WISH = "order.wish"
    FAULT = "order.fault_report"
    CODE = "order.names_code"
    QUESTION = "talk.question"
    REQUEST = "talk.request"
    ACKNOWLEDGEMENT = "talk.acknowledgement"
    STATEMENT = "talk.statement"


ACTIVE = frozenset({Act.ORDER, Act.APPROVAL, Act.COMMAND, Act.WISH, Act.FAULT, Act.CODE})


@dataclass(frozen=True, slots=True)
class Order:
    """One thing that a sentence says to do: the verb's base form, what it can be, and where it stands."""

    verb: str
    flags: int
    at: int
    work: bool


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence that has been read."""

    act: Act
    text: str
    words: list[str]
    flags: list[int]
    orders: tuple[Order, ...] = ()


@dataclass(frozen=True, slots=True)
class English:
    """Everything that reading English needs."""

    lexicon: Lexicon
    phrases: PatternSet
    commands: frozenset[str]
    launchers: frozenset[str]
    launcher_verbs: frozenset[str]


def read_english(english: English, text: str, has_identifier: bool) -> list[Sentence]:
    """Read each sentence of a lower-case text whose references are masked."""
    sentences = []
    for piece in _BOUNDARY.split(text):
        words = _TOKEN.findall(piece)
        if words:
            sentences.append(_read(english, piece, words, has_identifier))
    return sentences


def _read(english: English, text: str, words: list[str], has_identifier: bool) -> Sentence:
    known = english.lexicon.flags
    flags = [known.get(word, 0) for word in words]
    if MASK in text:
        flags = [_REFERENCE if word[0] == MASK else flag for word, flag in zip(words, flags, strict=True)]
    start = _skip_leads(words, flags)
    if start == len(words):
        approving = any(flag & APPROVAL for flag in flags)
        return Sentence(Act.APPROVAL if approving else Act.ACKNOWLEDGEMENT, text, words, flags)
    if _is_command_line(english, words, text):
        return Sentence(Act.COMMAND, text, words, flags)
    asking = _is_question(words, flags, start)
    orders = _requests(english, words, flags) if asking else _orders(english, words, flags, start, text)
    if orders:
        act = Act.ORDER if any(order.work for order in orders) else Act.REQUEST
        return Sentence(act, text, words, flags, tuple(orders))
    if asking:
        return Sentence(Act.QUESTION, text, words, flags)
    return _read_statement(english, text, words, flags, has_identifier)


def _skip_leads(words: list[str], flags: list[int]) -> int:
    """Pass over short acknowledgements, greetings and fillers at the beginning."""
    at = 0
    for word, flag in zip(words, flags, strict=True):
        if not (flag & LEAD or not word[0].isalnum() and word[0] not in MASK + "/") and not word.endswith("ly"):
            break
        at += 1
    return at


def _is_command_line(english: English, words: list[str], text: str) -> bool:
    first = words[1] if words[0] == "$" and len(words) > 1 else words[0]
    if first not in english.commands:
        return False
    second = words[1] if len(words) > 1 else ""
    if first in english.launchers and second in english.launcher_verbs:
        return True
    return "command" in english.phrases.matching(text.strip()) and words[-1] != "?"


def _is_question(words: list[str], flags: list[int], start: int) -> bool:
    if words[-1] == "?":
        return True
    first, flag = words[start], flags[start]
    if not flag & QUESTION:
        return False
    following = flags[start + 1] if start + 1 < len(words) else 0
    if flag & WH:
        return True
    if first in ("when", "where"):
        return bool(following & QUESTION)
    return bool(
        following & SUBJECT or following & DETERMINER and not flag & VERB and first not in ("do", "have", "don't")
    )


def _requests(english: English, words: list[str], flags: list[int]) -> list[Order]:
    """Orders dressed as questions: can you …, would you mind …, and a please in the middle."""
    found = []
    for at, word in enumerate(words[:-1]):
        if word in _REQUESTS and words[at + 1] in _PARTNERS:
            verb = _skip_fillers(words, flags, at + 2)
            order = _order_at(english, words, flags, verb, gerunds=True)
            if order is not None and (words[at + 1] != "we" or order.work):
                found.append(order)
        elif word in ("please", "pls") and at:
            order = _order_at(english, words, flags, at + 1)
            if order is not None:
                found.append(order)
    if found:
        found.extend(_later_orders(english, words, flags, found[-1].at + 1))
    return found


def _skip_fillers(words: list[str], flags: list[int], at: int) -> int:
    while at < len(words) - 1 and (flags[at] & FILLER or words[at] in (",", "mind") or words[at].endswith("ly")):
        at += 1
    return at


def _orders(english: English, words: list[str], flags: list[int], start: int, text: str) -> list[Order]:
    """The orders of a sentence that is no question."""
    first = _order_at(english, words, flags, start)
    if first is not None:
        return [first, *_later_orders(english, words, flags, first.at + 1)]
    if words[start] in ("you", "your") and (to := _after_duty(words)):
        order = _order_at(english, words, flags, _skip_fillers(words, flags, to))
        return [] if order is None else [order, *_later_orders(english, words, flags, order.at + 1)]
    if "plan" in english.phrases.matching(text):
        return []
    return [order for order in _later_orders(english, words, flags, start) if _is_firm(order, words, flags)]


def _after_duty(words: list[str]) -> int:
    """Where the verb stands in: you need to …, your task is to …, you must …."""
    for at, word in enumerate(words[:-1]):
        if word == "to" and at and words[at - 1] in ("need", "is", "have", "tasked", "want"):
            return at + 1
        if word in ("must", "should") and at:
            return at + 1
    return 0


def _later_orders(english: English, words: list[str], flags: list[int], start: int) -> list[Order]:
    """Orders at the beginning of later clauses."""
    found = []
    for at in range(start, len(words) - 1):
        if words[at] in _CLAUSE_MARKS:
            order = _order_at(english, words, flags, at + 1, later=True)
            if order is not None:
                found.append(order)
    return found


def _is_firm(order: Order, words: list[str], flags: list[int]) -> bool:
    """After a statement only a clear imperative counts: a comma or please before it, an object after it."""
    before = words[order.at - 1]
    after = flags[order.at + 1] if order.at + 1 < len(words) else 0
    return order.work and (before in ("please", "then", "so", "also") or bool(after & (DETERMINER | WORK)))


def _order_at(
    english: English, words: list[str], flags: list[int], at: int, *, later: bool = False, gerunds: bool = False
) -> Order | None:
    """The order whose verb stands here, after any fillers."""
    while at < len(words) - 1 and _is_filler(words, flags, at):
        at += 1
    if at >= len(words) or _is_negated(words, at):
        return None
    word, flag = words[at], flags[at]
    if word in ("let's", "lets") and at + 1 < len(words):
        return _order_at(english, words, flags, at + 1)
    if word == "help" and at + 2 < len(words) and words[at + 1] in ("me", "us"):
        return _order_at(english, words, flags, _skip_fillers(words, flags, at + 1))
    if flag & VERB:
        return None if _is_noun_here(words, flags, at) else _make_order(english, words, flags, at)
    following = words[at + 1] if at + 1 < len(words) else ""
    if flag & THIRD and not later and following and (following in _OBJECTS or following[0] in "'\"" + MASK):
        return _make_order(english, words, flags, at)
    if flag & GERUND and gerunds:
        return _make_order(english, words, flags, at)
    if flag == 0 and not later and _looks_like_verb(word, following):
        return Order(word, CHANGE, at, _is_work(words, flags, at, CHANGE))
    return None


def _is_filler(words: list[str], flags: list[int], at: int) -> bool:
    flag = flags[at]
    if words[at].endswith("ly") and not flag & VERB:
        return True
    return bool(flag & _SKIPPED) and not (flag & VERB and not flag & LEAD) and not words[at] == "let's"


def _is_negated(words: list[str], at: int) -> bool:
    """Don't fix, no need to fix, never fix: that asks for nothing."""
    if words[at] in ("don't", "dont", "never"):
        return True
    before = words[max(0, at - 3) : at]
    return bool(before) and (before[-1] in ("don't", "dont", "never", "not") or before[-3:] == ["no", "need", "to"])


def _is_noun_here(words: list[str], flags: list[int], at: int) -> bool:
    """Test results are …, build failed, search of …: the word is no verb here."""
    if at + 1 >= len(words):
        return False
    following = flags[at + 1]
    if words[at + 1] in ("'s", "of", "vs"):
        return True
    if following & COPULA and not following & DETERMINER:
        return not (words[at + 1] in ("and", "or", "all") or flags[at] & TELL)
    if following & FAULT and at + 2 >= len(words) and not flags[at] & TELL:
        return words[at + 1] in ("failed", "fails", "failing", "broke", "broken", "crashed", "crashes")
    return at + 2 < len(words) and bool(
        following & WORK and flags[at + 2] & COPULA and words[at + 2] not in ("and", "or")
    )


def _looks_like_verb(word: str, following: str) -> bool:
    """An unlisted word right before an object, or with the ending of a verb, is taken for an order."""
    if not word.isalpha() or word.endswith(("ing", "ed", "s", "ly", "ion")):
        return False
    return following in _OBJECTS or (len(word) > 5 and word.endswith(_VERB_ENDINGS))


def _make_order(english: English, words: list[str], flags: list[int], at: int) -> Order:
    verb = english.lexicon.base.get(words[at], words[at])
    flag = english.lexicon.flags.get(verb, 0) & VERB
    return Order(verb, flag, at, _is_work(words, flags, at, flag))


def _is_work(words: list[str], flags: list[int], at: int, verb: int) -> bool:
    """Whether the order's object lies in files, web or code (work), or in prose that can be answered (talk)."""
    if verb & TOOL:
        return True
    if verb & TELL:
        return False
    seen = 0
    first = 0
    for flag in flags:
        seen |= flag
        if not first and flag & (WORK | PROSE):
            first = flag
    given = "given" in words or "following" in words
    if verb & MAKE:
        return bool(first & WORK) or not (first & PROSE or seen & WEAK_PROSE)
    if verb & ASK and not verb & (CHANGE | READ):
        return bool(first & WORK) and not first & PROSE
    if seen & STRONG_WORK or first & WORK:
        return True
    return not (first & PROSE or given or verb & ASK and verb & READ and seen & WEAK_PROSE)


def _read_statement(english: English, text: str, words: list[str], flags: list[int], has_identifier: bool) -> Sentence:
    """A sentence that neither asks nor orders: approval, wish, fault report, code by name, or talk."""
    phrases = english.phrases.matching(text)
    seen = 0
    for flag in flags:
        seen |= flag
    act = Act.STATEMENT
    if "approval" in phrases and not seen & FAULT:
        act = Act.APPROVAL
    elif "plan" in phrases:
        act = Act.STATEMENT
    elif "personal_wish" in phrases:
        act = Act.REQUEST
    elif "wish" in phrases and not (seen & PROSE and not seen & WORK):
        act = Act.WISH
    elif _is_fault(words, seen, phrases):
        act = Act.FAULT
    elif has_identifier and "talk.topic" not in phrases:
        act = Act.CODE
    return Sentence(act, text, words, flags)


def _is_fault(words: list[str], seen: int, phrases: tuple[str, ...]) -> bool:
    """Something is said not to work; a feeling or a polite phrase is no fault."""
    if "no_fault" in phrases or not (seen & FAULT or "fault" in phrases):
        return False
    personal = words[0] in ("i", "my", "i'm", "i've", "we", "you") and not seen & WORK
    return not (seen & PROSE and not seen & WORK) and (not personal or bool(seen & FAULT))
