"""Finds imperatives in an English sentence: where their verbs stand, and whether their objects are work or talk."""

from collections.abc import Sequence
from enum import StrEnum

from pointsman.services.router.domain.language.lexicon import (
    ASK,
    CHANGE,
    CLAUSE,
    COPULA,
    DETERMINER,
    FAULT,
    FILLER,
    FUNCTION,
    GERUND,
    LEAD,
    MAKE,
    NEGATION,
    NOUNLIKE,
    QUESTION,
    READ,
    SUBJECT,
    TELL,
    THIRD,
    TOOL,
    VERB,
    WORK,
    words_of,
)
from pointsman.services.router.domain.language.nouns import is_work
from pointsman.services.router.domain.language.sentence import (
    English,
    Imperative,
    Sentence,
    phrases_in,
    skip_imperative_fillers,
    skip_request_fillers,
)

_OBJECTS = words_of("the a an my our your its their this these those all every each both it them")
_CONDITIONS = words_of(
    "in at on after before inside when if once for since as under instead with given using based from"
)
_HYPOTHESES = frozenset({"suppose", "assume", "imagine", "pretend"})
_FAILING = frozenset({"failed", "fails", "failing", "broke", "broken", "crashed", "crashes"})
_GENERAL = words_of(
    "famous infamous popular common typical notable historic historical well-known known classic legendary real-world"
)
_QUANTITIES = words_of("two three four five six seven eight nine ten some few several couple any 2 3 4 5 6 7 8 9 10")
_AT_HAND = words_of("our my this these those the all every both in from here open failing")
_COMING = words_of("came went come appear disappear vanish")
_WANTING = frozenset({"wants", "needs", "requires", "asked", "requested"})
_PRAISES = words_of("good nice great excellent awesome amazing perfect super wonderful")
_NOUNS_OF = words_of("release model report cover program process position design plan view build default")
_NO_IMPERATIVES = frozenset({"plan", "idiom"})
_DONE_TO = words_of("the our my me us everything how a it")
_NEGATIONS = frozenset({"don't", "dont", "not", "never"})
_FIRM_BEFORE = frozenset({"please", "then", "so", "also", "now", "try"})
_PLEAS = frozenset({"please", "pls", "plz"})
_PARTICLES = frozenset({"into", "out", "up", "down", "off", "over", "back", "through", "away"})
_VERB_ENDINGS = ("ize", "ise", "ify")
_LEAVING = frozenset({"leave", "forget", "wait", "postpone", "defer", "shelve", "park", "stay"})
_UNCHANGED = (["it"], ["that"], ["this"], ["them"], ["things"], ["everything"])
_AGAIN = frozenset({"help", "let's"})
_OBJECT_START = DETERMINER | WORK
_SKIPPED = LEAD | FILLER
_MAY_BE_IMPERATIVE = VERB | LEAD | FILLER
_MAY_BEGIN = _MAY_BE_IMPERATIVE | THIRD | GERUND
_DOING = TOOL | CHANGE
_MANNERS = frozenset({"with", "from", "by", "over", "again", "here", "there"})
_DOING_OR_SHOWING = TOOL | CHANGE | MAKE | READ
_BEFORE_A_NOUN_OR_ITS_VERB = SUBJECT | DETERMINER | QUESTION | FUNCTION | CLAUSE | GERUND
_NOUN_SIGNS = COPULA | FAULT | WORK


class Place(StrEnum):
    """Where an imperative may stand; the later, the plainer its form has to be."""

    FIRST = "first"
    REQUESTED = "requested"
    LATER = "later"


def imperatives_in(english: English, sentence: Sentence, start: int) -> Sequence[Imperative]:
    """The imperatives of a sentence that is not a question."""
    flag, seen = sentence.flags[start], sentence.seen
    if flag & VERB and not (flag & LEAD or seen & NEGATION):
        first = _plain_imperative(english, sentence, start)
    elif flag and not flag & _MAY_BEGIN:
        first = None
    else:
        first = imperative_at(english, sentence, start, Place.FIRST)
    if first is None:
        return _imperatives_after_statement(english, sentence, start)
    if not seen & CLAUSE or sentence.words[first.at] in _HYPOTHESES:
        return (first,)
    return [first, *later_imperatives(english, sentence, first.at + 1)]


