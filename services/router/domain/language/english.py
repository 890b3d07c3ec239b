"""Reads English sentences: the speech act of each (question, imperative, approval, wish, fault report, …) and of a message."""

from typing import NamedTuple

from pointsman.services.router.domain.language.imperatives import imperatives_in
from pointsman.services.router.domain.language.lexicon import (
    APPROVAL,
    ASK,
    CHANGE,
    CLAUSE,
    COPULA,
    DETERMINER,
    FAULT,
    FUNCTION,
    LEAD,
    MAKE,
    MASK,
    QUESTION,
    READ,
    SUBJECT,
    TELL,
    TOOL,
    WORK,
)
from pointsman.services.router.domain.language.polite_requests import REQUEST_OPENERS, polite_requests_in
from pointsman.services.router.domain.language.questions import (
    CIRCUMSTANCES,
    act_of_imperatives,
    is_marked_imperative,
    is_question,
    read_question,
)
from pointsman.services.router.domain.language.scan import Message
from pointsman.services.router.domain.language.sentence import (
    ACTIVE,
    English,
    Imperative,
    Sentence,
    SpeechAct,
    phrases_in,
)
from pointsman.services.router.domain.language.spelling import corrected
from pointsman.services.router.domain.language.statements import act_of_statement

_LONG_COMMAND = 8
_PREDICATE = FAULT | COPULA | DETERMINER | QUESTION | FUNCTION
_DETERMINERS = frozenset({"the", "a", "an", "my", "our", "your", "this", "it"})
_COMMAND_MARKS = frozenset("-~.*$\"'`|&;<>" + MASK)
_SPOKEN = frozenset({"is", "are", "was", "were", "isn't", "aren't", "has", "have", "had", "vs", "versus", "or"})
_NO_PACKAGE = ASK | TELL | CHANGE | COPULA | QUESTION
"""Words after `npm i` that show a pronoun and not the install subcommand: npm i think …."""
_INFLECTED = ("ed", "s", "er", "ing", "ly")
_ANNOUNCED = ["quick", "question"]
_OPENINGS = {"quick": _ANNOUNCED, "in": ["in", "the", "meantime"]}
"""Openings that say nothing about what follows, by their first words."""
_UNKNOWN = frozenset({"why", "if", "whether"})
_PROMPTS = frozenset({"$", ">", "%", "#"})
_GREETINGS = frozenset({"thanks", "thank", "thx", "ty", "cheers", "hi", "hello", "hey", "sorry"})
_PROHIBITIONS = frozenset({"don't", "dont", "never", "not"})
_INSTEAD = frozenset({"only", "just", "but", "instead", "rather", "please", "simply"})
_STARTING_MARKS = frozenset("_$~./@" + MASK)
_PASSED_OVER = LEAD | CLAUSE
_DOING = TOOL | CHANGE | MAKE
_NOT_DOING = TELL | LEAD
_FIRM_FAULTS = frozenset({"complaint", "misbehaves"})
_WANTED = frozenset({"want", "need", "like", "love", "have"})
_SOFT = frozenset({SpeechAct.WISH, SpeechAct.FAULT, SpeechAct.CODE})
"""Acts that count as ACTION only without a question beside them; beside one they are its background."""
_ASKING = frozenset({SpeechAct.QUESTION, SpeechAct.REQUEST})
_ERROR_NAME = "shape.error_name"
_BYGONE = frozenset({"was", "were", "had"})
_PRESENT = frozenset({"is", "are", "isn't", "aren't", "still", "now", "has", "have", "but", "again", "keeps"})


def read_english(english: English, sentence: Sentence) -> None:
    """Sets the speech act of a sentence; a statement's act stays None until speech_act_of needs it."""
    words, flags = sentence.words, sentence.flags
    start = _beginning_of(english, sentence)
    if start == len(words):
        sentence.act = SpeechAct.APPROVAL if _approves(sentence) else SpeechAct.ACKNOWLEDGEMENT
        return
    if start and words[start - 1] == "see" and words[start] in _UNKNOWN and words[-1] != "?":
        sentence.imperatives = (Imperative("check", READ, start - 1, is_work=True),)
        sentence.act = SpeechAct.ORDER
    elif words[0] in english.commands and is_command_line(english, words):
        sentence.act = SpeechAct.COMMAND
    elif (words[-1] == "?" and not is_marked_imperative(english, sentence, start)) or (
        (flags[start] & QUESTION or words[start] in CIRCUMSTANCES) and is_question(sentence, start)
    ):
        read_question(english, sentence, start)
    else:
        start = _after_prohibition(sentence, start)
        imperatives = imperatives_in(english, sentence, start)
        if not imperatives and words[start] in REQUEST_OPENERS:
            imperatives = polite_requests_in(english, sentence, start)
        if imperatives:
            sentence.imperatives = imperatives
            sentence.act = SpeechAct.ORDER if imperatives[0].is_work else act_of_imperatives(imperatives)
        sentence.start = start


