"""Collects the triggers that speak for ACTION: references, keywords and matches of own rules, each with its span."""

import operator
import re
from collections.abc import Iterator, Mapping

from pointsman.services.router.domain.enums import TriggerKind
from pointsman.services.router.domain.language.english import speech_act_of
from pointsman.services.router.domain.language.lexicon import KEYWORD, MASK
from pointsman.services.router.domain.language.readings import Reading
from pointsman.services.router.domain.language.scan import Message
from pointsman.services.router.domain.language.sentence import TELLING, English, Sentence, SpeechAct
from pointsman.services.router.domain.model import Trigger
from pointsman.services.router.domain.patterns import Span
from pointsman.services.router.domain.rule_document import RuleEffect

_START = operator.attrgetter("start")
_NO_PLACES: Mapping[str, int] = {}
_LONG_TEXT = 1024
_WORDS = re.compile(r"[^\W_](?:.*[^\W_])?", re.DOTALL)


def english_triggers(english: English, message: Message, sentences: list[Sentence]) -> tuple[Trigger, ...]:
    """The triggers of an English message, sorted by position."""
    return _sorted_triggers(message, _english_keywords(english, message, sentences))


def foreign_triggers(message: Message, reading: Reading) -> tuple[Trigger, ...]:
    """The triggers of a message in another language, sorted by position."""
    return _sorted_triggers(message, _foreign_keywords(message, reading))


def _english_keywords(english: English, message: Message, sentences: list[Sentence]) -> dict[str, Trigger]:
    """Collects each distinct keyword by its stem, with its first position."""
    found: dict[str, Trigger] = {}
    text = message.masked + " "
    places = _places(message, text, sentences) if len(text) > _LONG_TEXT else _NO_PLACES
    keywords, spelt = english.lexicon.keywords, message.misspelt
    for sentence in sentences:
        words = sentence.words
        if sentence.seen & KEYWORD and (len(sentences) == 1 or speech_act_of(english, sentence) not in TELLING):
            for at, flag in enumerate(sentence.flags):
                if flag & KEYWORD and (counted := keywords[words[at]])[0] not in found:
                    stem, kind, rule = counted
                    found[stem] = _keyword(text, places, spelt.get(words[at], words[at]), kind, rule)
        for verb, _, at, work in sentence.imperatives:
            if work and verb not in found and verb not in keywords:
                found[verb] = _keyword(
                    text, places, spelt.get(words[at], words[at]), TriggerKind.KEYWORD, SpeechAct.ORDER
                )
        if sentence.act is SpeechAct.COMMAND and words[0] not in found:
            found[words[0]] = _keyword(
                text, places, spelt.get(words[0], words[0]), TriggerKind.KEYWORD, SpeechAct.COMMAND
            )
    return found


def _places(message: Message, text: str, sentences: list[Sentence]) -> dict[str, int]:
    """The first position of each word, found in one pass; searching from the start for each word takes quadratic time."""
    places: dict[str, int] = {}
    position = 0
    for sentence in sentences:
        for word in sentence.words:
            spelt = message.misspelt.get(word, word)
            start = text.find(spelt, position)
            if start >= 0:
                places.setdefault(spelt, start)
                position = start + len(spelt)
    return places


def _keyword(text: str, places: Mapping[str, int], word: str, kind: TriggerKind, rule: str) -> Trigger:
    """The trigger of a keyword at its first position as a whole word, else inside another word; the text must end with a blank."""
    length = len(word)
    if places:
        start = places[word]
        return Trigger(kind, word, rule, start, start + length)
    start = first = text.find(word)
    while start >= 0:
        if not (text[start - 1].isalnum() or text[start + length].isalnum()):
            return Trigger(kind, word, rule, start, start + length)
        start = text.find(word, start + 1)
    return Trigger(kind, word, rule, max(0, first), max(0, first) + length)


def _foreign_keywords(message: Message, reading: Reading) -> dict[str, Trigger]:
    found: dict[str, Trigger] = {}
    text = message.masked
    term_sets = reading.language.term_sets
    for name in ("do", "make", "read"):
        if name in reading.hits:
            rule = f"{reading.language.code}.{name}"
            for span in term_sets.spans(name, reading.text):
                start, end = _trimmed(text, span)
                word = text[start:end]
                if word and word not in found:
                    found[word] = Trigger(TriggerKind.KEYWORD, word, rule, start, end)
    return found


def _trimmed(text: str, span: Span) -> Span:
    """The span from its first to its last letter; in some scripts a match includes its neighbours."""
    start, end = span
    if text[start:end].isalnum():
        return span
    words = _WORDS.search(text, start, end)
    return (start, start) if words is None else words.span()


def _sorted_triggers(message: Message, keywords: dict[str, Trigger]) -> tuple[Trigger, ...]:
    """References, keywords and matches of own rules, sorted by position."""
    if message.references or message.own:  # a masked reference is already a trigger, not a keyword too
        words = [trigger for trigger in keywords.values() if not trigger.name.startswith(MASK)]
        return tuple(sorted([*words, *message.references, *_own_triggers(message)], key=_START))
    if len(keywords) < 2:
        return tuple(keywords.values())
    return tuple(sorted(keywords.values(), key=_START))


def _own_triggers(message: Message) -> Iterator[Trigger]:
    for own, match in message.own:
        if own.effect in (RuleEffect.ACTION, RuleEffect.REFERENCE):
            yield Trigger(TriggerKind.OWN_RULE, own.id, f"own.{own.id}", match.start(), match.end())
