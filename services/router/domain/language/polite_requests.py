"""Finds polite requests: imperatives in the form of questions (can you …, mind taking a look …, any chance you could …)."""

from collections.abc import Sequence

from pointsman.services.router.domain.language.imperatives import (
    Place,
    imperative_at,
    later_imperatives,
    make_imperative,
)
from pointsman.services.router.domain.language.lexicon import (
    CHANGE,
    CLAUSE,
    GERUND,
    MAKE,
    PROSE,
    READ,
    REQUEST,
    TOOL,
    WH,
    WORK,
)
from pointsman.services.router.domain.language.nouns import KNOWN_THINGS
from pointsman.services.router.domain.language.sentence import English, Imperative, Sentence, skip_request_fillers

_ADDRESSEES = frozenset({"you", "u", "we", "someone", "anyone", "somebody"})
_ANY_THINGS = frozenset({"a", "an", "another", "something", "with", "without"})
_UNKNOWNS = (["why"], ["whether"], ["if"], ["where"], ["what's"])
_ONE_MORE = (["a"], ["another"])
_TRIES = frozenset({"stab", "go", "crack", "shot", "pass", "swing"})
_MEMORY = frozenset({"remember", "recall", "note", "memorize"})
_DOING = TOOL | CHANGE | MAKE
_ASKED = (
    "mind", "mind if you", "you mind", "do you mind", "do you mind if you", "would you mind", "care to", "would you care to",
    "any chance to", "any chance of", "any chance for", "any chance you could", "any chance you can", "any chance we could",
    "any chance we can", "any chance you would", "any chance you might", "fancy", "you fancy", "do you fancy", "up for",
    "you up for", "are you up for", "would you be up for", "would you be willing to", "would you be open to",
    "would you be able to", "would you be happy to", "would you be so kind as to", "would you be kind enough to",
    "could you be so kind as to", "are you willing to", "wanna", "you wanna", "do you wanna", "want to", "you want to",
    "do you want to", "is it possible for you to", "would it be possible for you to", "would it be ok for you to", "could i get you to", "can i get you to", "could i ask you to",
    "can i ask you to", "may i ask you to", "could i trouble you to", "can i trouble you to",
)  # fmt: skip
_ABLE = (
    "is it possible to", "would it be possible to", "are you able to", "think you could", "think you can", "you think you could", "you think you can",
    "do you think you could", "do you think you can", "reckon you could", "reckon you can",
)  # fmt: skip
"""Openings that can also ask about an ability; they request only a change of something that is named."""


def _by_first_word(openings: Sequence[str]) -> dict[str, tuple[tuple[str, ...], ...]]:
    """The openings by their first word, the longest first."""
    table: dict[str, list[tuple[str, ...]]] = {}
    for words in sorted((tuple(opening.split()) for opening in openings), key=len, reverse=True):
        table.setdefault(words[0], []).append(words)
    return {first: tuple(rows) for first, rows in table.items()}


_OPENINGS = _by_first_word((*_ASKED, *_ABLE))
_ABILITIES = frozenset(tuple(opening.split()) for opening in _ABLE)
REQUEST_OPENERS = frozenset({"how", "what", *_OPENINGS})
"""First words of polite requests, beside the words with the REQUEST flag."""


_DOUBTS = (["can't", "we"], ["couldn't", "we"], ["cant", "we"])
"""What asks whether another way would do: can't we just keep it."""


def polite_requests_in(english: English, sentence: Sentence, start: int) -> list[Imperative]:
    """The imperatives of a sentence that is a question or opens like one."""
    words, flags = sentence.words, sentence.flags
    if words[start] in ("how", "what") and words[start + 1 : start + 2] == ["about"]:
        spoken_to = words[start + 2 : start + 3] in (["we"], ["you"], ["i"])
        imperative = imperative_at(english, sentence, start + 2 + spoken_to, Place.REQUESTED)
        return [imperative] if imperative is not None and imperative.is_work else []
    found: list[Imperative] = []
    if words[start] in _OPENINGS:
        opened = _imperative_after_opening(english, sentence, start)
        found = [] if opened is None else [opened]
    if not found and sentence.seen & REQUEST:
        asked = (_request_at(english, sentence, start, at) for at in range(len(flags) - 1) if flags[at] & REQUEST)
        found = [imperative for imperative in asked if imperative is not None]
    if found and sentence.seen & CLAUSE:
        found += later_imperatives(english, sentence, found[-1].at + 1)
    return found