def _beginning_of(english: English, sentence: Sentence) -> int:
    """The index of the first word after acknowledgements and marks, which is corrected if it is misspelt."""
    words, flags = sentence.words, sentence.flags
    if words[:2] == ["i", "think"] and words[2:3] in (["let's"], ["lets"]):
        del words[:2], flags[:2]
    if words[0] == "lets" and len(words) > 1:
        words[0], flags[0] = "let's", 0
    _cut_opening(words, flags)
    first = flags[0]
    start = 0
    if not first or first & _PASSED_OVER or (len(words) > 2 and words[1] == ")"):
        if len(words) > 1 and words[0] in _PROMPTS and words[1] in english.commands:
            del words[0], flags[0]
        start = _skip_leads(words, flags)
    if start < len(words) and not flags[start]:
        _correct(english, sentence, start)
    if words[start : start + 1] == ["think"] and start + 2 < len(words) and flags[start + 1] & SUBJECT:
        start += 1  # "also think we need …": the writer thinks
    return start


def _cut_opening(words: list[str], flags: list[int]) -> None:
    """Cuts an opening that says nothing off; what is announced as a question ends like one."""
    opening = _OPENINGS.get(words[0])
    if opening is None or words[: len(opening)] != opening or len(words) < len(opening) + 2:
        return
    del words[: len(opening)], flags[: len(opening)]
    if opening is _ANNOUNCED and words[-1] != "?":
        words.append("?")
        flags.append(0)


def _after_prohibition(sentence: Sentence, start: int) -> int:
    """Where the order begins that follows what is not to be done: don't use axios, use fetch."""
    words = sentence.words
    if words[start] not in _PROHIBITIONS or "," not in words[start + 2 : -1]:
        return start
    after = words.index(",", start + 2) + 1
    while after < len(words) - 1 and words[after] in _INSTEAD:
        after += 1
    return after if sentence.flags[after] & _DOING and not sentence.flags[after] & _NOT_DOING else start


def _correct(english: English, sentence: Sentence, at: int) -> None:
    """Replaces a misspelt verb or approval at the beginning by the word that is meant."""
    word = sentence.words[at]
    if word in english.look_alikes or word in english.commands or word.endswith(_INFLECTED):
        return
    if word.isalpha() and (meant := corrected(english.spelling, word)):
        flag = english.lexicon.flags[meant]
        sentence.words[at], sentence.flags[at] = meant, flag
        sentence.seen |= flag
        sentence.message.seen |= flag
        sentence.message.misspelt[meant] = word


def speech_act_of(english: English, sentence: Sentence) -> SpeechAct:
    """The speech act of a sentence that has been read."""
    act = sentence.act
    if act is None:
        act = sentence.act = act_of_statement(english, sentence, sentence.start)
    return act


def _approves(sentence: Sentence) -> bool:
    """Whether short words approve: "yes", "sure, go", "again" without a greeting; not "makes sense"."""
    words = sentence.words
    if words[-1] in ("?", "sense"):
        return False
    return bool(sentence.seen & APPROVAL) or (words[-1] == "again" and _GREETINGS.isdisjoint(words))


def _skip_leads(words: list[str], flags: list[int]) -> int:
    """The index of the first word after acknowledgements, greetings, bullets, list numbers and marks."""
    if words[0] == "(" and ")" in words[:6]:
        return min(len(words) - 1, words.index(")") + 1)
    first = 2 if len(words) > 2 and words[1] == ")" else 0
    for at in range(first, len(words)):
        flag, word = flags[at], words[at]
        if flag & LEAD or not (word[0].isalnum() or word[0] in _STARTING_MARKS or word[-1].isalnum()):
            continue
        if flag or not word.endswith("ly"):
            return at
    return len(words)


def is_command_line(english: English, words: list[str]) -> bool:
    """Whether the words are a shell command: a program with a subcommand, an option, a path, or alone."""
    if words[-1][0] == "?" or _is_chain(words):
        return words[-1][0] != "?"
    program, known = words[0], english.lexicon.flags
    if len(words) == 1:
        return program not in known or program in english.launchers
    if not _is_spoken(english, words) and (_launches(english, words) or _has_option(english, words)):
        return True
    if program in english.everyday:
        if len(words) == 2 and words[1] in english.commands and words[1] not in english.everyday:  # man git
            return True
    elif program not in known and len(words) < _LONG_COMMAND:
        assigns = words[2:3] == ["="]  # dd if=… of=…
        return assigns or not any(
            known.get(word, 0) & _PREDICATE or word in english.command_topics for word in words[1:]
        )
    second = words[1]
    return second[0] in _COMMAND_MARKS and second not in ("-", "–", "—")


def _is_chain(words: list[str]) -> bool:
    """Whether programs are chained by `&&` or `||`."""
    line = " ".join(words)
    return "& &" in line or "| |" in line


def _is_spoken(english: English, words: list[str]) -> bool:
    """Whether the first words belong to a sentence or a title: git rebase vs merge, docker images explained."""
    return not (_SPOKEN.isdisjoint(words[1:5]) and english.command_topics.isdisjoint(words[1:5]))


