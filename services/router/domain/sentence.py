"""An English sentence while it is read: its words, what each can be, and what the sentence turns out to do."""

import functools
import itertools
import operator
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from pointsman.services.router.domain.lexicon import Lexicon
from pointsman.services.router.domain.scan import PatternSet, Scan

_BREAK = "\x02"
NAMES_CODE = "names_code"
IDENTIFIER = "shape.identifier"
_MARKS = re.compile("([" + re.escape(',:?!;()"`/=[]{}<>|&…“”—–。，？！、：«»‘') + "])")
_ZEROS = itertools.repeat(0)


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


class Sentence:
    """A sentence while it is read: its words, what each can be, the phrases in it, and what it does.

    What most sentences never need stands in the class: it costs nothing until it is set.
    """

    act: Act = Act.STATEMENT
    orders: Sequence[Order] = ()
    hits: frozenset[str] | None = None
    """The phrases in it, once somebody has looked for them."""
    first_noun: int = 0
    """The first noun that is work or prose, once somebody has looked for it."""
    texts: int = -1
    """How many words stand for text in general, once somebody has counted them."""
    senses: list[int] | None = None
    """What else its words can mean, once somebody has asked."""
    meaning: int = 0
    """All of that together."""

    def __init__(self, lexicon: Lexicon, words: list[str], scan: Scan) -> None:
        self.words = words
        self.flags = flags = list(map(lexicon.flags.get, words, _ZEROS))
        self.seen = functools.reduce(operator.or_, flags)
        self.scan = scan


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
    brands: frozenset[str]
    """Names of products that are written like names of code."""


def sentences_of(text: str) -> list[list[str]]:
    """The words and marks of each sentence of a lower-case text; a dot inside a word stays there."""
    spaced = text.rstrip().rstrip(".! ")
    if ". " in spaced or "\n" in spaced:
        spaced = spaced.replace(". ", " \x02 ").replace("\n", " \x02 ")
    if "? " in spaced or "! " in spaced or "; " in spaced:
        spaced = spaced.replace("? ", "? \x02 ").replace("! ", " \x02 ").replace("; ", " \x02 ")
    pieces = _MARKS.split(spaced)
    if len(pieces) > 1:
        spaced = " ".join(pieces)
    if "'" in spaced:
        spaced = f"{spaced} ".replace(" '", " ' ").replace("' ", " ' ")
    if _BREAK in spaced:
        return [words for part in spaced.split(_BREAK) if (words := part.split())]
    words = spaced.split()
    return [words] if words else []


def senses_of(english: English, sentence: Sentence) -> list[int]:
    """What else the words of a sentence can mean; few sentences need that."""
    if sentence.senses is None:
        senses = list(map(english.lexicon.senses.get, sentence.words, _ZEROS))
        sentence.senses, sentence.meaning = senses, functools.reduce(operator.or_, senses, 0)
        return senses
    return sentence.senses


def means(english: English, sentence: Sentence, sense: int) -> bool:
    """Whether any word of a sentence can mean this."""
    senses_of(english, sentence)
    return bool(sentence.meaning & sense)


def hits_in(english: English, sentence: Sentence) -> frozenset[str]:
    """The phrases in a sentence; most sentences are understood without looking for any."""
    if sentence.hits is None:
        found = english.phrases.matching(" ".join(sentence.words))
        if names_code(english, sentence.scan):
            found.append(NAMES_CODE)
        sentence.hits = frozenset(found)
    return sentence.hits


def names_code(english: English, scan: Scan) -> bool:
    """Whether a message names some code outside its references."""
    if scan.dotted or IDENTIFIER not in scan.shapes:
        return scan.dotted
    return not scan.references or english.shapes.expressions[IDENTIFIER].search(scan.masked) is not None
