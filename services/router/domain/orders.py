"""Orders in an English sentence: where their verbs stand, and whether their objects are work or talk."""

from enum import StrEnum

from pointsman.services.router.domain.lexicon import (
    ASK,
    CHANGE,
    CLAUSE,
    COPULA,
    DETERMINER,
    FAULT,
    FILLER,
    FUNCTION,
    GERUND,
    GIVEN,
    LEAD,
    LINGUAL,
    MAKE,
    NEGATION,
    NOUNLIKE,
    PROSE,
    READ,
    REQUEST,
    STRONG_WORK,
    TELL,
    TEXTUAL,
    THIRD,
    TOOL,
    VERB,
    WEAK_PROSE,
    WH,
    WORK,
)
from pointsman.services.router.domain.scan import MASK
from pointsman.services.router.domain.sentence import English, Order, Sentence, hits_in

_OBJECTS = frozenset(
    {"the", "a", "an", "my", "our", "your", "its", "their", "this", "these", "those", "all", "every", "each"}
    | {"both", "it", "them"}
)
_PARTNERS = frozenset({"you", "u", "we", "someone", "anyone", "somebody"})
_CONDITIONS = frozenset(
    {
        "in",
        "at",
        "on",
        "after",
        "before",
        "inside",
        "when",
        "if",
        "once",
        "for",
        "since",
        "as",
        "under",
        "instead",
        "with",
    }
)
_HYPOTHESES = frozenset({"suppose", "assume", "imagine", "pretend"})
_KNOWN_THINGS = frozenset(
    {"the", "it", "this", "that", "them", "these", "those", "sure", "all", "every", "my", "our", "your", "each"}
)
_FAILING = frozenset({"failed", "fails", "failing", "broke", "broken", "crashed", "crashes"})
_PRAISES = frozenset({"good", "nice", "great", "excellent", "awesome", "amazing", "perfect", "super", "wonderful"})
_VERB_ENDINGS = ("ize", "ise", "ify")
_NOUN = WORK | PROSE
_OBJECT_START = DETERMINER | WORK
_SKIPPED = LEAD | FILLER
_NOUN_SIGNS = COPULA | FAULT | WORK


class Place(StrEnum):
    """Where an order may stand; the later, the plainer it has to be."""

    __hash__ = str.__hash__

    FIRST = "first"
    REQUESTED = "requested"
    LATER = "later"


_FIRST, _REQUESTED, _LATER = Place


def requests_in(english: English, sentence: Sentence, start: int) -> list[Order]:
    """Orders dressed as questions: can you …, would you mind …, how about …, and a please in the middle."""
    if sentence.words[start : start + 2] in (["how", "about"], ["what", "about"]):
        order = _order_at(english, sentence, start + 2, _REQUESTED)
        return [order] if order is not None and order.work else []
    if not sentence.seen & REQUEST:
        return []
    flags = sentence.flags
    asked = (_request_at(english, sentence, start, at) for at in range(len(flags) - 1) if flags[at] & REQUEST)
    found = [order for order in asked if order is not None]
    return found + _later_orders(english, sentence, found[-1].at + 1) if found else found


def _request_at(english: English, sentence: Sentence, start: int, at: int) -> Order | None:
    """The order behind a word that requests: can you …, any way you could …, please …."""
    words = sentence.words
    if words[at] in ("please", "pls"):
        return _order_at(english, sentence, at + 1, _FIRST) if at else None
    if at > 1 and words[at - 1] == "you" and words[at - 2] in ("way", "chance"):
        return _order_at(english, sentence, at + 1, _REQUESTED)
    if words[at + 1] not in _PARTNERS or not _opens_clause(sentence, start, at):
        return None
    order = _order_at(english, sentence, _skip_fillers(sentence, at + 2), _REQUESTED)
    return None if order is not None and words[at + 1] == "we" and not order.work else order


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


def orders_in(english: English, sentence: Sentence, start: int) -> list[Order]:
    """The orders of a sentence that is no question."""
    words = sentence.words
    first = _order_at(english, sentence, start, _FIRST)
    if first is None and words[start] in ("you", "your"):
        first = _order_at(english, sentence, _skip_fillers(sentence, _after_duty(words)), _FIRST)
    if first is not None and words[first.at] in _HYPOTHESES:
        return [first]
    if first is not None:
        return [first, *_later_orders(english, sentence, first.at + 1)]
    if "plan" in hits_in(english, sentence):
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
    """After a statement only a clear imperative counts: please before it, an object after it, a condition before its comma."""
    if not order.work:
        return False
    before = sentence.words[order.at - 1]
    after = sentence.flags[order.at + 1] if order.at + 1 < len(sentence.words) else 0
    if before in ("please", "then", "so", "also", "now") or after & _OBJECT_START:
        return True
    if before == ":":
        return order.at > 2 and not sentence.flags[0] & WORK
    return before == "," and sentence.words[0] in _CONDITIONS and not after & (COPULA | CLAUSE)


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
        return _plain_order(english, sentence, at)
    if at < last and words[at] == "let's":
        return _order_at(english, sentence, at + 1, _FIRST) or Order(words[at + 1], CHANGE, at + 1, work=True)
    return _unusual_order(english, sentence, at, place)


