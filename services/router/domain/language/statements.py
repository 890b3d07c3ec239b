"""The speech act of English sentences without question or imperative: approval, wish, fault report, name of code, or statement."""

import re

from pointsman.services.router.domain.language.lexicon import (
    APPROVAL,
    CHANGE,
    CLAUSE,
    COPULA,
    DETERMINER,
    FAULT,
    FUNCTION,
    GERUND,
    HARD_FAULT,
    LEAD,
    MAKE,
    NEGATION,
    PROSE,
    SUBJECT,
    TELL,
    THIRD,
    TOOL,
    WORK,
    words_of,
)
from pointsman.services.router.domain.language.scan import Message
from pointsman.services.router.domain.language.sentence import (
    NAMES_CODE,
    English,
    Sentence,
    SpeechAct,
    means,
    phrases_in,
)

_PERSONAL = frozenset({"i", "we", "they", "my", "i'm", "i've", "we're", "you're", "he", "she", "our"})
_WRITERS = frozenset({"i", "we", "you", "he", "she", "i'm", "i've", "we're", "we've", "you're", "let's"})
_MODALS = frozenset({"should", "could", "must"})
_DUTIES = frozenset({"need", "needs", "have", "has", "ought", "want", "wants"})
_DEMANDS = words_of("need needs want wants require requires like asked asking requested requests")
_GENERIC = words_of("every each any good great most all everyone everybody nobody people no bad real")
_OWN = words_of("me my mine us sure that")
_WAYS = frozenset({"with", "without", "using"})
_FEELINGS = frozenset({"likes", "loves", "enjoys", "hates", "prefers", "adores", "hopes", "believes"})
_FINITE = _FEELINGS | words_of(
    "is are was were be been am has have had will would i we he she they you i'm it's that's"
)
_BYGONE = frozenset({"yesterday", "ago", "already", "earlier"})
_POINTERS = frozenset({"the", "this", "our", "that", "these", "those"})
_TALK = frozenset({"informs", "plan", "declined", "person"})
_NOT = frozenset({"not", "nt"})
_PROHIBITIONS = frozenset({"don't", "dont", "never"})
_DENIALS = frozenset({"no", "nope", "nah"})
_OPTIONS = frozenset("123456789abcde")
_LIMITS = frozenset({"only", "without", "except", "rather"})
_TURNS = frozenset({"but", "still", "however", "except", "though", "yet", "again"})
_DOING = CHANGE | TOOL | MAKE
_NOUN = WORK | PROSE
_NO_OBJECT = FUNCTION | COPULA | CLAUSE
_HUMP = re.compile("[a-z0-9][A-Z]")
_CAMEL = re.compile(r"\b(?:[a-z]+\d*[A-Z]\w*|[A-Z][a-z0-9]+[A-Z]\w*)")


def act_of_statement(english: English, sentence: Sentence, start: int) -> SpeechAct:
    """The speech act of a statement, ignoring the words before start."""
    hits, seen = phrases_in(english, sentence), sentence.seen
    if "choice" not in hits and _asks_for_nothing(sentence, start, hits):
        return SpeechAct.REMARK
    if "choice" in hits or ("approval" in hits and not seen & FAULT) or _chooses(sentence, start):
        return SpeechAct.APPROVAL
    if "personal_wish" in hits or "retold" in hits:
        return SpeechAct.REQUEST
    if _suggests(sentence) or _wants_code(sentence, hits) or _asks_again(sentence, hits):
        return SpeechAct.WISH
    work = bool(seen & WORK) or not seen & PROSE or bool(sentence.flags[0] & FAULT)
    if not work and "complaint" not in hits and "misbehaves" not in hits:
        return SpeechAct.CODE if _names_code(english, sentence, hits) else SpeechAct.STATEMENT
    return _about_work(english, sentence, hits)


