"""What an English sentence does: ask, tell, order, approve, wish, report a fault, or just talk."""

import functools
import itertools
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from pointsman.services.router.domain.lexicon import VERB, Lexicon, Word
from pointsman.services.router.domain.scan import MASK, PatternSet

_BREAK = "\x02"
_BREAKS = ((". ", " \x02 "), ("! ", " \x02 "), ("? ", " ? \x02 "), ("\n", " \x02 "), ("; ", " \x02 "))
_MARKS = (
    ",",
    ":",
    "?",
    "(",
    ")",
    '"',
    "`",
    "/",
    "!",
    " '",
    "' ",
    "=",
    "[",
    "]",
    "{",
    "}",
    "<",
    ">",
    "|",
    "&",
    ";",
    "…",
)
_FOREIGN_MARKS = ("“", "”", "—", "–", "。", "，", "？", "！", "、", "：", "«", "»", "‘")
_OBJECTS = frozenset(
    {"the", "a", "an", "my", "our", "your", "its", "their", "this", "these", "those", "all", "every", "each"}
    | {"both", "it", "them"}
)
_PARTNERS = frozenset({"you", "u", "we", "someone", "anyone", "somebody"})
_PERSONS = frozenset({"i", "you", "we", "they"})
_DETERMINERS = frozenset({"the", "a", "an", "my", "our", "your", "this", "it"})
_COMMAND_MARKS = frozenset("-~.*$\"'`|&;<>" + MASK)
_VERB_ENDINGS = ("ize", "ise", "ify")
_NOTHING: frozenset[str] = frozenset()
_WHOLE_TEXT = frozenset({MASK, "shape.identifier"})
_ZEROS = itertools.repeat(0)

TOOL, CHANGE, MAKE, READ, ASK, TELL = (int(Word[name]) for name in ("TOOL", "CHANGE", "MAKE", "READ", "ASK", "TELL"))
WORK, STRONG_WORK, PROSE, WEAK_PROSE = (int(Word[name]) for name in ("WORK", "STRONG_WORK", "PROSE", "WEAK_PROSE"))
FAULT, QUESTION, WH, SUBJECT = (int(Word[name]) for name in ("FAULT", "QUESTION", "WH", "SUBJECT"))
DETERMINER, COPULA, LEAD, APPROVAL = (int(Word[name]) for name in ("DETERMINER", "COPULA", "LEAD", "APPROVAL"))
THIRD, FILLER, GERUND = (int(Word[name]) for name in ("THIRD", "FILLER", "GERUND"))
FUNCTION = int(Word.FUNCTION)
CLAUSE, ASKED, NEGATION = int(Word.CLAUSE), int(Word.REQUEST), int(Word.NEGATION)
_REFERENCE = WORK | STRONG_WORK | int(Word.DATA)
_NOUN = WORK | PROSE
_TEXT = PROSE | WEAK_PROSE
_OBJECT_START = DETERMINER | WORK
_SKIPPED = LEAD | FILLER
_NOUN_SIGNS = COPULA | FAULT | WORK


class Act(StrEnum):
    """What a sentence does; the value is the rule that says so."""

    __hash__ = str.__hash__

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


# Looking up a member costs more than the rest of most functions here: they are looked up once.
_ORDER, _APPROVAL, _COMMAND, _WISH, _FAULT, _CODE, _QUESTION, _REQUEST, _ACKNOWLEDGEMENT, _STATEMENT = Act
ACTIVE = frozenset({Act.ORDER, Act.APPROVAL, Act.COMMAND, Act.WISH, Act.FAULT, Act.CODE})


class Place(StrEnum):
    """Where an order may stand; the later, the plainer it has to be."""

    __hash__ = str.__hash__

    FIRST = "first"
    REQUESTED = "requested"
    LATER = "later"


_FIRST, _REQUESTED, _LATER = Place


