"""Reads English questions: real ones, polite requests, wishes and complaints that only have the form of a question."""

from collections.abc import Sequence

from pointsman.services.router.domain.language.lexicon import (
    CHANGE,
    CLAUSE,
    COPULA,
    DETERMINER,
    FAULT,
    FUNCTION,
    LEAD,
    MAKE,
    NEGATION,
    PROSE,
    QUESTION,
    REQUEST,
    STRONG_WORK,
    SUBJECT,
    TELL,
    TOOL,
    VERB,
    WH,
    WORK,
)
from pointsman.services.router.domain.language.polite_requests import REQUEST_OPENERS, polite_requests_in
from pointsman.services.router.domain.language.sentence import English, Imperative, Sentence, SpeechAct, phrases_in

_ACCUSING = frozenset(
    {"still", "again", "now", "come", "happened", "go", "asked", "supposed", "shouldn't", "isn't", "suddenly"}
)
_WRITERS = (["i"], ["we"])
_WANTING = (["want"], ["need"], ["wanted"], ["needed"], ["meant"], ["mean"])
_AUXILIARIES = frozenset({"does", "did", "is", "are", "was", "were", "can", "could", "will", "would", "should"})
_NO_SUBJECT = VERB | NEGATION | FAULT
_NO_SUBJECTS = frozenset({"be", "only", "also", "always", "never", "not", "just", "still"})
_LONGEST_TAG = 4
_NO_MANY = DETERMINER | SUBJECT | FUNCTION
_EVER = frozenset({"ever", "even", "really", "actually", "always", "usually", "often", "still", "already", "generally"})
CIRCUMSTANCES = frozenset({"for", "with", "in", "if", "on", "at", "once", "given", "without", "when", "where"})
_INVERTED = frozenset({"do", "does", "did", "is", "are", "will", "would", "should"})
_ASKED_ABOUT = frozenset({"i", "you", "we", "it", "one", "they", "there", "this", "that"})
_ASKED_FOR = (["which"], ["what"], ["whose"])
_BEFORE_A_VERB = SUBJECT | QUESTION | COPULA | NEGATION
_PERSONS = frozenset({"i", "you", "we", "they"})
_AT_HAND = (["the"], ["this"], ["our"])
_DOING = TOOL | CHANGE | MAKE
_NOT_DOING = TELL | LEAD


def is_marked_imperative(english: English, sentence: Sentence, start: int) -> bool:
    """Whether a sentence with a question mark is an imperative (fix the header, ok?); a tag is cut off it."""
    flag = sentence.flags[start]
    if not flag & _DOING or flag & _NOT_DOING or len(sentence.words) < start + 3:
        return False
    if _cut_tag(english, sentence, start):
        return True
    return not sentence.seen & QUESTION and bool(sentence.flags[start + 1] & DETERMINER)


def _cut_tag(english: English, sentence: Sentence, start: int) -> bool:
    """Cuts the words off that only ask for consent to what is ordered before them; whether there were any."""
    words, flags = sentence.words, sentence.flags
    for at in range(max(start + 2, len(words) - 1 - _LONGEST_TAG), len(words) - 1):
        if (words[at - 1] == "," or at == len(words) - 2) and " ".join(words[at:-1]) in english.tags:
            before = at - 1 if words[at - 1] == "," else at
            del words[before:], flags[before:]
            return True
    return False


def read_question(english: English, sentence: Sentence, start: int) -> None:
    """Reads a question, which may be a polite request, a wish or a fault report."""
    if sentence.seen & REQUEST or sentence.words[start] in REQUEST_OPENERS:
        sentence.imperatives = polite_requests_in(english, sentence, start)
    if sentence.imperatives:
        sentence.act = act_of_imperatives(sentence.imperatives)
    elif _wishes(sentence, start):
        sentence.act = SpeechAct.WISH
    elif _accuses(english, sentence) or (
        not sentence.flags[start] & QUESTION and "complaint" in phrases_in(english, sentence)
    ):
        sentence.act = SpeechAct.FAULT
    else:
        sentence.act = SpeechAct.FAULT if _reports(english, sentence, start) else SpeechAct.QUESTION