def _asks_for_nothing(sentence: Sentence, start: int, hits: frozenset[str]) -> bool:
    """Whether it is a plan of the writer, news, a memory, a prohibition, or something that is declined."""
    if sentence.words[start] == "let's" or sentence.words[start] in _PROHIBITIONS or not _TALK.isdisjoint(hits):
        return True
    if "past" in hits and "turn" not in hits:
        return True
    return "musing" in hits and "complaint" not in hits and _TURNS.isdisjoint(sentence.words)


def _chooses(sentence: Sentence, start: int) -> bool:
    """Whether the only word says yes or names an option."""
    if start + 1 < len(sentence.words):
        return False
    return sentence.words[start] in _OPTIONS or bool(sentence.flags[start] & APPROVAL)


def _about_work(english: English, sentence: Sentence, hits: frozenset[str]) -> SpeechAct:
    """The speech act of a statement that is not about prose."""
    if "wish" in hits:
        return SpeechAct.REQUEST if "form" in hits else SpeechAct.WISH
    if "lacking" in hits and sentence.seen & WORK and sentence.words[0] not in _PERSONAL:
        return SpeechAct.WISH
    if "demand" in hits and _demands_work(sentence):
        return SpeechAct.WISH
    if "praise" in hits and _TURNS.isdisjoint(sentence.words):
        return SpeechAct.REMARK
    if _complains(english, sentence, hits):
        return SpeechAct.FAULT
    return SpeechAct.CODE if _names_code(english, sentence, hits) else SpeechAct.STATEMENT


def _asks_again(sentence: Sentence, hits: frozenset[str]) -> bool:
    """Whether the same is wanted in another way: "again, but with async", "now in Rust"; not "again in my experience …"."""
    if ("repeated" not in hits and "varied" not in hits) or sentence.seen & PROSE:
        return False
    if not (_FINITE.isdisjoint(sentence.words) and _OWN.isdisjoint(sentence.words)):
        return False
    return "repeated" in hits or bool(sentence.seen & WORK) or not _WAYS.isdisjoint(sentence.words)


def _demands_work(sentence: Sentence) -> bool:
    """Whether others want a part of the work: "our accountants need a csv"; not a general truth about everybody."""
    words, flags = sentence.words, sentence.flags
    if words[0] in _GENERIC or words[0] in _WRITERS or sentence.seen & NEGATION:
        return False
    for at in range(1, len(words) - 1):
        if words[at] in _DEMANDS:
            return words[at + 1] == "to" or any(flag & WORK for flag in flags[at + 1 :])
    return False


def _complains(english: English, sentence: Sentence, hits: frozenset[str]) -> bool:
    """Whether a fault is reported: something is odd, broken or misbehaves; an opinion needs a word of a hard fault."""
    if "opinion" in hits and not means(english, sentence, HARD_FAULT):
        return False
    if "misbehaves" in hits and "topic" not in hits and sentence.words[0] not in _WRITERS:
        return True
    if "odd" in hits and not sentence.seen & PROSE and sentence.words[0] not in _PERSONAL:
        return True
    return "topic" not in hits and (_is_fault(english, sentence, hits) or _is_behaviour(sentence, hits))


def _suggests(sentence: Sentence) -> bool:
    """Whether work is suggested, not only to the writer: we should validate …, it could cache …, the page needs to show …."""
    words, flags = sentence.words, sentence.flags
    if words[0] == "i":
        return False
    for at in range(1, len(words) - 1):
        word = words[at]
        if word in _MODALS or (word == "to" and words[at - 1] in _DUTIES):
            following = at + 1
            while following < len(words) - 1 and (
                words[following] in ("also", "just", "really") or words[following].endswith("ly")
            ):
                following += 1
            flag = flags[following]
            if flag & _DOING and not flag & TELL and (flag & (CHANGE | TOOL) or sentence.seen & WORK):
                return True
    return False


