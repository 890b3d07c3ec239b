"""The procedure: one message in, one explained decision out. The same text and rules always give the same."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pointsman.services.router.domain import debate as debating
from pointsman.services.router.domain.document import OwnRule, RuleDocument, RuleEffect, RuleProblem
from pointsman.services.router.domain.english import ACTIVE, Act, English, Sentence, read_english
from pointsman.services.router.domain.languages import (
    Languages,
    Reading,
    build_languages,
    detect_language,
    read_language,
)
from pointsman.services.router.domain.lexicon import build_lexicon
from pointsman.services.router.domain.scan import PatternSet, Scan, compile_pattern, pattern_set, scan
from pointsman.services.router.domain.values import (
    Bypass,
    Classification,
    Confidence,
    Debate,
    Mode,
    PlanningTrigger,
    RouteTarget,
    Stakes,
    Trigger,
    TriggerKind,
)

STRONG_AT = 3
_PLAIN_WORD = re.compile(r"\w[\w'-]*")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class RuleBook:
    """A rule file, compiled, with a project's own rules."""

    document: RuleDocument
    version: str
    patterns: PatternSet
    english: English
    languages: Languages
    fast_path: PatternSet
    debate: debating.DebateRules
    own: tuple[tuple[OwnRule, Any], ...] = ()


def build_rule_book(document: RuleDocument) -> RuleBook:
    """Compile a rule file; a rule that cannot be taken is refused by name."""
    english = document.english
    lexicon = build_lexicon(english)
    commands = " ".join(english.commands[name] for name in ("read", "write", "destructive"))
    return RuleBook(
        document=document,
        version=document.version,
        patterns=pattern_set({name: rule.pattern for name, rule in document.patterns.items()}),
        english=English(
            lexicon=lexicon,
            phrases=pattern_set(english.phrases),
            commands=frozenset(commands.split()),
            launchers=frozenset(english.commands["launcher"].split()),
            launcher_verbs=frozenset(english.commands["launcher_verb"].split()),
        ),
        languages=build_languages(document.languages, frozenset(lexicon.flags)),
        fast_path=pattern_set(document.fast_path),
        debate=debating.build_debate(document.debate, english.commands),
    )


def with_own_rules(book: RuleBook, own: Sequence[OwnRule]) -> RuleBook:
    """The same book with a project's rules added; the version names them by their digest."""
    if not own:
        return replace(book, own=(), version=book.document.version)
    seen: set[str] = set()
    compiled = []
    for rule in own:
        if rule.id in seen:
            raise RuleProblem(rule.id, "the id is used twice")
        seen.add(rule.id)
        compiled.append((rule, compile_pattern(rule.id, f"(?i){rule.pattern}")))
    told = "\n".join(f"{rule.id}\t{rule.effect}\t{rule.pattern}" for rule in own)
    digest = hashlib.sha256(told.encode("utf-8", "replace")).hexdigest()[:12]
    return replace(book, own=tuple(compiled), version=f"{book.document.version}+{digest}")


def classify(
    book: RuleBook, text: str, *, already_debated: bool = False, system_generated: bool = False
) -> Classification:
    """Decide one message."""
    lower = lower_case(text)
    found = scan(book.patterns, book.document.patterns, lower)
    if system_generated or "system.marker" in found.marks:
        return _answer(book, "system.marker")
    command = book.fast_path.matching(lower.strip())
    if command:
        return _fast_path(book, lower, command[0])
    own = tuple((rule, match) for rule, pattern in book.own if (match := pattern.search(lower)) is not None)
    words = set(_PLAIN_WORD.findall(lower))
    language = detect_language(book.languages, lower, words)
    message = _Message(book, lower, found, own, already_debated)
    if language is None:
        return _classify_english(message)
    return _classify_foreign(message, read_language(language, found.masked))


def lower_case(text: str) -> str:
    """Lower case with straight apostrophes, every letter at its old place."""
    lower = text.lower()
    if lower.isascii():
        return lower
    if len(lower) != len(text):
        lower = "".join(low if len(low := letter.lower()) == 1 else letter for letter in text)
    return _SURROGATE.sub("\ufffd", lower).replace("’", "'")


@dataclass(frozen=True, slots=True)
class _Message:
    """One message on its way through the procedure."""

    book: RuleBook
    lower: str
    scan: Scan
    own: tuple[tuple[OwnRule, Any], ...]
    already_debated: bool

    def own_with(self, effect: RuleEffect) -> str:
        """The first own rule of this effect that matches."""
        return next((f"own.{rule.id}" for rule, _ in self.own if rule.effect is effect), "")


def _classify_english(message: _Message) -> Classification:
    marks = message.scan.marks
    sentences = read_english(message.book.english, message.scan.masked, "shape.identifier" in marks)
    rule = _mode_rule(message, _english_rule(sentences, marks))
    if not rule.active:
        return _answer(message.book, rule.name)
    triggers = _triggers(message, _english_keywords(message, sentences))
    reads = debating.only_reads(message.book.debate, sentences) and "shape.redirection" not in marks
    found = {} if reads else debating.planning_triggers(message.book.debate, sentences, message.lower)
    return _act(message, rule.name, triggers, reads, found)


def _classify_foreign(message: _Message, reading: Reading) -> Classification:
    rule = _mode_rule(message, _Rule(reading.rule, reading.active))
    if not rule.active:
        return _answer(message.book, rule.name)
    triggers = _triggers(message, _foreign_keywords(message, reading))
    reads = debating.foreign_only_reads(reading)
    found = {} if reads else debating.foreign_triggers(reading)
    return _act(message, rule.name, triggers, reads, found)


@dataclass(frozen=True, slots=True)
class _Rule:
    """The rule that decides the mode, and which way."""

    name: str
    active: bool


