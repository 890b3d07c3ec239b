"""What an English sentence does: ask, tell, order, approve, wish, report a fault, or just talk."""

import functools
import itertools
import operator

from pointsman.services.router.domain.lexicon import (
    APPROVAL,
    ASK,
    DATA,
    DETERMINER,
    FAULT,
    FUNCTION,
    HARD_FAULT,
    LEAD,
    PROSE,
    QUESTION,
    STRONG_WORK,
    SUBJECT,
    THIRD,
    VERB,
    WH,
    WORK,
)
from pointsman.services.router.domain.orders import orders_in, requests_in
from pointsman.services.router.domain.scan import MASK, Scan
from pointsman.services.router.domain.sentence import (
    BREAK,
    NAMES_CODE,
    Act,
    English,
    Sentence,
    hits_in,
    split_sentences,
)

_PERSONS = frozenset({"i", "you", "we", "they"})
_PERSONAL = (_PERSONS - {"you"}) | {"my", "i'm", "i've", "we're", "you're", "he", "she", "our"}
_DETERMINERS = frozenset({"the", "a", "an", "my", "our", "your", "this", "it"})
_COMMAND_MARKS = frozenset("-~.*$\"'`|&;<>" + MASK)
_STARTING_MARKS = frozenset("_$~./@" + MASK)
_ZEROS = itertools.repeat(0)
_REFERENCE = WORK | STRONG_WORK | DATA
_NOUN = WORK | PROSE
# Looking up a member costs more than the rest of most functions here: they are looked up once.
_ORDER, _APPROVAL, _COMMAND, _WISH, _FAULT, _CODE, _QUESTION, _REQUEST, _ACKNOWLEDGEMENT, _STATEMENT = Act


def read_english(english: English, tokens: list[str], found: Scan) -> list[Sentence]:
    """Read each sentence of a lower-case text whose references are masked."""
    if BREAK in tokens:
        return [_read(english, words, found) for words in split_sentences(tokens)]
    return [_read(english, tokens, found)] if tokens else []


def _read(english: English, words: list[str], found: Scan) -> Sentence:
    flags = list(map(english.lexicon.flags.get, words, _ZEROS))
    if found.references:
        _mark_references(words, flags)
    sentence = Sentence(words, flags, functools.reduce(operator.or_, flags), found.masked, found.dotted)
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
    """Pass over short acknowledgements, greetings, bullets, numbers of a list and marks at the beginning."""
    if words[0] == "(" and ")" in words[:6]:
        return min(len(words) - 1, words.index(")") + 1)
    first = 2 if len(words) > 2 and words[1] == ")" else 0
    for at in range(first, len(words)):
        flag, word = flags[at], words[at]
        if flag & LEAD or not (word[0].isalnum() or word[0] in _STARTING_MARKS):
            continue
        if flag or not word.endswith("ly"):
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
    orders = requests_in(english, sentence, start) if asking else orders_in(english, sentence, start)
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
        sentence.act = _statement(english, sentence)


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


def belongs_to_talk(sentence: Sentence) -> bool:
    """How the answer to a request before should look: output yes or no, it should have three lines."""
    if sentence.seen & WORK or sentence.act in (_COMMAND, _CODE):
        return False
    return all(order.flags & ASK for order in sentence.orders)


def _statement(english: English, sentence: Sentence) -> Act:
    """A sentence that neither asks nor orders: approval, wish, fault report, code by name, or talk."""
    hits, seen = hits_in(english, sentence), sentence.seen
    if "plan" in hits or "declined" in hits or ("past" in hits and "turn" not in hits):
        return _STATEMENT
    if "approval" in hits and not seen & FAULT:
        return _APPROVAL
    if "personal_wish" in hits:
        return _REQUEST
    work = bool(seen & WORK) or not seen & PROSE or bool(sentence.flags[0] & FAULT)
    if "wish" in hits and work:
        return _WISH
    if work and "topic" not in hits and (_is_fault(sentence, hits) or _is_behaviour(sentence, hits)):
        return _FAULT
    named = (NAMES_CODE in hits and "topic" not in hits) or (seen & WORK and _is_foreign(english, sentence))
    return _CODE if named else _STATEMENT


def _is_foreign(english: English, sentence: Sentence) -> bool:
    """Words of a language that no list knows, around a word of work: something is wanted of it."""
    return not sentence.source.isascii() and english.stopwords.isdisjoint(sentence.words)


def _is_behaviour(sentence: Sentence, hits: frozenset[str]) -> bool:
    """Some part of the work does something, or something is done to it: said without need, that is a complaint."""
    flags = sentence.flags
    if sentence.words[0] == "the" and "circumstance" in hits:
        return len(flags) > 2 and bool(flags[1] & WORK and flags[2] & THIRD)
    if not sentence.seen & WORK or flags[0] & (SUBJECT | THIRD | FUNCTION):
        return False
    if "passive" in hits and "adjective" not in hits:
        return True
    return any(flag & THIRD and not flag & _NOUN and not flags[at] & FUNCTION for at, flag in enumerate(flags[1:]))


def _is_fault(sentence: Sentence, hits: frozenset[str]) -> bool:
    """Something is said not to work; a feeling or a polite phrase is no fault."""
    seen = sentence.seen
    if "no_fault" in hits or not (seen & FAULT or "fault" in hits or "not" in sentence.words[1:]):
        return False
    personal = sentence.words[0] in _PERSONAL and not seen & WORK
    return not personal or bool(seen & HARD_FAULT)