def _imperatives_after_statement(english: English, sentence: Sentence, start: int) -> Sequence[Imperative]:
    """Imperatives in what begins like a statement: "you need to …", and clear ones in later clauses."""
    words = sentence.words
    if words[start] in ("you", "your"):
        first = imperative_at(english, sentence, skip_request_fillers(sentence, _after_duty(words)), Place.FIRST)
        if first is not None:
            return [first, *later_imperatives(english, sentence, first.at + 1)]
    if words[start] in _CONDITIONS:
        first = _imperative_after_condition(english, sentence, start)
        if first is not None:
            return [first, *later_imperatives(english, sentence, first.at + 1)]
    if not sentence.seen & CLAUSE:
        return ()
    later = later_imperatives(english, sentence, start)
    if not later or not phrases_in(english, sentence).isdisjoint(_NO_IMPERATIVES):
        return ()
    firm = [imperative for imperative in later if _is_firm(english, sentence, imperative)]
    return firm or (later if words[0] in _CONDITIONS and not any(imperative.is_work for imperative in later) else ())


def _imperative_after_condition(english: English, sentence: Sentence, start: int) -> Imperative | None:
    """The imperative after a condition: "when the queue is full show a warning"; its verb has an object and no subject."""
    words, flags = sentence.words, sentence.flags
    for at in range(start + 2, len(words) - 1):
        if flags[at] & _DOING_OR_SHOWING and _begins_object(sentence, at + 1):
            before = flags[at - 1]
            if not before & _BEFORE_A_NOUN_OR_ITS_VERB and words[at - 1] != "not":
                imperative = _plain_imperative(english, sentence, at)
                return imperative if imperative is not None and imperative.is_work else None
    return None


def _begins_object(sentence: Sentence, at: int) -> bool:
    """Whether an object begins here: the list, a table, it, them."""
    word = sentence.words[at]
    return word in ("it", "them") or (bool(sentence.flags[at] & DETERMINER) and word not in ("that", "no"))


def _after_duty(words: list[str]) -> int:
    """The index of the verb after "you need to", "your task is to", "you must"; the length of the sentence without one."""
    for at, word in enumerate(words[:-1]):
        if word == "to" and at and words[at - 1] in ("need", "is", "have", "tasked", "want"):
            return len(words) if at > 1 and words[at - 2] in _NEGATIONS else at + 1
        if word in ("must", "should") and at:
            return at + 1
    return len(words)


def later_imperatives(english: English, sentence: Sentence, start: int) -> list[Imperative]:
    """Imperatives at the beginning of later clauses, also after fillers or an unknown adverb."""
    found: list[Imperative] = []
    flags = sentence.flags
    for at in range(start, len(flags) - 1):
        if not flags[at] & CLAUSE:
            continue
        flag = flags[at + 1]
        if (flag & _MAY_BE_IMPERATIVE and not flag & CLAUSE) or (not flag and _may_be_passed(sentence.words[at + 1])):
            imperative = imperative_at(english, sentence, at + 1, Place.LATER)
            if imperative is not None and not (found and found[-1].at == imperative.at):
                found.append(imperative)
    return found


def _may_be_passed(word: str) -> bool:
    """Whether an unknown word at the beginning of a clause can precede an imperative: an adverb, a mark or "let's"."""
    return word[-2:] == "ly" or not word[0].isalnum() or word == "let's"


def _is_firm(english: English, sentence: Sentence, imperative: Imperative) -> bool:
    """Whether an imperative after a statement is clear: "please" before it, an object after it, or a condition before its comma."""
    _, verb, at, work = imperative
    if not work:
        return False
    before = sentence.words[at - 1]
    after = sentence.flags[at + 1] if at + 1 < len(sentence.words) else 0
    if before in _FIRM_BEFORE or after & _OBJECT_START:
        return True
    if before == ":":
        return at > 2 and not sentence.flags[0] & WORK
    follows = sentence.words[at + 1] if at + 1 < len(sentence.words) else ""
    if before == "," and verb & _DOING and (not after & COPULA or follows == "and") and _is_assured(english, sentence):
        return True
    if before != "," or after & (COPULA | CLAUSE):
        return False
    return sentence.words[0] in _CONDITIONS or (bool(verb & _DOING) and follows in _MANNERS)


