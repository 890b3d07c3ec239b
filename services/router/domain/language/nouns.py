"""Decides by its nouns whether an imperative asks for work (files, web, code) or for talk (prose that can be answered)."""

from pointsman.services.router.domain.language.lexicon import (
    ASK,
    CHANGE,
    GIVEN,
    LINGUAL,
    MAKE,
    PROSE,
    READ,
    STRONG_WORK,
    TELL,
    TEXTUAL,
    TOOL,
    WEAK_PROSE,
    WORK,
    words_of,
)
from pointsman.services.router.domain.language.sentence import English, Sentence, means

KNOWN_THINGS = words_of("the it this that them these those sure all every my our your each")
_ABILITIES = frozenset({"option", "ability", "possibility", "way", "means", "setting"})
_NOUN = WORK | PROSE
_DECIDED = TOOL | TELL
_DOING = TOOL | CHANGE


def is_work(english: English, sentence: Sentence, at: int, verb: int) -> bool:
    """Whether the imperative's object is in files, web or code (work), or is prose that can be answered (talk)."""
    seen = sentence.seen
    if verb & _DECIDED and not (verb & CHANGE and seen & WORK and not seen & PROSE):
        return bool(verb & TOOL)
    weak = bool(seen & WEAK_PROSE) and (not sentence.flags[at] & WEAK_PROSE or _texts(sentence) > 1)
    first = seen & _NOUN if seen & _NOUN != _NOUN else _first_noun(sentence)
    if verb & MAKE and not _changes(sentence.words, at):
        return bool(first & WORK) or not (first & PROSE or weak or _invents(sentence.words, at))
    if seen & STRONG_WORK and (verb & CHANGE or not (verb & ASK and first & PROSE)):
        return True
    if verb & ASK and not verb & (CHANGE | READ):
        return (bool(first & WORK) and not (weak or seen & PROSE)) or _offers_ability(sentence)
    return bool(first & WORK) or not _is_talk(english, sentence, first, verb, weak)


def _is_talk(english: English, sentence: Sentence, first: int, verb: int, weak: bool) -> bool:
    """Whether the object is talk: prose for verbs that can ask for an answer, only language or given text for others."""
    if verb & READ and not verb & CHANGE:
        return bool(first & PROSE or (verb & ASK and weak)) or means(english, sentence, GIVEN)
    if verb & ASK:
        return bool(first & PROSE) or means(english, sentence, GIVEN | LINGUAL)
    return means(english, sentence, TEXTUAL | GIVEN)


def _offers_ability(sentence: Sentence) -> bool:
    """Whether the sentence asks to provide an ability: provide an option to export …."""
    if sentence.offers is None:
        words, flags = sentence.words, sentence.flags
        sentence.offers = any(
            word in _ABILITIES and words[at + 1] == "to" and flags[at + 2] & _DOING
            for at, word in enumerate(words[:-2])
        )
    return sentence.offers


def _changes(words: list[str], at: int) -> bool:
    """Whether "make" changes something ("make the text bigger") instead of creating it ("make a list")."""
    return words[at] == "make" and at + 1 < len(words) and words[at + 1] in KNOWN_THINGS


def _invents(words: list[str], at: int) -> bool:
    """Whether something is invented, which is talk: make up a name."""
    return words[at : at + 2] == ["make", "up"]


def _texts(sentence: Sentence) -> int:
    if sentence.texts < 0:
        texts = 0
        for flag in sentence.flags:
            if flag & WEAK_PROSE:
                texts += 1
        sentence.texts = texts
    return sentence.texts


def _first_noun(sentence: Sentence) -> int:
    """The flags of the first noun, which decides if both work and prose are named: a poem about tests, a test of poems."""
    if not sentence.first_noun:
        sentence.first_noun = next(flag & _NOUN for flag in sentence.flags if flag & _NOUN)
    return sentence.first_noun