class Order(NamedTuple):
    """One thing that a sentence says to do: the verb's base form, what it can be, and where it stands."""

    verb: str
    flags: int
    at: int
    work: bool


@dataclass(slots=True)
class Sentence:
    """A sentence while it is read: its words, what each can be, the phrases in it, and what it does."""

    words: list[str]
    flags: list[int]
    hits: frozenset[str]
    seen: int
    act: Act = _STATEMENT
    orders: Sequence[Order] = ()


@dataclass(frozen=True, slots=True)
class English:
    """Everything that reading English needs."""

    lexicon: Lexicon
    phrases: PatternSet
    commands: frozenset[str]
    launchers: frozenset[str]
    launcher_verbs: frozenset[str]


def tokens_of(text: str) -> list[str]:
    """The words and marks of a lower-case text, and a break between sentences; a dot inside a word stays there."""
    spaced = text.rstrip().rstrip(".! ")
    for mark, apart in _BREAKS:
        if mark in spaced:
            spaced = spaced.replace(mark, apart)
    for mark in _MARKS if text.isascii() else _MARKS + _FOREIGN_MARKS:
        if mark in spaced:
            spaced = spaced.replace(mark, f" {mark} ")
    return spaced.split()


def read_english(english: English, tokens: list[str], hits: frozenset[str]) -> list[Sentence]:
    """Read each sentence of a lower-case text whose references are masked."""
    if _BREAK in tokens:
        return [_read(english, words, _own_hits(english, words, hits)) for words in _split(tokens)]
    return [_read(english, tokens, hits)] if tokens else []


def _own_hits(english: English, words: list[str], hits: frozenset[str]) -> frozenset[str]:
    """Which phrases stand in this sentence, when some stand in the whole message."""
    found = frozenset(english.phrases.matching(" ".join(words))) if hits else _NOTHING
    return found | (hits & _WHOLE_TEXT)


def _split(tokens: list[str]) -> list[list[str]]:
    sentences: list[list[str]] = [[]]
    for token in tokens:
        if token == _BREAK:
            sentences.append([])
        else:
            sentences[-1].append(token)
    return [words for words in sentences if words]


def _read(english: English, words: list[str], hits: frozenset[str]) -> Sentence:
    flags = list(map(english.lexicon.flags.get, words, _ZEROS))
    if MASK in hits:
        _mark_references(words, flags)
    sentence = Sentence(words, flags, hits, functools.reduce(operator.or_, flags))
    start = _skip_leads(words, flags)
    if start == len(words):
        approving = sentence.seen & APPROVAL and words[-1] != "?"
        sentence.act = _APPROVAL if approving else _ACKNOWLEDGEMENT
    elif words[0] in english.commands and is_command_line(english, words):
        sentence.act = _COMMAND
    else:
        _read_clauses(english, sentence, start)
    return sentence


def _mark_references(words: list[str], flags: list[int]) -> None:
    for at, word in enumerate(words):
        if word[0] == MASK:
            flags[at] = _REFERENCE


def _skip_leads(words: list[str], flags: list[int]) -> int:
    """Pass over short acknowledgements, greetings and marks at the beginning."""
    if words[0] == "(" and ")" in words[:6]:
        return min(len(words) - 1, words.index(")") + 1)
    for at, flag in enumerate(flags):
        if flag & LEAD:
            continue
        word = words[at]
        if flag or word[0] == MASK or (word[0].isalnum() and not word.endswith("ly")):
            return at
    return len(words)


def is_command_line(english: English, words: list[str]) -> bool:
    """The message is a command as one types it: a program with a subcommand, a flag, a path, or nothing."""
    if words[-1][0] == "?":
        return False
    if len(words) == 1:
        return words[0] not in english.lexicon.flags or words[0] in english.launchers
    second = words[1]
    if words[0] in english.launchers and second in english.launcher_verbs:
        return _DETERMINERS.isdisjoint(words)
    return second[0] in _COMMAND_MARKS and second not in ("-", "–", "—")


