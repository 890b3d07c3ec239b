"""Classifies one message: mode, confidence, triggers, debate and stakes. The same text and rules give the same result."""

import itertools
import re
from typing import Any, NamedTuple

from pointsman.services.router.domain.classification import debate_triggers
from pointsman.services.router.domain.classification.bypass import bypass_of
from pointsman.services.router.domain.classification.path_stakes import changed_path, foreign_changed_path
from pointsman.services.router.domain.classification.rule_book import RuleBook
from pointsman.services.router.domain.classification.triggers import english_triggers, foreign_triggers
from pointsman.services.router.domain.enums import (
    Bypass,
    Confidence,
    Debate,
    Mode,
    PlanningTrigger,
    RouteTarget,
    Stakes,
    TriggerKind,
)
from pointsman.services.router.domain.language.english import is_command_line, message_act, read_english
from pointsman.services.router.domain.language.languages import detect_language
from pointsman.services.router.domain.language.lexicon import FOREIGN, WEIGHTY
from pointsman.services.router.domain.language.quotes import LOG, QUOTES, blank_logs, blank_quotes
from pointsman.services.router.domain.language.readings import Reading, read_language
from pointsman.services.router.domain.language.scan import Message, Shapes, mask_references
from pointsman.services.router.domain.language.sentence import (
    English,
    Sentence,
    SpeechAct,
    make_sentences,
    sentences_of,
)
from pointsman.services.router.domain.model import Classification, DebateReason, Trigger
from pointsman.services.router.domain.rule_document import OwnRule, RuleEffect

STRONG_AT = 3
_SYSTEM = "system.marker"
_REDIRECTION = "shape.redirection"
_FENCE = "reference.fence"
LAYER_ACTION = "second_layer.action"
LAYER_TALK = "second_layer.talk"
_NO_WORDS: set[str] = set()
_SURROGATE = re.compile(r"[\ud800-\udfff]")


class _DebateDecision(NamedTuple):
    debate: Debate = Debate.NONE
    stakes: Stakes = Stakes.NONE
    bypass: Bypass | None = None
    reasons: tuple[DebateReason, ...] = ()


def classify(
    book: RuleBook,
    text: str,
    *,
    already_debated: bool = False,
    system_generated: bool = False,
    as_action: bool = False,
) -> Classification:
    """Classifies one message; with as_action every sentence is weighed as if it asked for work."""
    message, shapes = _message_of(book, text, already_debated)
    if as_action:
        message.as_action = True
    elif system_generated or _SYSTEM in shapes.names:
        return _answer(book, _SYSTEM)
    return _classify_users(book, message, shapes)


def weigh(book: RuleBook, text: str) -> tuple[Classification, int | None]:
    """Classifies one message, with the score of the second layer; None where a firm rule decides."""
    message, shapes = _message_of(book, text)
    if _SYSTEM in shapes.names:
        return _answer(book, _SYSTEM), None
    return _classify_users(book, message, shapes), message.score


def _message_of(book: RuleBook, text: str, already_debated: bool = False) -> tuple[Message, Shapes]:
    lower = text.lower()
    if not lower.isascii():
        lower = lower_in_place(text, lower)
    shapes = book.shapes.matching(lower)
    return Message(text, lower, shapes.names, already_debated), shapes


def _classify_users(book: RuleBook, message: Message, shapes: Shapes) -> Classification:
    """Classifies a message that a person wrote, not a program."""
    ascii_only = message.lower.isascii()
    if shapes.referring:
        mask_references(book.shapes.patterns, book.references, message, shapes.named)
    lower = message.lower
    quotes = not QUOTES.isdisjoint(shapes.names)
    if quotes:
        blank_quotes(book.shapes.patterns, message)
    parts = sentences_of(message.masked, shapes.marks)
    if not parts:
        return _answer(book, SpeechAct.ACKNOWLEDGEMENT)
    if (
        not quotes
        and parts[0][0] in book.fast_path.expressions
        and (command := book.fast_path.matching(message.lower.strip()))
    ):
        return _fast_path(book, message.lower, min(command))
    if book.own:
        message.own = _own_matches(book, lower)
    if not ascii_only and (reading := _foreign_reading(book, message, parts)) is not None:
        return _classify_foreign(book, message, reading)
    sentences = make_sentences(book.english.lexicon, parts, message)
    if ascii_only and message.seen & FOREIGN and (reading := _foreign_reading(book, message, parts)) is not None:
        return _classify_foreign(book, message, reading)
    return _classify_english(book, message, sentences, shapes.marks)