def _launches(english: English, words: list[str]) -> bool:
    """Whether a program is followed by a subcommand, or by a noun and its verb: npm ci, docker system prune, gh pr create."""
    program, second = words[0], words[1]
    if program not in english.launchers:
        return False
    verbs = english.launcher_verbs
    if second in verbs:
        return _DETERMINERS.isdisjoint(words)
    known = english.lexicon.flags
    if program not in english.everyday:
        if second in english.subcommands:
            return len(second) > 1 or len(words) == 2 or not known.get(words[2], 0) & _NO_PACKAGE
        verbs = verbs | english.subcommands
    if len(words) < 3 or len(words) >= _LONG_COMMAND or any(known.get(word, 0) & _PREDICATE for word in words):
        return False
    return any(word in verbs or word.partition("-")[0] in verbs for word in words[2:4])


def _has_option(english: English, words: list[str]) -> bool:
    """Whether an option stands near the beginning with only names before it: npm i -d vitest."""
    for word in words[1:5]:
        if word[0] in "-+" and word.lstrip("-+")[:1].isalnum():
            return True
        if english.lexicon.flags.get(word, 0) & FUNCTION and word not in english.launcher_verbs:
            return False
    return False


class _Context(NamedTuple):
    """What the sentences of a message do besides the one that is judged."""

    last_question: int
    """The index of the last question, or -1."""
    asks_elsewhere: bool
    """Whether something is asked that is not about the statements."""
    thanks: bool


def message_act(english: English, message: Message, sentences: list[Sentence]) -> tuple[SpeechAct, bool]:
    """The speech act of a whole message and whether it is ACTION: the first that asks for work, else a question, else the first."""
    talk = sentences[0].act or speech_act_of(english, sentences[0])
    if len(sentences) == 1 and not message.shapes:
        return talk, talk in ACTIVE
    if talk in ACTIVE and (len(sentences) == 1 or talk not in _SOFT):
        return talk, True
    acts = [speech_act_of(english, sentence) for sentence in sentences]
    context = None if _SOFT.isdisjoint(acts) else _context_of(english, sentences, acts)
    requested = False
    for place, act in enumerate(acts):
        counts = act in ACTIVE and not (requested and _belongs_to_talk(sentences[place]))
        if counts and not (context and act in _SOFT and _is_background(english, sentences[place], place, context)):
            return act, True
        requested = requested or act is SpeechAct.REQUEST
    asked = SpeechAct.QUESTION in acts
    if not (asked or requested) and _ERROR_NAME in message.shapes:
        return SpeechAct.FAULT, True
    if asked or talk in ACTIVE:
        return (SpeechAct.BACKGROUND if context else SpeechAct.QUESTION), False
    return (SpeechAct.STATEMENT if SpeechAct.STATEMENT in acts and not requested else talk), False


def _context_of(english: English, sentences: list[Sentence], acts: list[SpeechAct]) -> _Context:
    last = max((place for place, act in enumerate(acts) if act is SpeechAct.QUESTION), default=-1)
    asked = last >= 0 or SpeechAct.REQUEST in acts
    elsewhere = asked and not any(
        act in _ASKING and "follow_up" in phrases_in(english, sentences[place]) for place, act in enumerate(acts)
    )
    return _Context(last, elsewhere, SpeechAct.ACKNOWLEDGEMENT in acts)


def _is_background(english: English, sentence: Sentence, place: int, context: _Context) -> bool:
    """Whether a wish or fault only explains a question or thanks (the docs confuse me, when does one need it?)."""
    if sentence.act is SpeechAct.WISH:
        return place < context.last_question and context.asks_elsewhere and not _wants_done(sentence)
    if sentence.act is SpeechAct.FAULT and _ERROR_NAME in sentence.message.shapes:
        return False
    if context.thanks and sentence.act is SpeechAct.FAULT:
        words = sentence.words
        if not _BYGONE.isdisjoint(words) and _PRESENT.isdisjoint(words):
            return True
    return context.asks_elsewhere and _FIRM_FAULTS.isdisjoint(phrases_in(english, sentence))


def _wants_done(sentence: Sentence) -> bool:
    """Whether a change of the work is wanted: I want to change the …, we need to add a …."""
    words, flags = sentence.words, sentence.flags
    if not sentence.seen & WORK:
        return False
    return any(
        word in _WANTED and words[at + 1] == "to" and flags[at + 2] & _DOING and not flags[at + 2] & _NOT_DOING
        for at, word in enumerate(words[:-2])
    )


def _belongs_to_talk(sentence: Sentence) -> bool:
    """Whether a sentence describes the answer to an earlier request: output yes or no, it should have three lines."""
    if sentence.seen & WORK or sentence.act in (SpeechAct.COMMAND, SpeechAct.CODE):
        return False
    return all(flags & ASK for _, flags, _, _ in sentence.imperatives)
