"""The procedure: one message in, one explained decision out. The same text and rules always give the same."""

import itertools
import operator
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from pointsman.services.router.domain import debate as debating
from pointsman.services.router.domain.document import OwnRule, RuleEffect
from pointsman.services.router.domain.english import belongs_to_talk, is_command_line, read_english
from pointsman.services.router.domain.languages import (
    Reading,
    detect_language,
    read_language,
)
from pointsman.services.router.domain.lexicon import FOREIGN, KEYWORD, MASK
from pointsman.services.router.domain.rulebook import RuleBook
from pointsman.services.router.domain.scan import Scan, scan
from pointsman.services.router.domain.sentence import ACTIVE, Act, Sentence, sentences_of
from pointsman.services.router.domain.values import (
    Bypass,
    Classification,
    Confidence,
    Debate,
    DebateReason,
    Mode,
    PlanningTrigger,
    RouteTarget,
    Stakes,
    Trigger,
    TriggerKind,
)

STRONG_AT = 3
# Looking up a member of an enum costs more than the rest of most functions here: they are looked up once. And a tuple's
# constructor with names is a function in Python.
_KEYWORD = TriggerKind.KEYWORD
_ORDER, _APPROVAL, _COMMAND, _WISH, _FAULT, _CODE, _QUESTION, _REQUEST, _ACKNOWLEDGEMENT, _STATEMENT = Act
_ACTION, _SWARM, _PLANNING, _NO_DEBATE = Mode.ACTION, RouteTarget.SWARM_ORCHESTRATOR, Debate.PLANNING, Debate.NONE
_STRONG, _WEAK, _NO_STAKES = Confidence.STRONG, Confidence.WEAK, Stakes.NONE
_USER_OVERRIDE, _READ_ONLY, _ALREADY_DEBATED = Bypass.USER_OVERRIDE, Bypass.READ_ONLY, Bypass.ALREADY_DEBATED
_REDIRECTION = "shape.redirection"
_IS_KEYWORD, _FOREIGN = KEYWORD.__and__, FOREIGN.__and__
_seen = operator.attrgetter("seen")
_start, _rule = operator.attrgetter("start"), operator.attrgetter("rule")
_new = tuple.__new__
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def classify(
    book: RuleBook, text: str, *, already_debated: bool = False, system_generated: bool = False
) -> Classification:
    """Decide one message."""
    lower = text.lower()
    if not lower.isascii():
        lower = lower_case(text)
    found = scan(book.shapes, book.references, lower, text)
    if system_generated or "system.marker" in found.shapes:
        return _answer(book, "system.marker")
    parts = sentences_of(found.masked)
    if not parts:
        return _answer(book, _ACKNOWLEDGEMENT)
    first = parts[0][0]
    if first in book.fast_path.expressions and (command := book.fast_path.matching(lower.strip())):
        return _fast_path(book, lower, command[0])
    lexicon = book.english.lexicon
    sentences = [Sentence(lexicon, parts[0], found)]
    if len(parts) > 1:
        sentences += [Sentence(lexicon, words, found) for words in parts[1:]]
    own = _own_matches(book, lower) if book.own else ()
    message = _new(_Message, (book, lower, found, own, already_debated))
    if not lower.isascii() or any(map(_FOREIGN, map(_seen, sentences))):
        language = detect_language(book.languages, lower, {word for words in parts for word in words})
        if language and not (first in book.english.commands and is_command_line(book.english, parts[0])):
            return _classify_foreign(message, read_language(language, found.masked))
    return _classify_english(message, sentences)


def _own_matches(book: RuleBook, lower: str) -> tuple[tuple[OwnRule, Any], ...]:
    return tuple((rule, match) for rule, pattern in book.own if (match := pattern.search(lower)) is not None)


def lower_case(text: str) -> str:
    """Lower case with straight apostrophes, every letter at its old place."""
    lower = text.lower()
    if len(lower) != len(text):
        lower = "".join(low if len(low := letter.lower()) == 1 else letter for letter in text)
    return _SURROGATE.sub("\ufffd", lower).replace("’", "'")


class _Message(NamedTuple):
    """One message on its way through the procedure."""

    book: RuleBook
    lower: str
    scan: Scan
    own: tuple[tuple[OwnRule, Any], ...]
    already_debated: bool

    def own_with(self, effect: RuleEffect) -> str:
        """The first own rule of this effect that matches."""
        return next((f"own.{rule.id}" for rule, _ in self.own if rule.effect is effect), "")