def _read_clauses(english: English, sentence: Sentence, start: int) -> None:
    asking = _is_question(sentence, start)
    orders = _requests(english, sentence, start) if asking else _orders(english, sentence, start)
    if orders:
        sentence.orders = orders
        sentence.act = _REQUEST
        for order in orders:
            if order.work:
                sentence.act = _ORDER
                return
    elif asking:
        sentence.act = _QUESTION
    else:
        sentence.act = _statement(sentence)


def _is_question(sentence: Sentence, start: int) -> bool:
    words = sentence.words
    if words[-1][0] == "?":
        return True
    flag = sentence.flags[start]
    if not flag & QUESTION:
        return False
    if flag & WH:
        return True
    following = sentence.flags[start + 1] if start + 1 < len(words) else 0
    first = words[start]
    if first in ("when", "where"):
        return bool(following & QUESTION)
    if first in ("do", "have", "don't"):
        return words[start + 1] in _PERSONS if start + 1 < len(words) else False
    return bool(following & (SUBJECT | DETERMINER)) and not flag & VERB


def _requests(english: English, sentence: Sentence, start: int) -> list[Order]:
    """Orders dressed as questions: can you …, would you mind …, and a please in the middle."""
    found: list[Order] = []
    if not sentence.seen & ASKED:
        return found
    words, flags = sentence.words, sentence.flags
    for at in range(len(words) - 1):
        if not flags[at] & ASKED:
            continue
        order = None
        if words[at + 1] in _PARTNERS and _opens_clause(sentence, start, at):
            order = _order_at(english, sentence, _skip_fillers(sentence, at + 2), _REQUESTED)
            if order is not None and words[at + 1] == "we" and not order.work:
                order = None
        elif words[at] in ("please", "pls") and at:
            order = _order_at(english, sentence, at + 1, _FIRST)
        if order is not None:
            found.append(order)
    return found + _later_orders(english, sentence, found[-1].at + 1) if found else found


def _opens_clause(sentence: Sentence, start: int, at: int) -> bool:
    """What can you do, how can you: the question word rules, unless a clause begins in between."""
    if at and sentence.flags[at - 1] & WH:
        return False
    return not (sentence.flags[start] & WH and at > start and not sentence.flags[at - 1] & CLAUSE)


def _skip_fillers(sentence: Sentence, at: int) -> int:
    words, flags = sentence.words, sentence.flags
    while at < len(words) - 1 and (flags[at] & FILLER or words[at] in (",", "mind") or words[at].endswith("ly")):
        at += 1
    return at


def _orders(english: English, sentence: Sentence, start: int) -> list[Order]:
    """The orders of a sentence that is no question."""
    words = sentence.words
    first = _order_at(english, sentence, start, _FIRST)
    if first is None and words[start] in ("you", "your"):
        first = _order_at(english, sentence, _skip_fillers(sentence, _after_duty(words)), _FIRST)
    if first is not None:
        return [first, *_later_orders(english, sentence, first.at + 1)]
    if "plan" in sentence.hits:
        return []
    return [order for order in _later_orders(english, sentence, start) if _is_firm(order, sentence)]


def _after_duty(words: list[str]) -> int:
    """Where the verb stands in: you need to …, your task is to …, you must …; past the end without a duty."""
    for at, word in enumerate(words[:-1]):
        if word == "to" and at and words[at - 1] in ("need", "is", "have", "tasked", "want"):
            return at + 1
        if word in ("must", "should") and at:
            return at + 1
    return len(words)


def _later_orders(english: English, sentence: Sentence, start: int) -> list[Order]:
    """Orders at the beginning of later clauses."""
    found: list[Order] = []
    if not sentence.seen & CLAUSE:
        return found
    flags = sentence.flags
    for at in range(start, len(flags) - 1):
        if flags[at] & CLAUSE and not flags[at + 1] & CLAUSE:
            order = _order_at(english, sentence, at + 1, _LATER)
            if order is not None and not (found and found[-1].at == order.at):
                found.append(order)
    return found