def _foreign_reading(book: RuleBook, message: Message, parts: list[list[str]]) -> Reading | None:
    """Reads a message in another language; None for English and for command lines."""
    words = set(itertools.chain.from_iterable(parts)) if message.lower.isascii() else _NO_WORDS
    language = detect_language(book.languages, message.lower, words)
    first = parts[0]
    if language is None or (first[0] in book.english.commands and is_command_line(book.english, first)):
        return None
    return read_language(language, message.masked)


def _own_matches(book: RuleBook, lower: str) -> tuple[tuple[OwnRule, Any], ...]:
    return tuple((rule, match) for rule, pattern in book.own if (match := pattern.search(lower)) is not None)


def lower_in_place(text: str, lower: str) -> str:
    """Lower-cases a text and straightens apostrophes without moving any letter."""
    if len(lower) != len(text):
        lower = "".join(low if len(low := letter.lower()) == 1 else letter for letter in text)
    return _SURROGATE.sub("\ufffd", lower).replace("’", "'")


def _classify_english(book: RuleBook, message: Message, sentences: list[Sentence], marks: int) -> Classification:
    english = book.english
    commands = _read_all(english, sentences)
    name: str
    if message.references:
        name = message.references[0].rule
    else:
        name, active = message_act(english, message, sentences)
        name, active = _weighed(book, message, name, name, active)
        if message.own:
            name, active = _mode_rule(message, name, active)
        if not active and not message.as_action:
            return _answer(book, name)
    triggers = english_triggers(book.english, message, sentences)
    shapes = message.shapes
    if LOG in shapes:
        sentences = blank_logs(book.shapes.patterns, english.lexicon, marks, message)
        commands = _read_all(english, sentences)
    harmful = bool(shapes) and _shows_harm(book, message)
    reads = not message.as_action and debate_triggers.only_reads(book.debate, english, sentences, harmful)
    reads = reads and _REDIRECTION not in shapes
    reasons: dict[PlanningTrigger, str] = {}
    if not reads and (commands or message.seen & WEIGHTY):
        reasons = debate_triggers.planning_triggers(book.debate, english, sentences, message.as_action)
    if not reads and message.references and (path := changed_path(book.debate, english, message, sentences)):
        reasons.setdefault(PlanningTrigger.SECURITY, path)
    if shapes and not reads and not shapes.isdisjoint(book.debated):
        _add_patterns(book, message, reasons)
    return _action(book, name, triggers, _decide_debate(book, message, len(triggers), reads, reasons))


def _read_all(english: English, sentences: list[Sentence]) -> bool:
    """Reads each sentence and returns whether one of them is a command line."""
    commands = False
    for sentence in sentences:
        read_english(english, sentence)
        commands = commands or sentence.act is SpeechAct.COMMAND
    return commands


def _shows_harm(book: RuleBook, message: Message) -> bool:
    """Whether the message holds harmful code or commands outside a code fence, where it may only be quoted for discussion."""
    if not any(
        trigger is not PlanningTrigger.BULK and name in message.shapes for name, trigger in book.debated.items()
    ):
        return False
    return any(reference.rule != _FENCE for reference in message.references)


def _add_patterns(book: RuleBook, message: Message, found: dict[PlanningTrigger, str]) -> None:
    """Adds reasons to debate that are found by expressions over the text: SQL, command lines, wildcards."""
    for name, trigger in book.debated.items():
        if name in message.shapes and (span := book.shapes.patterns.first(name, message.lower)):
            found.setdefault(trigger, message.lower[slice(*span)].strip())


def _classify_foreign(book: RuleBook, message: Message, reading: Reading) -> Classification:
    name, active = reading.rule, reading.active
    if not message.references:
        name, active = _weighed(book, message, reading.row, name, active)
    name, active = _mode_rule(message, name, active)
    if not active and not message.as_action:
        return _answer(book, name)
    triggers = foreign_triggers(message, reading)
    reads = not message.as_action and debate_triggers.foreign_only_reads(reading)
    reasons = {} if reads else debate_triggers.foreign_planning_triggers(reading)
    if not reads and (path := foreign_changed_path(book.debate, reading, message)):
        reasons.setdefault(PlanningTrigger.SECURITY, path)
    if not reads and not message.shapes.isdisjoint(book.debated):
        _add_patterns(book, message, reasons)
    return _action(book, name, triggers, _decide_debate(book, message, len(triggers), reads, reasons))