def _mode_rule(message: _Message, spoken: _Rule) -> _Rule:
    """References first, then what the project's own rules say, then what the message does."""
    if message.scan.references:
        return _Rule(message.scan.references[0].rule, active=True)
    if name := message.own_with(RuleEffect.REFERENCE):
        return _Rule(name, active=True)
    if name := message.own_with(RuleEffect.ANSWER):
        return _Rule(name, active=False)
    if not spoken.active and not spoken.name.endswith("question") and (name := message.own_with(RuleEffect.ACTION)):
        return _Rule(name, active=True)
    return spoken


def _english_rule(sentences: list[Sentence], marks: frozenset[str]) -> _Rule:
    """One operation is enough; without any, the first sentence says what kind of talk it is."""
    for sentence in sentences:
        if sentence.act in ACTIVE:
            return _Rule(sentence.act, active=True)
    if not sentences:
        return _Rule(Act.ACKNOWLEDGEMENT, active=False)
    asked = any(sentence.act in (Act.QUESTION, Act.REQUEST) for sentence in sentences)
    if "shape.error_name" in marks and not asked:
        return _Rule(Act.FAULT, active=True)
    return _Rule(next((s.act for s in sentences if s.act is Act.QUESTION), sentences[0].act), active=False)


def _english_keywords(message: _Message, sentences: list[Sentence]) -> dict[str, tuple[str, str]]:
    """Each distinct keyword by its stem: the word as it stands, and its rule."""
    lexicon = message.book.english.lexicon
    indicators = message.book.document.english.code_indicators.split()
    found: dict[str, tuple[str, str]] = {}
    for sentence in sentences:
        if sentence.act is Act.STATEMENT:
            continue
        for word in sentence.words:
            stem = lexicon.stems.get(word)
            if stem is not None:
                found.setdefault(stem, (word, lexicon.keyword_rules[stem]))
            elif word in indicators:
                found.setdefault(word, (word, "code_indicator"))
        for order in sentence.orders:
            if order.work:
                found.setdefault(order.verb, (sentence.words[order.at], Act.ORDER))
        if sentence.act is Act.COMMAND:
            found.setdefault(sentence.words[0], (sentence.words[0], Act.COMMAND))
    return found


def _foreign_keywords(message: _Message, reading: Reading) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for name in ("do", "make", "read"):
        if name in reading.hits:
            for match in reading.language.classes.expressions[name].finditer(reading.text):
                start, end = match.span()
                word = message.scan.masked[start:end].strip(" ,.;:!?\n\t'\"()-")
                found.setdefault(word, (word, f"{reading.language.code}.{name}"))
    return found


def _triggers(message: _Message, keywords: dict[str, tuple[str, str]]) -> tuple[Trigger, ...]:
    """References, keywords and own rules, in the order of their places."""
    found = list(message.scan.references)
    text = message.scan.masked
    for word, rule in keywords.values():
        start = _place(text, word)
        kind = TriggerKind.CODE_INDICATOR if rule == "code_indicator" else TriggerKind.KEYWORD
        found.append(Trigger(kind, word, rule, start, start + len(word)))
    for own, match in message.own:
        if own.effect in (RuleEffect.ACTION, RuleEffect.REFERENCE):
            found.append(Trigger(TriggerKind.OWN_RULE, own.id, f"own.{own.id}", match.start(), match.end()))
    return tuple(sorted(found, key=_start))


def _start(trigger: Trigger) -> int:
    return trigger.start


def _place(text: str, word: str) -> int:
    """Where a word stands as a word, or at least as a part."""
    start = text.find(word)
    first = start
    while start >= 0:
        before = text[start - 1] if start else " "
        after = text[start + len(word) : start + len(word) + 1] or " "
        if not (before.isalnum() or after.isalnum()):
            return start
        start = text.find(word, start + 1)
    return max(0, first)


def _act(
    message: _Message, rule: str, triggers: tuple[Trigger, ...], reads: bool, found: dict[PlanningTrigger, str]
) -> Classification:
    confidence = Confidence.STRONG if len(triggers) >= STRONG_AT else Confidence.WEAK
    if confidence is Confidence.STRONG:
        found.pop(PlanningTrigger.AMBIGUOUS_SCOPE, None)
    reasons = debating.reasons_for(found, message.lower) + _own_reasons(message)
    stakes = _stakes(message, found)
    bypass = _bypass(message, reads)
    rules = (rule, *(t.rule for t in triggers), *(r.rule for r in reasons), *((f"bypass.{bypass}",) if bypass else ()))
    return Classification(
        mode=Mode.ACTION,
        confidence=confidence,
        triggers=triggers,
        route=RouteTarget.SWARM_ORCHESTRATOR,
        fast_path=False,
        debate=Debate.PLANNING if reasons and bypass is None else Debate.NONE,
        stakes=stakes,
        bypass=bypass,
        reasons=reasons,
        rules=tuple(dict.fromkeys(rules)),
        rule_set_version=message.book.version,
    )


_OWN_STAKES = {RuleEffect.HIGH_STAKES: Stakes.HIGH, RuleEffect.MEDIUM_STAKES: Stakes.MEDIUM}


def _own_reasons(message: _Message) -> tuple[debating.DebateReason, ...]:
    return tuple(
        debating.DebateReason(PlanningTrigger.OWN_RULE, f"own.{rule.id}", match.start(), match.end())
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
    if "override.user" in message.scan.marks:
        return Bypass.USER_OVERRIDE
    if reads:
        return Bypass.READ_ONLY
    return Bypass.ALREADY_DEBATED if message.already_debated else None


def _answer(book: RuleBook, rule: str) -> Classification:
    return Classification(
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