def _imperative_after_opening(english: English, sentence: Sentence, start: int) -> Imperative | None:
    """The imperative after an opening: mind …, care to …, would you be up for …."""
    words = sentence.words
    for opening in _OPENINGS[words[start]]:
        end = start + len(opening)
        if end < len(words) and tuple(words[start:end]) == opening:
            imperative = _requested_imperative(english, sentence, skip_request_fillers(sentence, end))
            if imperative is None or not (sentence.seen & WORK or sentence.flags[imperative.at]):
                return None
            if "possible" in opening and imperative.flags & MAKE:  # whether something can be made is a question
                return None
            return imperative if opening not in _ABILITIES or _is_to_be_done(sentence, imperative) else None
    return None


def _is_to_be_done(sentence: Sentence, imperative: Imperative) -> bool:
    """Whether "are you able to rename it" requests a change of something that is named, and not an act of memory."""
    verb, flags, at, _ = imperative
    return bool(flags & _DOING) and verb not in _MEMORY and at + 2 < len(sentence.words)


def _request_at(english: English, sentence: Sentence, start: int, at: int) -> Imperative | None:
    """The imperative after a word with the REQUEST flag: can you …, any way you could …, please …."""
    words = sentence.words
    if words[at] in ("please", "pls"):
        return imperative_at(english, sentence, at + 1, Place.FIRST) if at else None
    if at > 1 and words[at - 1] == "you" and words[at - 2] in ("way", "chance"):
        return imperative_at(english, sentence, at + 1, Place.REQUESTED)
    if words[at : at + 5] == ["would", "it", "be", "possible", "to"]:
        return imperative_at(english, sentence, at + 5, Place.REQUESTED)
    if words[at : at + 2] in _DOUBTS or words[at + 1] not in _ADDRESSEES or not _opens_clause(sentence, start, at):
        return None
    able = 3 if words[at + 2 : at + 5] == ["be", "able", "to"] else 0
    imperative = _requested_imperative(english, sentence, skip_request_fillers(sentence, at + 2 + able))
    return None if imperative is not None and words[at + 1] == "we" and not imperative.is_work else imperative


def _requested_imperative(english: English, sentence: Sentence, verb: int) -> Imperative | None:
    """The imperative of a request: try it, have a (quick) look, take a stab at it, or the verb itself."""
    words = sentence.words
    if words[verb - 1] == "try" and words[verb] in KNOWN_THINGS | _ANY_THINGS:
        return Imperative("try", CHANGE, verb - 1, is_work=True)
    if words[verb - 1 : verb + 1] == ["go", "through"] and not sentence.seen & PROSE:
        return Imperative("review", READ, verb, is_work=True)
    if words[verb : verb + 1] == ["see"] and sentence.seen & WORK and words[verb + 1 : verb + 2] in _UNKNOWNS:
        return make_imperative(english, sentence, verb)
    if words[verb + 1 : verb + 2] in _ONE_MORE:
        if "look" in words[verb + 2 : verb + 4]:
            return make_imperative(english, sentence, words.index("look", verb))
        if not _TRIES.isdisjoint(words[verb + 2 : verb + 4]) and "at" in words[verb + 3 : verb + 5]:
            return _attempted_imperative(english, sentence, words.index("at", verb))
    return imperative_at(english, sentence, verb, Place.REQUESTED)


def _attempted_imperative(english: English, sentence: Sentence, at: int) -> Imperative:
    """The imperative after "at": have a go at fixing it, take a stab at the parser."""
    if at + 1 < len(sentence.words) and sentence.flags[at + 1] & GERUND:
        return make_imperative(english, sentence, at + 1)
    return Imperative("try", CHANGE, at, bool(sentence.seen & WORK) or not sentence.seen & PROSE)


def _opens_clause(sentence: Sentence, start: int, at: int) -> bool:
    """Whether the request opens a clause; in "what can you do", "how can you" the question word governs it."""
    if at and at - 1 == start and sentence.words[start] in ("when", "where"):
        return False
    for flag in reversed(sentence.flags[max(0, at - 3) : at]):  # "which one would you …" is a question
        if flag & WH:
            return False
        if flag & CLAUSE:
            break
    return not (sentence.flags[start] & WH and at > start and not sentence.flags[at - 1] & CLAUSE)
