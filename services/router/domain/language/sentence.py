"""An English sentence while it is read: its words, what each can be, and what the sentence turns out to do."""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from pointsman.services.router.domain.language.lexicon import FILLER, KNOWN, LEAD, MASK, VERB, Lexicon
from pointsman.services.router.domain.language.scan import APOSTROPHE, ASKS, BREAK, COMMA, MARK, MARKS, Message
from pointsman.services.router.domain.patterns import PatternSet

_BREAK = "\x02"
NAMES_CODE = "names_code"
IDENTIFIER = "shape.identifier"
_MARKS = re.compile(f"([,?{re.escape(MARKS)}])")
_ZEROS = itertools.repeat(0)
_NOWHERE = (0, -1)
_PASSED = LEAD | FILLER


class SpeechAct(StrEnum):
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


ACTIVE = frozenset(
    {SpeechAct.ORDER, SpeechAct.APPROVAL, SpeechAct.COMMAND, SpeechAct.WISH, SpeechAct.FAULT, SpeechAct.CODE}
)


class Imperative(NamedTuple):
    """One thing that a sentence orders."""

    verb: str
    """The base form."""
    flags: int
    """What the verb can be, as flags of the lexicon."""
    at: int
    """The index of the verb in the sentence."""
    is_work: bool
    """Whether the order is work and not talk."""


class Sentence:
    """A sentence while it is read: its words, what each can be, and what it does."""

    __slots__ = (
        "act",
        "first_noun",
        "flags",
        "imperative_fillers",
        "imperatives",
        "meaning",
        "message",
        "offers",
        "phrases",
        "request_fillers",
        "seen",
        "senses",
        "start",
        "texts",
        "words",
    )

    def __init__(self, words: list[str], flags: list[int], message: Message) -> None:
        self.words = words
        self.flags = flags
        self.message = message
        seen = 0
        for flag in flags:
            seen |= flag
        self.seen = seen
        message.seen |= seen
        self.act: SpeechAct | None = None
        """What it does; a statement is looked into when somebody asks."""
        self.start = 0
        """Where its words begin, behind short acknowledgements."""
        self.imperatives: Sequence[Imperative] = ()
        self.phrases: frozenset[str] | None = None
        """The phrases in it, once somebody has looked for them."""
        self.first_noun = 0
        """The first noun that is work or prose, once somebody has looked for it."""
        self.texts = -1
        """How many words stand for text in general, once somebody has counted them."""
        self.senses: list[int] | None = None
        """What else its words can mean, once somebody has asked."""
        self.meaning = 0
        """All of that together."""
        self.imperative_fillers = self.request_fillers = _NOWHERE
        """The last run of words that was passed over, or skipped as fillers: it is not walked again from each place in it."""
        self.offers: bool | None = None
        """Whether it offers an ability, once somebody has looked."""


@dataclass(frozen=True, slots=True)
class English:
    """Everything that reading English needs."""

    lexicon: Lexicon
    stopwords: frozenset[str]
    phrases: PatternSet
    shapes: PatternSet
    commands: frozenset[str]
    launchers: frozenset[str]
    launcher_verbs: frozenset[str]
    """What programs are told to do, also those whose names are everyday words."""
    subcommands: frozenset[str]
    """What only the other programs are told to do."""
    everyday: frozenset[str]
    """Programs whose names are everyday words."""
    command_topics: frozenset[str]
    """Words that make a title of a program's name: docker basics."""
    brands: frozenset[str]
    """Names of products that are written like names of code."""


def sentences_of(text: str, marks: int) -> list[list[str]]:
    """The words and marks of each sentence of a lower-case text; a dot inside a word stays there."""
    spaced = text.rstrip().rstrip(".! ")
    if marks:
        if marks & BREAK:
            spaced = spaced.replace(". ", " \x02 ").replace("\n", " \x02 ")
            spaced = spaced.replace("? ", "? \x02 ").replace("! ", " \x02 ").replace("; ", " \x02 ")
        spaced = _space_marks(spaced, marks)
        if marks & BREAK:
            return [words for part in spaced.split(_BREAK) if (words := part.split())]
    words = spaced.split()
    return [words] if words else []


def _space_marks(text: str, marks: int) -> str:
    """Every mark as a word of its own."""
    if marks & MARK:
        text = " ".join(_MARKS.split(text))
    else:
        if marks & COMMA:
            text = text.replace(",", " , ")
        if marks & ASKS:
            text = text.replace("?", " ? ")
    if marks & APOSTROPHE:
        text = f"{text} ".replace(" '", " ' ").replace("' ", " ' ")
    return text


def senses_of(english: English, sentence: Sentence) -> list[int]:
    """What else the words of a sentence can mean; few sentences need that."""
    if sentence.senses is None:
        senses = list(map(english.lexicon.senses.get, sentence.words, _ZEROS))
        meaning = 0
        for sense in senses:
            meaning |= sense
        sentence.senses, sentence.meaning = senses, meaning
        return senses
    return sentence.senses


def means(english: English, sentence: Sentence, sense: int) -> bool:
    """Whether any word of a sentence can mean this."""
    if not sentence.seen & KNOWN:
        return False
    senses_of(english, sentence)
    return bool(sentence.meaning & sense)


def phrases_in(english: English, sentence: Sentence) -> frozenset[str]:
    """The phrases in a sentence; most sentences are understood without looking for any."""
    if sentence.phrases is None:
        found = english.phrases.matching(" ".join(sentence.words))
        sentence.phrases = found | {NAMES_CODE} if names_code(english, sentence.message) else found
        return sentence.phrases
    return sentence.phrases


def names_code(english: English, message: Message) -> bool:
    """Whether a message names some code outside its references: looked for once, however many sentences ask."""
    if message.dotted or IDENTIFIER not in message.shapes:
        return message.dotted
    if message.identified is None:
        message.identified = not message.references or english.shapes.first(IDENTIFIER, message.masked) is not None
    return message.identified


def skip_request_fillers(sentence: Sentence, at: int) -> int:
    """The first word from here on that is none to fill a request with, or the last one."""
    begun, ended = sentence.request_fillers
    if begun <= at <= ended:
        return ended
    words, flags, begun = sentence.words, sentence.flags, at
    while at < len(words) - 1 and (flags[at] & FILLER or words[at] in (",", "mind") or words[at].endswith("ly")):
        at += 1
    sentence.request_fillers = begun, at
    return at


def skip_imperative_fillers(sentence: Sentence, at: int) -> int:
    """The first word from here on that is no filler of an order, or the last one."""
    begun, ended = sentence.imperative_fillers
    if begun <= at <= ended:
        return ended
    words, flags, begun, last = sentence.words, sentence.flags, at, len(sentence.words) - 1
    while at < last and (not flags[at] or flags[at] & _PASSED) and _is_filler(words[at], flags[at]):
        at += 1
    sentence.imperative_fillers = begun, at
    return at


def _is_filler(word: str, flag: int) -> bool:
    if flag & VERB:
        return bool(flag & LEAD)
    if flag & _PASSED:
        return True
    return not flag and (word.endswith("ly") or not (word[0].isalnum() or word[0] == MASK))
