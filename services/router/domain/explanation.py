"""Explains a routing decision: the sentence that decided, its words, and what would have changed the decision."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pointsman.services.router.domain.classification.classify import classify, weigh
from pointsman.services.router.domain.classification.rule_book import RuleBook, with_doubt
from pointsman.services.router.domain.enums import Doubt
from pointsman.services.router.domain.model import Classification

_SENTENCE = re.compile(r"[^.!?\n。！？]+(?:[.!?。！？]+(?!\S)|[.!?。！？]+$|[。！？]+|\n+|$)|[^\n]+")
_MOST_SENTENCES = 200
_MOST_WORDS = 8
_ASKED_AGAIN = 16
"""How many words are left out one by one, to see whether the decision changes without them."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a message was decided as it was."""

    decision: Classification
    sentence: str
    """The first sentence that alone is decided in the same way by the same rule; else the first of the same mode, else all."""
    words: tuple[str, ...]
    """The matched words."""
    score: int | None
    """What the second layer gave the words; None where a firm rule decided."""
    threshold: int
    weights: tuple[tuple[str, int], ...]
    """The heaviest words, with what each adds to the score."""
    changes: tuple[str, ...]
    """What would have changed the decision, in sentences."""


def explain(book: RuleBook, text: str) -> Explanation:
    """Explains the decision about one message."""
    decision, score = weigh(book, text)
    sentence = _deciding_sentence(book, text, decision)
    weights = book.layer.heaviest(text.lower(), _MOST_WORDS) if book.layer is not None and score is not None else []
    return Explanation(
        decision=decision,
        sentence=sentence,
        words=tuple(dict.fromkeys(text[trigger.start : trigger.end] for trigger in decision.triggers)),
        score=score,
        threshold=book.threshold,
        weights=tuple(weights),
        changes=tuple(_changes(book, text, decision, sentence)),
    )


def lines_of(explained: Explanation) -> Iterator[str]:
    """The explanation as lines of text."""
    decision = explained.decision
    yield f"{decision.mode} {decision.confidence}, decided by {decision.rules[0]}, rule set {decision.rule_set_version}"
    yield f"  the sentence that decided: {explained.sentence!r}"
    if explained.words:
        yield f"  its words: {', '.join(repr(word) for word in explained.words)}"
    if explained.score is not None:
        yield f"  weighed: {explained.score} against {explained.threshold}, above is ACTION; the heaviest words:"
        yield from (f"    {weight:+5d}  {readable(name)}" for name, weight in explained.weights)
    yield from (f"  {change}" for change in explained.changes or ("nothing that was tried changes it",))


def readable(feature: str) -> str:
    """What a feature of the second layer stands for, in words."""
    if feature.startswith("#"):
        return "the length of the text"
    if feature.startswith("?"):
        return "a question mark"
    if feature.endswith("-"):
        return f"a word that begins with {feature[:-1]!r}"
    bare = feature.removeprefix("^").removesuffix("$").strip()
    places = [place for mark, place in (("^", "the beginning"), ("$", "the end")) if mark in feature]
    if not bare:
        return "a mark at the end"
    return f"{bare!r} at {' and '.join(places)}" if places else repr(bare)


def _deciding_sentence(book: RuleBook, text: str, decision: Classification) -> str:
    alike: dict[bool, str] = {}
    for sentence in _sentences(text):
        found = classify(book, sentence)
        if found.mode is decision.mode:
            if found.rules[0] == decision.rules[0]:
                return sentence
            alike.setdefault(found.rules[0].endswith("question"), sentence)
    return alike.get(True) or alike.get(False) or text.strip()


def _sentences(text: str) -> list[str]:
    found = [sentence.strip() for sentence in _SENTENCE.findall(text)]
    return [sentence for sentence in found if sentence][:_MOST_SENTENCES]


def _changes(book: RuleBook, text: str, decision: Classification, sentence: str) -> Iterator[str]:
    """What changes the mode when it is left out or set otherwise."""
    rest = text.replace(sentence, " ", 1)
    if rest.strip() and (mode := classify(book, rest).mode) is not decision.mode:
        yield f"without that sentence: {mode}"
    for word in dict.fromkeys(text[trigger.start : trigger.end] for trigger in decision.triggers[:_ASKED_AGAIN]):
        mode = classify(book, text.replace(word, " ")).mode
        if mode is not decision.mode:
            yield f"without {word!r}: {mode}"
    for doubt in (Doubt.ACTION, Doubt.BALANCED, Doubt.ANSWER, Doubt.RULES):
        mode = classify(with_doubt(book, doubt), text).mode if "/" not in book.version else decision.mode
        if mode is not decision.mode:
            yield f"with doubt={doubt}: {mode}"