def _plain_order(english: English, sentence: Sentence, at: int) -> Order | None:
    """The order of a verb in its base form: help me …, consider doing …, or what the verb itself says."""
    words, flags, last = sentence.words, sentence.flags, len(sentence.words) - 1
    if words[at] == "help" and at + 1 < last and words[at + 1] in ("me", "us"):
        return _order_at(english, sentence, _skip_fillers(sentence, at + 1), _FIRST)
    if flags[at] & TELL and at < last and flags[at + 1] & GERUND:
        return _make_order(english, sentence, at + 1)
    if _is_noun_here(words, flags, at):
        return None
    return Order(words[at], flags[at] & VERB, at, _is_work(sentence, at, flags[at]))


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
    if flag == 0 and _looks_like_verb(words[at], following) and "declined" not in hits_in(english, sentence):
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
    """Good catch, test results are …, build failed, search of …: the word is no verb here."""
    if at + 1 == len(words):
        return at > 0 and words[at - 1] in _PRAISES
    word, following = words[at + 1], flags[at + 1]
    if flags[at] & NOUNLIKE and not following & DETERMINER and _is_compound(words, flags, at):
        return True
    if not following & _NOUN_SIGNS or word in ("of", "vs"):
        return word in ("of", "vs")
    if word in _FAILING or (following & COPULA and not following & DETERMINER):
        return not (word in ("and", "or") or flags[at] & TELL)
    return bool(following & WORK) and at + 2 < len(words) and _is_predicate(words[at + 2], flags[at + 2])


def _is_compound(words: list[str], flags: list[int], at: int) -> bool:
    """Release dates of …, search engines changed …, update on …: a noun that looks like a verb."""
    if words[at + 1] in ("on", "for", "from") and words[at] not in ("search", "check", "run", "build", "test"):
        return True
    after = words[at + 2] if at + 2 < len(words) else ""
    return (
        after in ("of", "came", "went")
        or (after.endswith("ed") and not flags[at + 2])
        or (after != "" and _is_predicate(after, flags[at + 2]))
    )


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
    seen = sentence.seen
    weak = seen & WEAK_PROSE and (not sentence.flags[at] & WEAK_PROSE or _texts(sentence) > 1)
    first = seen & _NOUN if seen & _NOUN != _NOUN else _first_noun(sentence)
    if verb & MAKE and not _changes(sentence.words, at):
        return bool(first & WORK) or not (first & PROSE or weak)
    if seen & STRONG_WORK and (verb & CHANGE or not (verb & ASK and first & PROSE)):
        return True
    if verb & ASK and not verb & (CHANGE | READ):
        return bool(first & WORK) and not (weak or seen & PROSE)
    return bool(first & WORK) or not _is_talk(seen, first, verb, bool(weak))


def _is_talk(seen: int, first: int, verb: int, weak: bool) -> bool:
    """Prose for verbs that can ask for an answer; only language and what is given for the others."""
    if verb & READ and not verb & CHANGE:
        return bool(first & PROSE or seen & GIVEN or (verb & ASK and weak))
    if verb & ASK:
        return bool(first & PROSE or seen & (GIVEN | LINGUAL))
    return bool(seen & (TEXTUAL | GIVEN))


def _changes(words: list[str], at: int) -> bool:
    """Make the text bigger changes something; make a list creates it."""
    return words[at] == "make" and at + 1 < len(words) and words[at + 1] in _KNOWN_THINGS


def _texts(sentence: Sentence) -> int:
    if sentence.texts < 0:
        sentence.texts = sum(flag & WEAK_PROSE > 0 for flag in sentence.flags)
    return sentence.texts


def _first_noun(sentence: Sentence) -> int:
    """Where work and prose are both named, the first rules: a poem about tests, a test of poems."""
    if not sentence.first_noun:
        sentence.first_noun = next(flag & _NOUN for flag in sentence.flags if flag & _NOUN)
    return sentence.first_noun