def _is_firm(order: Order, sentence: Sentence) -> bool:
    """After a statement only a clear imperative counts: please before it, or an object after it."""
    after = sentence.flags[order.at + 1] if order.at + 1 < len(sentence.words) else 0
    return order.work and (
        sentence.words[order.at - 1] in ("please", "then", "so", "also") or bool(after & _OBJECT_START)
    )


def _order_at(english: English, sentence: Sentence, at: int, place: Place) -> Order | None:
    """The order whose verb stands here, after any fillers."""
    words, flags = sentence.words, sentence.flags
    last = len(words) - 1
    while at < last and _is_filler(words[at], flags[at]):
        at += 1
    if at > last or (sentence.seen & NEGATION and _is_negated(words, at)):
        return None
    flag = flags[at]
    if flag & VERB:
        if words[at] == "help" and at + 1 < last and words[at + 1] in ("me", "us"):
            return _order_at(english, sentence, _skip_fillers(sentence, at + 1), _FIRST)
        if at < last and flags[at + 1] & _NOUN_SIGNS and _is_noun_here(words, flags, at):
            return None
        return Order(words[at], flag & VERB, at, _is_work(sentence, at, flag))
    if at < last and words[at] == "let's":
        return _order_at(english, sentence, at + 1, _FIRST)
    return _unusual_order(english, sentence, at, place)


def _unusual_order(english: English, sentence: Sentence, at: int, place: Place) -> Order | None:
    """Orders by other forms: copies the …, would you mind adding …, and verbs that no list knows."""
    words, flag = sentence.words, sentence.flags[at]
    following = words[at + 1] if at + 1 < len(words) else " "
    if place is _REQUESTED and flag & GERUND:
        return _make_order(english, sentence, at)
    if place is _LATER:
        return None
    if flag & THIRD and _is_third_person_order(sentence, at, following):
        return _make_order(english, sentence, at)
    if flag == 0 and _looks_like_verb(words[at], following):
        return Order(words[at], CHANGE, at, _is_work(sentence, at, CHANGE))
    return None


def _is_third_person_order(sentence: Sentence, at: int, following: str) -> bool:
    """Copies the file, prints each line: as commands are described. Tests are …, updates to …: are nouns."""
    if following in _OBJECTS or following[0] in "'\"\x01":
        return True
    after = sentence.flags[at + 1] if at + 1 < len(sentence.words) else FUNCTION
    return not sentence.flags[at] & WORK and not after & (FUNCTION | COPULA | FAULT) and following[0].isalnum()


def _is_filler(word: str, flag: int) -> bool:
    if flag & VERB:
        return bool(flag & LEAD)
    if flag & _SKIPPED:
        return True
    return not flag and (word.endswith("ly") or not (word[0].isalnum() or word[0] == MASK))


def _is_negated(words: list[str], at: int) -> bool:
    """Don't fix, no need to fix, never fix: that asks for nothing."""
    if words[at] in ("don't", "dont", "never"):
        return True
    if not at:
        return False
    return words[at - 1] in ("don't", "dont", "never", "not") or words[max(0, at - 3) : at] == ["no", "need", "to"]


def _is_noun_here(words: list[str], flags: list[int], at: int) -> bool:
    """Test results are …, build failed, search of …: the word is no verb here."""
    word, following = words[at + 1], flags[at + 1]
    if word in ("of", "vs"):
        return True
    if following & COPULA and not following & DETERMINER:
        return not (word in ("and", "or") or flags[at] & TELL)
    if word in ("failed", "fails", "failing", "broke", "broken", "crashed", "crashes"):
        return not flags[at] & TELL
    return bool(following & WORK) and at + 2 < len(words) and _is_predicate(words[at + 2], flags[at + 2])


def _is_predicate(word: str, flag: int) -> bool:
    return bool(flag & COPULA) and word not in ("and", "or", "of", "look")