def _weighed(book: RuleBook, message: Message, kind: str, rule: str, active: bool) -> tuple[str, bool]:
    """The rule and whether it is ACTION, after the second layer has weighed the words of an open decision."""
    layer = book.layer
    if layer is None or kind not in layer.leans or message.as_action:
        return rule, active
    message.score = layer.score(kind, message.masked)
    wanted = message.score > book.threshold
    if wanted is active:
        return rule, active
    return (LAYER_ACTION if wanted else LAYER_TALK), wanted


def _mode_rule(message: Message, spoken: str, active: bool) -> tuple[str, bool]:
    """The rule that decides the mode, and whether it is ACTION: references, then the project's own rules, then the sentences."""
    if message.references:
        return message.references[0].rule, True
    if message.own:
        if name := _own_with(message, RuleEffect.REFERENCE):
            return name, True
        if name := _own_with(message, RuleEffect.ANSWER):
            return name, False
        if not active and not spoken.endswith("question") and (name := _own_with(message, RuleEffect.ACTION)):
            return name, True
    return spoken, active


def _own_with(message: Message, effect: RuleEffect) -> str:
    """The name of the first matching own rule with this effect."""
    return next((f"own.{rule.id}" for rule, _ in message.own if rule.effect is effect), "")


def _action(book: RuleBook, rule: str, triggers: tuple[Trigger, ...], debate: _DebateDecision) -> Classification:
    rules = {rule: None}
    for trigger in triggers:
        rules[trigger.rule] = None
    for reason in debate.reasons:
        rules[reason.rule] = None
    if debate.bypass is not None:
        rules[f"bypass.{debate.bypass}"] = None
    confidence = Confidence.STRONG if len(triggers) >= STRONG_AT else Confidence.WEAK
    return Classification(
        mode=Mode.ACTION,
        confidence=confidence,
        triggers=triggers,
        route=RouteTarget.SWARM_ORCHESTRATOR,
        fast_path=False,
        debate=debate.debate,
        stakes=debate.stakes,
        bypass=debate.bypass,
        reasons=debate.reasons,
        rules=tuple(rules),
        rule_set_version=book.version,
    )


def _decide_debate(
    book: RuleBook, message: Message, triggers: int, reads: bool, found: dict[PlanningTrigger, str]
) -> _DebateDecision:
    """Decides whether to debate, with stakes, bypass and reasons."""
    bypass = bypass_of(book.shapes.patterns, message, reads)
    if triggers >= STRONG_AT and found:
        found.pop(PlanningTrigger.AMBIGUOUS_SCOPE, None)
    if not (found or message.own):
        return _DebateDecision(bypass=bypass)
    reasons = debate_triggers.reasons_for(found, message.lower)
    if message.own:
        reasons += _own_reasons(message)
    debate = Debate.PLANNING if reasons and bypass is None else Debate.NONE
    return _DebateDecision(debate, _stakes(book, message, found), bypass, reasons)


_OWN_STAKES = {RuleEffect.HIGH_STAKES: Stakes.HIGH, RuleEffect.MEDIUM_STAKES: Stakes.MEDIUM}


def _own_reasons(message: Message) -> tuple[DebateReason, ...]:
    return tuple(
        DebateReason(PlanningTrigger.OWN_RULE, f"own.{rule.id}", match.start(), match.end())
        for rule, match in message.own
        if rule.effect in _OWN_STAKES
    )


def _stakes(book: RuleBook, message: Message, found: dict[PlanningTrigger, str]) -> Stakes:
    """The highest stakes of all reasons and own rules that apply."""
    table = book.debate.stakes
    all_stakes = [table[trigger] for trigger in found]
    for rule, _ in message.own:
        if rule.effect in _OWN_STAKES:
            all_stakes.append(_OWN_STAKES[rule.effect])
    if Stakes.HIGH in all_stakes:
        return Stakes.HIGH
    return Stakes.MEDIUM if Stakes.MEDIUM in all_stakes else Stakes.NONE


def _answer(book: RuleBook, rule: str) -> Classification:
    """The ANSWER classification of a rule, cached in the rule book."""
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