def _is_assured(english: English, sentence: Sentence) -> bool:
    """Whether an assurance precedes the imperative: I know, squash it; I'm sure, force push it."""
    return "assured" in phrases_in(english, sentence)


def imperative_at(english: English, sentence: Sentence, at: int, place: Place) -> Imperative | None:
    """The imperative whose verb stands at an index, after any fillers."""
    words, flags = sentence.words, sentence.flags
    last = len(words) - 1
    if at < last and (not flags[at] or flags[at] & _SKIPPED):
        at = skip_imperative_fillers(sentence, at)
    if at > last or (sentence.seen & NEGATION and _is_negated(words, at)):
        return None
    if flags[at] & VERB:
        return _plain_imperative(english, sentence, at)
    if flags[at] & GERUND and at and words[at - 1] == "try":
        return make_imperative(english, sentence, at)
    if at < last and words[at] == "let's":
        return _suggested(english, sentence, at + 1)
    return None if place is Place.LATER else _unusual_imperative(english, sentence, at, place)


def _suggested(english: English, sentence: Sentence, at: int) -> Imperative | None:
    """The imperative after "let's", also with an unknown verb; none for leaving something as it is."""
    words = sentence.words
    verb = skip_imperative_fillers(sentence, at)
    if (
        words[at] in _LEAVING
        or words[verb] in _LEAVING
        or (words[verb] == "keep" and words[verb + 1 : verb + 2] in _UNCHANGED)
    ):
        return None
    if sentence.seen & NEGATION and (words[verb] == "not" or _is_negated(words, verb)):
        return None
    if sentence.flags[verb] & VERB:
        imperative = _plain_imperative(english, sentence, verb)
    else:
        imperative = _unusual_imperative(english, sentence, verb, Place.FIRST)
    return imperative or Imperative(words[at], CHANGE, at, is_work=True)


def _plain_imperative(english: English, sentence: Sentence, at: int) -> Imperative | None:
    """The imperative of a verb in its base form, of "help me …" or of "consider doing …"; None if the word is a noun here."""
    words, flags = sentence.words, sentence.flags
    flag, verb, last = flags[at], words[at], len(words) - 1
    if verb == "help" and at + 1 < last and words[at + 1] in ("me", "us"):
        wanted = skip_imperative_fillers(sentence, skip_request_fillers(sentence, at + 1))
        if words[wanted] not in _AGAIN:
            return imperative_at(english, sentence, wanted, Place.FIRST)
    if at < last:
        following = flags[at + 1]
        if flag & TELL and following & GERUND:
            return make_imperative(english, sentence, at + 1)
        noun = flag & NOUNLIKE or following & _NOUN_SIGNS or words[at + 1] in _WANTING
        if noun and _is_noun_here(words, flags, at):
            return None
        if flag & VERB == ASK and following & VERB and _is_subject(words, flags, at):
            return None
    if at and words[at - 1] in _PRAISES and (at == last or words[at + 1] == ","):
        return None
    work = is_work(english, sentence, at, flag) and not (flag & VERB == ASK and _asks_in_general(words, at))
    return Imperative(verb, flag & VERB, at, work)


def _asks_in_general(words: list[str], at: int) -> bool:
    """Whether general knowledge is asked for and nothing of the project: list some famous bugs, name five algorithms."""
    named = words[at + 1 : at + 9]
    if not _AT_HAND.isdisjoint(named):
        return False
    general = not _GENERAL.isdisjoint(named) or (words[at] == "name" and not _QUANTITIES.isdisjoint(named[:2]))
    return general or "example of" in (line := " ".join(named)) or "examples of" in line


def _unusual_imperative(english: English, sentence: Sentence, at: int, place: Place) -> Imperative | None:
    """The imperative of another form: "copies the …", "would you mind adding …", or a verb that is not in the lexicon."""
    words, flag = sentence.words, sentence.flags[at]
    following = words[at + 1] if at + 1 < len(words) else " "
    if place is Place.REQUESTED and flag & GERUND:
        return make_imperative(english, sentence, at)
    if flag & THIRD and words[at][-1] == "s" and _is_third_person_imperative(sentence, at, following):
        return make_imperative(english, sentence, at)
    if following in _PARTICLES and at + 2 < len(words):
        following = words[at + 2]
    asked = at and words[at - 1] in _PLEAS
    if (
        flag == 0
        and _looks_like_verb(words[at], "it" if asked else following)
        and "declined" not in phrases_in(english, sentence)
    ):
        return Imperative(words[at], CHANGE, at, is_work(english, sentence, at, CHANGE))
    return None