def _classify_english(message: _Message, sentences: list[Sentence]) -> Classification:
    book = message.book
    found = message.scan
    english = book.english
    for sentence in sentences:
        read_english(english, sentence)
    act = sentences[0].act
    active = act in ACTIVE
    if len(sentences) > 1 or (found.shapes and not active):
        act, active = _english_rule(message, sentences)
    name: str = act
    if found.references or message.own:
        name, active = _mode_rule(message, name, active)
    if not active:
        return _answer(book, name)
    triggers = _triggers(message, _english_keywords(message, sentences))
    reads = debating.only_reads(book.debate, sentences) and _REDIRECTION not in found.shapes
    reasons = {} if reads else debating.planning_triggers(book.debate, english, sentences)
    if found.shapes and not reads:
        _add_patterns(message, reasons)
    return _act(message, name, triggers, reads, reasons)


def _add_patterns(message: _Message, found: dict[PlanningTrigger, str]) -> None:
    """Reasons to debate that are expressions over the text: SQL, command lines, wildcards."""
    book = message.book
    for name in message.scan.shapes:
        if name in book.debated:
            found.setdefault(book.debated[name], book.shapes.expressions[name].search(message.lower).group().strip())


def _classify_foreign(message: _Message, reading: Reading) -> Classification:
    name, active = _mode_rule(message, reading.rule, reading.active)
    if not active:
        return _answer(message.book, name)
    triggers = _triggers(message, _foreign_keywords(message, reading))
    reads = debating.foreign_only_reads(reading)
    found = {} if reads else debating.foreign_triggers(reading)
    return _act(message, name, triggers, reads, found)


def _mode_rule(message: _Message, spoken: str, active: bool) -> tuple[str, bool]:
    """References first, then what the project's own rules say, then what the message does."""
    if message.scan.references:
        return message.scan.references[0].rule, True
    if message.own:
        if name := message.own_with(RuleEffect.REFERENCE):
            return name, True
        if name := message.own_with(RuleEffect.ANSWER):
            return name, False
        if not active and not spoken.endswith("question") and (name := message.own_with(RuleEffect.ACTION)):
            return name, True
    return spoken, active


def _english_rule(message: _Message, sentences: list[Sentence]) -> tuple[Act, bool]:
    """One operation is enough; without any, a question or the first sentence says what kind of talk it is."""
    talk = sentences[0].act
    asked = requested = False
    for sentence in sentences:
        act = sentence.act
        if act in ACTIVE and not (requested and belongs_to_talk(sentence)):
            return act, True
        if act is _QUESTION:
            talk = _QUESTION
        requested = requested or act is _REQUEST
        asked = asked or act is _QUESTION
    if not (asked or requested) and "shape.error_name" in message.scan.shapes:
        return _FAULT, True
    return talk, False


def _english_keywords(message: _Message, sentences: list[Sentence]) -> Iterable[Trigger]:
    """Each distinct keyword by its stem, as it first stands."""
    found: dict[str, Trigger] = {}
    text = message.scan.masked
    keywords = message.book.english.lexicon.keywords
    for sentence in sentences:
        words = sentence.words
        if sentence.seen & KEYWORD and (sentence.act is not _STATEMENT or len(sentences) == 1):
            for word in itertools.compress(words, map(_IS_KEYWORD, sentence.flags)):
                stem, kind, rule = keywords[word]
                if stem not in found:
                    found[stem] = _keyword(text, word, kind, rule)
        for order in sentence.orders:
            verb = order.verb
            if order.work and verb not in found and verb not in keywords:
                found[verb] = _keyword(text, words[order.at], _KEYWORD, _ORDER)
        if sentence.act is _COMMAND and words[0] not in found:
            found[words[0]] = _keyword(text, words[0], _KEYWORD, _COMMAND)
    return found.values()


def _keyword(text: str, word: str, kind: TriggerKind, rule: str) -> Trigger:
    """A word of the text where it first stands as a word, or at least as a part."""
    start = first = text.find(word)
    length = len(word)
    while start >= 0:
        if not (text[start - 1 : start].isalnum() or text[start + length : start + length + 1].isalnum()):
            return _new(Trigger, (kind, word, rule, start, start + length))
        start = text.find(word, start + 1)
    return Trigger(kind, word, rule, max(0, first), max(0, first) + length)


def _foreign_keywords(message: _Message, reading: Reading) -> Iterable[Trigger]:
    found: dict[str, Trigger] = {}
    text = message.scan.masked
    for name in ("do", "make", "read"):
        if name in reading.hits:
            for match in reading.language.classes.expressions[name].finditer(reading.text):
                start, end = match.span()
                word = text[start:end].strip(" ,.;:!?\n\t'\"()-")
                if word not in found:
                    found[word] = _keyword(text, word, _KEYWORD, f"{reading.language.code}.{name}")
    return found.values()