def _accuses(english: English, sentence: Sentence) -> bool:
    """Whether a question only complains: why is it still blue, what happened to the menu, isn't it supposed to close."""
    return not _ACCUSING.isdisjoint(sentence.words) and "accuses" in phrases_in(english, sentence)


def _reports(english: English, sentence: Sentence, start: int) -> bool:
    """Whether a fault is reported and the question is only about it (login is broken, any idea?)."""
    if not sentence.seen & FAULT or sentence.flags[start] & QUESTION or "," not in sentence.words:
        return False
    return "follow_up" in phrases_in(english, sentence)


def _wishes(sentence: Sentence, start: int) -> bool:
    """Whether "can the export contain the tags?" is a wish: about a part of the work, not about a whole system."""
    words = sentence.words
    if words[start + 1 : start + 3] == ["we", "have"] and words[start] in ("can", "could"):
        return bool(sentence.seen & WORK) and not sentence.seen & PROSE
    if words[start] not in ("can", "could") or words[start + 1 : start + 2] not in _AT_HAND or len(words) < start + 5:
        return False
    flag = sentence.flags[start + 2]
    return bool(flag & WORK) and not (flag & STRONG_WORK or sentence.seen & PROSE)


def act_of_imperatives(imperatives: Sequence[Imperative]) -> SpeechAct:
    """ORDER if one imperative is work, else REQUEST."""
    for imperative in imperatives:
        if imperative.is_work:
            return SpeechAct.ORDER
    return SpeechAct.REQUEST


def is_question(sentence: Sentence, start: int) -> bool:
    """Whether a sentence without a question mark is a question, by its first words."""
    words, flag = sentence.words, sentence.flags[start]
    if words[start] == "what" and words[start + 1 : start + 2] in _WRITERS and words[start + 2 : start + 3] in _WANTING:
        return False  # what I want is a list
    if flag & WH or (words[start] in CIRCUMSTANCES and _is_inverted(sentence, start)):
        return True
    return bool(flag & QUESTION) and _opens_question(sentence, start)


def _opens_question(sentence: Sentence, start: int) -> bool:
    """Whether the auxiliary at the beginning has a subject after it, as in a question."""
    words, flag = sentence.words, sentence.flags[start]
    following = sentence.flags[start + 1] if start + 1 < len(words) else 0
    first = words[start]
    if first in ("when", "where"):
        return bool(following & QUESTION) or words[start + 1 : start + 2] == ["to"]
    if first in ("do", "have", "don't"):
        return start + 1 < len(words) and (words[start + 1] in _PERSONS or _asks_of_many(sentence, start))
    if following & (SUBJECT | DETERMINER):
        return not flag & VERB
    if first not in _AUXILIARIES or len(words) < start + 3 or (start and sentence.flags[start - 1] & SUBJECT):
        return False
    return (
        words[start + 1] not in _NO_SUBJECTS and not following & _NO_SUBJECT
    )  # "would be nice if …" has no subject and is a wish


def _is_inverted(sentence: Sentence, start: int) -> bool:
    """Whether a question follows a circumstance: with this setup do I need a key, for a demo does it have to be public."""
    words, flags = sentence.words, sentence.flags
    if words[start + 1 : start + 2] in _ASKED_FOR:
        return True
    for at in range(start + 2, len(words) - 2):
        if flags[at] & WH:
            return False
        if words[at] in _INVERTED and words[at + 1] in _ASKED_ABOUT and not flags[at - 1] & _BEFORE_A_VERB:
            return True
    return False


def _asks_of_many(sentence: Sentence, start: int) -> bool:
    """Whether a plural and its verb follow: "do investors care …" asks; "do tests for …", "do exports first" are imperatives."""
    words = sentence.words
    if len(words) < start + 4 or words[start + 1][-1] != "s" or sentence.flags[start + 1] & _NO_MANY:
        return False
    if words[start] == "have" or words[start + 2] in _EVER:
        return words[start + 2] in _EVER
    flag = sentence.flags[start + 2]
    return words[start] == "do" and words[start + 2].isalpha() and not flag & (FUNCTION | CLAUSE | LEAD | DETERMINER)