def _is_third_person_imperative(sentence: Sentence, at: int, following: str) -> bool:
    """Whether a third person describes a task: "copies the file", "prints each line"; in "tests are …" it is a noun."""
    if following in _OBJECTS or following[0] in "'\"\x01":
        return True
    after = sentence.flags[at + 1] if at + 1 < len(sentence.words) else FUNCTION
    if after & (FUNCTION | COPULA | FAULT) or following in _COMING:
        return False
    return not sentence.flags[at] & WORK and following[0].isalnum()


def _is_negated(words: list[str], at: int) -> bool:
    """Whether the verb is negated: don't fix, no need to fix, never fix."""
    if words[at] in ("don't", "dont", "never"):
        return True
    before = words[max(0, at - 3) : at]
    return at > 0 and (before[-1] in ("don't", "dont", "never", "not", "no") or before == ["no", "need", "to"])


def _is_noun_here(words: list[str], flags: list[int], at: int) -> bool:
    """Whether the word is a noun here: test results are …, build failed, search of …."""
    word, following = words[at + 1], flags[at + 1]
    if word in _WANTING:
        return True
    if flags[at] & NOUNLIKE and not following & DETERMINER and _is_compound(words, flags, at):
        return True
    if not following & _NOUN_SIGNS or word in ("of", "vs"):
        return word in ("of", "vs")
    if word in _FAILING or (following & COPULA and not following & DETERMINER):
        return not (word in ("and", "or") or flags[at] & TELL)
    if not following & WORK or at + 2 >= len(words):
        return False
    return _is_predicate(words[at + 2], flags[at + 2]) or _did_something(words, flags, at + 2)


def _did_something(words: list[str], flags: list[int], at: int) -> bool:
    """Whether a past tense with an object follows: merge queues changed our lives."""
    return not flags[at] and words[at].endswith("ed") and at + 1 < len(words) and words[at + 1] in _DONE_TO


def _is_subject(words: list[str], flags: list[int], at: int) -> bool:
    """Whether the word begins a compound subject: rate limit headers are …."""
    for place in range(at + 1, min(at + 5, len(words))):
        if flags[place] & (DETERMINER | CLAUSE):
            return False
        if words[place] in ("is", "are", "was", "were"):
            return True
    return False


def _is_compound(words: list[str], flags: list[int], at: int) -> bool:
    """Whether the word is part of a compound noun: release dates of …, search engines changed …, update on …."""
    if words[at + 1] in ("on", "for", "from") and words[at] not in ("search", "check", "run", "build", "test"):
        return True
    after = words[at + 2] if at + 2 < len(words) else ""
    return (
        (after == "of" and words[at] in _NOUNS_OF)
        or after in _COMING
        or (after.endswith("ed") and not flags[at + 2])
        or (after != "" and _is_predicate(after, flags[at + 2]))
    )


def _is_predicate(word: str, flag: int) -> bool:
    return bool(flag & COPULA) and word not in ("and", "or", "of", "look")


def _looks_like_verb(word: str, following: str) -> bool:
    """Whether an unknown word can be a verb: right before an object, or with the ending of a verb."""
    if not word.isalpha() or word.endswith(("ing", "ed", "s", "ly", "ion")):
        return False
    return (
        following in _OBJECTS
        or following in ("which", "why", "whether", "how")
        or (len(word) > 5 and word.endswith(_VERB_ENDINGS))
    )


def make_imperative(english: English, sentence: Sentence, at: int) -> Imperative:
    """The imperative of a verb in another form than its base."""
    verb = english.lexicon.base.get(sentence.words[at], sentence.words[at])
    flag = english.lexicon.flags.get(verb, 0) & VERB
    return Imperative(verb, flag, at, is_work(english, sentence, at, flag))