def _looks_like_verb(word: str, following: str) -> bool:
    """An unlisted word right before an object, or with the ending of a verb, is taken for an order."""
    if not word.isalpha() or word.endswith(("ing", "ed", "s", "ly", "ion")):
        return False
    return following in _OBJECTS or (len(word) > 5 and word.endswith(_VERB_ENDINGS))


def _make_order(english: English, sentence: Sentence, at: int) -> Order:
    verb = english.lexicon.base.get(sentence.words[at], sentence.words[at])
    flag = english.lexicon.flags.get(verb, 0) & VERB
    return Order(verb, flag, at, _is_work(sentence, at, flag))


def _is_work(sentence: Sentence, at: int, verb: int) -> bool:
    """Whether the order's object lies in files, web or code (work), or in prose that can be answered (talk)."""
    if verb & (TOOL | TELL):
        return bool(verb & TOOL)
    flags = sentence.flags
    seen = (
        sentence.seen if not flags[at] & WEAK_PROSE else functools.reduce(operator.or_, flags[:at] + flags[at + 1 :], 0)
    )
    first = seen & _NOUN if seen & _NOUN != _NOUN else _first_noun(flags)
    if verb & MAKE:
        return bool(first & WORK) or not (first & PROSE or seen & WEAK_PROSE)
    if seen & STRONG_WORK and not (verb & ASK and first & PROSE):
        return True
    if verb & ASK and not verb & (CHANGE | READ):
        return bool(first & WORK) and not seen & _TEXT
    return bool(first & WORK) or not (
        first & PROSE or _is_given(sentence) or (verb & ASK and verb & READ and seen & WEAK_PROSE)
    )


def _is_given(sentence: Sentence) -> bool:
    return "given" in sentence.words or "following" in sentence.words


def _first_noun(flags: list[int]) -> int:
    """Where work and prose are both named, the first rules: a poem about tests, a test of poems."""
    return next(flag & _NOUN for flag in flags if flag & _NOUN)


def belongs_to_talk(sentence: Sentence) -> bool:
    """How the answer to a request before should look: output yes or no, it should have three lines."""
    if sentence.seen & WORK or sentence.act in (_COMMAND, _CODE):
        return False
    return all(order.flags & ASK for order in sentence.orders)


def _statement(sentence: Sentence) -> Act:
    """A sentence that neither asks nor orders: approval, wish, fault report, code by name, or talk."""
    hits, seen = sentence.hits, sentence.seen
    if "plan" in hits:
        return _STATEMENT
    if "approval" in hits and not seen & FAULT:
        return _APPROVAL
    if "personal_wish" in hits:
        return _REQUEST
    work = bool(seen & WORK) or not seen & PROSE
    if "wish" in hits and work:
        return _WISH
    if work and (_is_fault(sentence) or _is_behaviour(sentence)):
        return _FAULT
    return _CODE if "shape.identifier" in hits and "talk.topic" not in hits else _STATEMENT


def _is_behaviour(sentence: Sentence) -> bool:
    """Some part of the work does something: said without need, that is a complaint."""
    if not (sentence.seen & THIRD and sentence.seen & WORK) or "talk.topic" in sentence.hits:
        return False
    flags = sentence.flags
    return not flags[0] & (SUBJECT | THIRD | FUNCTION) and any(
        flag & THIRD and not flag & _NOUN and not flags[at] & FUNCTION for at, flag in enumerate(flags[1:])
    )


def _is_fault(sentence: Sentence) -> bool:
    """Something is said not to work; a feeling or a polite phrase is no fault."""
    hits, seen = sentence.hits, sentence.seen
    if "no_fault" in hits or "talk.topic" in hits or not (seen & FAULT or "fault" in hits):
        return False
    personal = sentence.words[0] in ("i", "my", "i'm", "i've", "we", "you") and not seen & WORK
    return not personal or bool(seen & FAULT)
