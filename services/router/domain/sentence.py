"""An English sentence while it is read: its words, what each can be, and what the sentence turns out to do."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from pointsman.services.router.domain.lexicon import Lexicon
from pointsman.services.router.domain.scan import PatternSet, Probe

BREAK = "\x02"
NAMES_CODE = "names_code"
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


ACTIVE = frozenset({Act.ORDER, Act.APPROVAL, Act.COMMAND, Act.WISH, Act.FAULT, Act.CODE})


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
    seen: int
    source: str
    """The whole message that it stands in."""
    names_code: bool
    """Whether the message is known to name some code."""
    hits: frozenset[str] | None = None
    """The phrases in it, once somebody has looked for them."""
    act: Act = Act.STATEMENT
    orders: Sequence[Order] = ()
    first_noun: int = 0
    """The first noun that is work or prose, once somebody has looked for it."""
    texts: int = -1
    """How many words stand for text in general, once somebody has counted them."""


@dataclass(frozen=True, slots=True)
class English:
    """Everything that reading English needs."""

    lexicon: Lexicon
    stopwords: frozenset[str]
    phrases: PatternSet
    identifier: Probe
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


def split_sentences(tokens: list[str]) -> list[list[str]]:
    """The tokens of each sentence."""
    sentences: list[list[str]] = [[]]
    for token in tokens:
        if token == BREAK:
            sentences.append([])
        else:
            sentences[-1].append(token)
    return [words for words in sentences if words]


def hits_in(english: English, sentence: Sentence) -> frozenset[str]:
    """The phrases in a sentence; most sentences are understood without looking for any."""
    if sentence.hits is None:
        found = english.phrases.matching(" ".join(sentence.words))
        if sentence.names_code or english.identifier.find(sentence.source) is not None:
            found.append(NAMES_CODE)
        sentence.hits = frozenset(found)
    return sentence.hits