def _wants_code(sentence: Sentence, hits: frozenset[str]) -> bool:
    """Whether a bare noun phrase names wanted code: a script that renames photos, react component for an accordion."""
    if sentence.words[0] in _LIMITS and sentence.seen & WORK and _FINITE.isdisjoint(sentence.words):
        return True
    if "wanted" not in hits or "topic" in hits or not _FINITE.isdisjoint(sentence.words):
        return False
    return sentence.words[0] in ("a", "an", "some") or not sentence.flags[0] & (FUNCTION | SUBJECT | LEAD | GERUND)


def _names_code(english: English, sentence: Sentence, hits: frozenset[str]) -> bool:
    """Whether code is named: by an identifier, by a part of the work (the blue button in the header), or in an unknown language."""
    if "topic" in hits:
        return False
    if NAMES_CODE in hits or _has_compound_name(english, sentence.message):
        return True
    if not sentence.seen & WORK:
        return False
    foreign = not sentence.message.masked.isascii() and english.stopwords.isdisjoint(sentence.words)
    return foreign or _is_part_at_hand(sentence)


def _has_compound_name(english: English, message: Message) -> bool:
    """Whether the message has a camel-case name like DatePicker that is not a product name, looked up once per message."""
    if message.compound is None:
        source = message.source
        # cheap checks first: few texts have a capital after the first letter, fewer one inside a word
        message.compound = (
            source[1:] != message.lower[1:]
            and _HUMP.search(source) is not None
            and any(match.group().lower() not in english.brands for match in _CAMEL.finditer(source))
        )
    return message.compound


def _is_part_at_hand(sentence: Sentence) -> bool:
    """Whether a phrase without a verb points at a part of the work, also to correct: no, the other button."""
    words, flags = sentence.words, sentence.flags
    corrects = words[0] in _DENIALS and words[1:2] == [","]
    if (flags[0] & LEAD and not corrects) or not _FINITE.isdisjoint(words) or words[-1] in _BYGONE:
        return False
    return any(
        word in _POINTERS and any(flag & WORK for flag in flags[at + 1 : at + 4]) for at, word in enumerate(words[:-1])
    )


def _is_behaviour(sentence: Sentence, hits: frozenset[str]) -> bool:
    """Whether the behaviour of a part of the work is described, which is a complaint where nothing else is asked."""
    flags = sentence.flags
    if not _FEELINGS.isdisjoint(sentence.words):
        return False
    if sentence.words[0] == "the" and "circumstance" in hits:
        return len(flags) > 2 and bool(flags[1] & WORK and flags[2] & THIRD)
    if flags[0] & (SUBJECT | THIRD | FUNCTION):
        return False
    if not sentence.seen & WORK:
        acting = len(flags) > 3 and not sentence.seen & PROSE and any(flag & THIRD for flag in flags[1:3])
        return ("happens" in hits or acting) and not flags[0] & (DETERMINER | LEAD)
    if "acts" in hits or ("adjective" not in hits and ("passive" in hits or _acts_unlisted(sentence))):
        return True
    return any(flag & THIRD and not flag & _NOUN and not flags[at] & FUNCTION for at, flag in enumerate(flags[1:]))


def _acts_unlisted(sentence: Sentence) -> bool:
    """Whether an unknown verb with an object follows a noun: the parser chews trailing commas."""
    words, flags = sentence.words, sentence.flags
    for at in range(1, len(words) - 1):
        if not flags[at] and flags[at - 1] & WORK and not flags[at + 1] & _NO_OBJECT:
            word = words[at]
            if word.isalpha() and word[-1] == "s" and word[-2] not in "sui":
                return True
    return False


def _is_fault(english: English, sentence: Sentence, hits: frozenset[str]) -> bool:
    """Whether something is said not to work; a feeling or a polite phrase is not a fault."""
    seen = sentence.seen
    if "complaint" in hits:
        return True
    if "no_fault" in hits or not (seen & FAULT or "fault" in hits or not _NOT.isdisjoint(sentence.words[1:])):
        return False
    personal = sentence.words[sentence.start] in _PERSONAL and not seen & WORK
    return not personal or means(english, sentence, HARD_FAULT)