def _triggers(message: _Message, keywords: Iterable[Trigger]) -> tuple[Trigger, ...]:
    """References, keywords and own rules, in the order of their places."""
    if not (message.own or message.scan.references):
        return tuple(sorted(keywords, key=_start))
    words = [trigger for trigger in keywords if not trigger.name.startswith(MASK)]  # a reference counts as itself
    return tuple(sorted([*words, *message.scan.references, *_own_triggers(message)], key=_start))


def _own_triggers(message: _Message) -> Iterator[Trigger]:
    for own, match in message.own:
        if own.effect in (RuleEffect.ACTION, RuleEffect.REFERENCE):
            yield Trigger(TriggerKind.OWN_RULE, own.id, f"own.{own.id}", match.start(), match.end())


def _act(
    message: _Message, rule: str, triggers: tuple[Trigger, ...], reads: bool, found: dict[PlanningTrigger, str]
) -> Classification:
    strong = len(triggers) >= STRONG_AT
    if strong and found:
        found.pop(PlanningTrigger.AMBIGUOUS_SCOPE, None)
    bypass = _bypass(message, reads)
    reasons: tuple[DebateReason, ...] = ()
    stakes = _NO_STAKES
    if found or message.own:
        reasons = debating.reasons_for(found, message.lower) + _own_reasons(message)
        stakes = _stakes(message, found)
    rules = [rule, *map(_rule, triggers), *map(_rule, reasons)]
    if bypass is not None:
        rules.append(_BYPASS_RULES[bypass])
    confidence = _STRONG if strong else _WEAK
    debate = _PLANNING if reasons and bypass is None else _NO_DEBATE
    told = (_ACTION, confidence, triggers, _SWARM, False, debate, stakes, bypass, reasons, tuple(dict.fromkeys(rules)))
    return _new(Classification, (*told, message.book.version))


_BYPASS_RULES = {bypass: f"bypass.{bypass}" for bypass in Bypass}
_OWN_STAKES = {RuleEffect.HIGH_STAKES: Stakes.HIGH, RuleEffect.MEDIUM_STAKES: Stakes.MEDIUM}


def _own_reasons(message: _Message) -> tuple[DebateReason, ...]:
    return tuple(
        DebateReason(PlanningTrigger.OWN_RULE, f"own.{rule.id}", match.start(), match.end())
        for rule, match in message.own
        if rule.effect in _OWN_STAKES
    )


def _stakes(message: _Message, found: dict[PlanningTrigger, str]) -> Stakes:
    """The highest of all that apply."""
    table = message.book.debate.stakes
    all_stakes = {table[trigger] for trigger in found}
    all_stakes |= {_OWN_STAKES[rule.effect] for rule, _ in message.own if rule.effect in _OWN_STAKES}
    return next((stakes for stakes in (Stakes.HIGH, Stakes.MEDIUM) if stakes in all_stakes), Stakes.NONE)


def _bypass(message: _Message, reads: bool) -> Bypass | None:
    """In order of precedence; a trivial command never comes here."""
    if "override.user" in message.scan.shapes:
        return _USER_OVERRIDE
    if reads:
        return _READ_ONLY
    return _ALREADY_DEBATED if message.already_debated else None


def _answer(book: RuleBook, rule: str) -> Classification:
    """Talk: one decision for each rule that says so, made once."""
    known = book.answers.get(rule)
    if known is None:
        known = book.answers[rule] = Classification(
            mode=Mode.ANSWER,
            confidence=Confidence.NONE,
            triggers=(),
            route=RouteTarget.DIRECT_RESPONSE,
            fast_path=False,
            debate=Debate.NONE,
            stakes=Stakes.NONE,
            bypass=None,
            reasons=(),
            rules=(rule,),
            rule_set_version=book.version,
        )
    return known


def _fast_path(book: RuleBook, lower: str, command: str) -> Classification:
    start = lower.find(command)
    rule = f"fast_path.{command}"
    return Classification(
        mode=Mode.ACTION,
        confidence=Confidence.WEAK,
        triggers=(Trigger(TriggerKind.KEYWORD, command, rule, start, start + len(command)),),
        route=RouteTarget.TOOL_SPECIALIST,
        fast_path=True,
        debate=Debate.NONE,
        stakes=Stakes.NONE,
        bypass=Bypass.TRIVIAL,
        reasons=(),
        rules=(rule, f"bypass.{Bypass.TRIVIAL}"),
        rule_set_version=book.version,
    )
