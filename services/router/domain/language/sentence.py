"""An English sentence while it is read: its words, their lexicon flags, and its speech act."""

import re
from collections.abc import Mapping, Sequence
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
_NOWHERE = (0, -1)
_PASSED = LEAD | FILLER
_CONTRACTED = {
    "didnt": "didn't", "doesnt": "doesn't", "isnt": "isn't", "arent": "aren't", "wasnt": "wasn't", "cant": "can't",
    "wont": "won't", "wouldnt": "wouldn't", "shouldnt": "shouldn't", "couldnt": "couldn't", "havent": "haven't",
    "hasnt": "hasn't", "im": "i'm", "ive": "i've", "thats": "that's", "theres": "there's", "youre": "you're",
}  # fmt: skip
"""Contractions as people type them, with the apostrophe they lack."""
_UNMARKED = frozenset(_CONTRACTED)


class SpeechAct(StrEnum):
    """What a sentence does (question, order, …); the value is the name of the rule."""

    ORDER = "order.verb"
    APPROVAL = "order.approval"
    COMMAND = "order.command_line"
    WISH = "order.wish"
    FAULT = "order.fault_report"
    CODE = "order.names_code"
    QUESTION = "talk.question"
    REQUEST = "talk.request"
    ACKNOWLEDGEMENT = "talk.acknowledgement"
    BACKGROUND = "talk.background_and_question"
    REMARK = "talk.remark"
    STATEMENT = "talk.statement"


ACTIVE = frozenset(
    {SpeechAct.ORDER, SpeechAct.APPROVAL, SpeechAct.COMMAND, SpeechAct.WISH, SpeechAct.FAULT, SpeechAct.CODE}
)
TELLING = frozenset({SpeechAct.STATEMENT, SpeechAct.REMARK})


class Imperative(NamedTuple):
    """One imperative of a sentence."""

    verb: str
    """The base form."""
    flags: int
    """The lexicon flags of the verb."""
    at: int
    """The index of the verb in the sentence."""
    is_work: bool
    """Whether it asks for work and not for talk."""


class Sentence:
    """A sentence while it is read; fields that are None or negative are filled when they are first needed."""

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
        """The speech act; None for a statement whose act was not needed yet."""
        self.start = 0
        """The index of the first word after short acknowledgements."""
        self.imperatives: Sequence[Imperative] = ()
        self.phrases: frozenset[str] | None = None
        """The names of the phrases in it."""
        self.first_noun = 0
        """The flags of the first noun that is work or prose; 0 until looked up."""
        self.texts = -1
        """How many words have the WEAK_PROSE flag."""
        self.senses: list[int] | None = None
        """The lexicon senses of each word."""
        self.meaning = 0
        """The senses of all words together."""
        self.imperative_fillers = self.request_fillers = _NOWHERE
        """The last run of fillers that was skipped, so that it is not walked again from each index in it."""
        self.offers: bool | None = None
        """Whether it asks to provide an ability ("an option to export")."""


@dataclass(frozen=True, slots=True)
class English:
    """The lexicon, phrases and command names that reading English needs."""

    lexicon: Lexicon
    stopwords: frozenset[str]
    phrases: PatternSet
    shapes: PatternSet
    commands: frozenset[str]
    launchers: frozenset[str]
    launcher_verbs: frozenset[str]
    """Subcommands of all launchers, also of those whose names are everyday words."""
    subcommands: frozenset[str]
    """Subcommands of launchers whose names are not everyday words."""
    everyday: frozenset[str]
    """Programs whose names are everyday words."""
    command_topics: frozenset[str]
    """Words after a program's name that make a title and not a command: docker basics."""
    brands: frozenset[str]
    """Product names in camel case, which are not names of code."""
    spelling: Mapping[str, tuple[str, ...]]
    """Verbs and approvals by their spellings with a letter left out."""
    look_alikes: frozenset[str]
    """Words of their own that only look like a misspelt verb."""
    tags: frozenset[str]
    """Words after an order that only ask for consent: ok, will you."""


def sentences_of(text: str, marks: int) -> list[list[str]]:
    """The words and marks of each sentence of a lower-case text; dots inside words do not split."""
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


def make_sentences(lexicon: Lexicon, parts: list[list[str]], message: Message) -> list[Sentence]:
    """The sentences of a message, each word with its lexicon flags."""
    known = lexicon.flags
    for words in parts:
        if not _UNMARKED.isdisjoint(words):
            words[:] = [_CONTRACTED.get(word, word) for word in words]
    return [Sentence(words, [known.get(word, 0) for word in words], message) for words in parts]


def _space_marks(text: str, marks: int) -> str:
    """Separates every mark by blanks."""
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
    """The senses of each word of a sentence, looked up once; few sentences need them."""
    if sentence.senses is None:
        known = english.lexicon.senses
        senses = [known.get(word, 0) for word in sentence.words]
        meaning = 0
        for sense in senses:
            meaning |= sense
        sentence.senses, sentence.meaning = senses, meaning
        return senses
    return sentence.senses


def means(english: English, sentence: Sentence, sense: int) -> bool:
    """Whether any word of a sentence has this sense."""
    if not sentence.seen & KNOWN:
        return False
    senses_of(english, sentence)
    return bool(sentence.meaning & sense)


def phrases_in(english: English, sentence: Sentence) -> frozenset[str]:
    """The names of the phrases in a sentence, matched once; most sentences need none."""
    if sentence.phrases is None:
        found = english.phrases.matching(" ".join(sentence.words))
        sentence.phrases = found | {NAMES_CODE} if names_code(english, sentence.message) else found
        return sentence.phrases
    return sentence.phrases


def names_code(english: English, message: Message) -> bool:
    """Whether a message names code outside its references, looked up once for all its sentences."""
    if message.dotted or IDENTIFIER not in message.shapes:
        return message.dotted
    if message.identified is None:
        message.identified = not message.references or english.shapes.first(IDENTIFIER, message.masked) is not None
    return message.identified


def skip_request_fillers(sentence: Sentence, at: int) -> int:
    """The index of the first word from here on that is not a filler of a polite request, or of the last word."""
    begun, ended = sentence.request_fillers
    if begun <= at <= ended:
        return ended
    words, flags, begun = sentence.words, sentence.flags, at
    while at < len(words) - 1 and (flags[at] & FILLER or words[at] in (",", "mind") or words[at].endswith("ly")):
        at += 1
    sentence.request_fillers = begun, at
    return at


def skip_imperative_fillers(sentence: Sentence, at: int) -> int:
    """The index of the first word from here on that is not a filler before an imperative, or of the last word."""
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
