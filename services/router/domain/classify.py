"""The procedure: one message in, one explained decision out. The same text and rules always give the same."""

import operator
import re
from typing import Any, NamedTuple

from pointsman.services.router.domain import debate as debating
from pointsman.services.router.domain.document import OwnRule, RuleEffect
from pointsman.services.router.domain.english import belongs_to_talk, is_command_line, read_english
from pointsman.services.router.domain.languages import (
    Reading,
    detect_language,
    read_language,
)
from pointsman.services.router.domain.rulebook import RuleBook
from pointsman.services.router.domain.scan import MASK, Scan, scan
from pointsman.services.router.domain.sentence import ACTIVE, Act, Sentence, tokens_of
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
REMEMBERED_TEXTS = 4096
REMEMBERED_LETTERS = 1000
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def classify(
    book: RuleBook, text: str, *, already_debated: bool = False, system_generated: bool = False
) -> Classification:
    """Decide one message."""
    known = book.known.get((text, already_debated))
    if known is not None and not system_generated:
        return known
    found = decide(book, text, already_debated=already_debated, system_generated=system_generated)
    if len(text) <= REMEMBERED_LETTERS and not system_generated:
        if len(book.known) >= REMEMBERED_TEXTS:
            book.known.clear()
        book.known[text, already_debated] = found
    return found


def decide(
    book: RuleBook, text: str, *, already_debated: bool = False, system_generated: bool = False
) -> Classification:
    """Decide one message by going through the procedure, whether it was met before or not."""
    lower = lower_case(text)
    if system_generated or book.probes["system.marker"].find(lower) is not None:
        return _answer(book, "system.marker")
    found = scan(book.probes, book.references, lower)
    tokens = tokens_of(found.masked)
    if tokens and tokens[0] in book.document.fast_path:
        command = book.fast_path.matching(lower.strip())
        if command:
            return _fast_path(book, lower, command[0])
    own = _own_matches(book, lower) if book.own else ()
    message = _Message(book, lower, found, own, already_debated)
    words = set(tokens)
    language = detect_language(book.languages, lower, words)
    if language is None or (tokens[0] in book.english.commands and is_command_line(book.english, tokens)):
        return _classify_english(message, tokens, words)
    return _classify_foreign(message, read_language(language, found.masked))


def _own_matches(book: RuleBook, lower: str) -> tuple[tuple[OwnRule, Any], ...]:
    return tuple((rule, match) for rule, pattern in book.own if (match := pattern.search(lower)) is not None)


def lower_case(text: str) -> str:
    """Lower case with straight apostrophes, every letter at its old place."""
    lower = text.lower()
    if lower.isascii():
        return lower
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


def _classify_english(message: _Message, tokens: list[str], words: set[str]) -> Classification:
    book = message.book
    sentences = read_english(book.english, tokens, message.scan)
    name, active = _mode_rule(message, *_english_rule(message, sentences))
    if not active:
        return _answer(book, name)
    triggers = _triggers(message, _english_keywords(book, sentences, words))
    reads = debating.only_reads(book.debate, sentences) and not _redirects(message)
    found = {} if reads else debating.planning_triggers(book.debate, sentences)
    if not reads and ("*" in message.lower or not book.risky.isdisjoint(words)):
        _add_patterns(message, found)
    return _act(message, name, triggers, reads, found)


def _redirects(message: _Message) -> bool:
    return message.book.probes["shape.redirection"].find(message.lower) is not None


def _add_patterns(message: _Message, found: dict[PlanningTrigger, str]) -> None:
    """Reasons to debate that are expressions over the text: SQL, command lines, wildcards."""
    for trigger, probe in message.book.debate_probes.items():
        match = probe.find(message.lower)
        if match is not None:
            found.setdefault(trigger, match.group().strip())


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


def _english_rule(message: _Message, sentences: list[Sentence]) -> tuple[str, bool]:
    """One operation is enough; without any, a question or the first sentence says what kind of talk it is."""
    talk = Act.ACKNOWLEDGEMENT if not sentences else sentences[0].act
    asked = requested = False
    for sentence in sentences:
        act = sentence.act
        if act in ACTIVE and not (requested and belongs_to_talk(sentence)):
            return act, True
        if act is _QUESTION:
            talk = _QUESTION
        requested = requested or act is _REQUEST
        asked = asked or act is _QUESTION
    if not (asked or requested) and message.book.probes["shape.error_name"].find(message.scan.masked) is not None:
        return Act.FAULT, True
    return talk, False


def _english_keywords(book: RuleBook, sentences: list[Sentence], words: set[str]) -> dict[str, tuple[str, str]]:
    """Each distinct keyword by its stem: the word as it stands, and its rule."""
    lexicon = book.english.lexicon
    found: dict[str, tuple[str, str]] = {}
    if len(sentences) > 1:
        words = {word for sentence in sentences if sentence.act is not _STATEMENT for word in sentence.words}
    for word in words & book.keywords:
        if word in book.indicators:
            found[word] = (word, "code_indicator")
        else:
            stem = lexicon.stems[word]
            found[stem] = (word, lexicon.keyword_rules[stem])
    for sentence in sentences:
        for order in sentence.orders:
            if order.work and order.verb not in found:
                found[order.verb] = (sentence.words[order.at], _ORDER)
        if sentence.act is _COMMAND:
            found.setdefault(sentence.words[0], (sentence.words[0], _COMMAND))
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
    text = message.scan.masked
    found = [
        Trigger(
            _INDICATOR if rule == "code_indicator" else _KEYWORD,
            word,
            rule,
            start := _place(text, word),
            start + len(word),
        )
        for word, rule in keywords.values()
        if not word.startswith(MASK)  # the place of a reference, which counts as itself
    ]
    found += message.scan.references
    for own, match in message.own:
        if own.effect in (RuleEffect.ACTION, RuleEffect.REFERENCE):
            found.append(Trigger(TriggerKind.OWN_RULE, own.id, f"own.{own.id}", match.start(), match.end()))
    if len(found) > 1:
        found.sort(key=_start)
    return tuple(found)


# Looking up a member costs more than the rest of most functions here: they are looked up once.
_KEYWORD, _INDICATOR = TriggerKind.KEYWORD, TriggerKind.CODE_INDICATOR
_STATEMENT, _QUESTION, _REQUEST, _COMMAND, _ORDER = Act.STATEMENT, Act.QUESTION, Act.REQUEST, Act.COMMAND, Act.ORDER
_ACTION, _SWARM, _PLANNING, _NO_DEBATE = Mode.ACTION, RouteTarget.SWARM_ORCHESTRATOR, Debate.PLANNING, Debate.NONE
_STRONG, _WEAK, _NO_STAKES = Confidence.STRONG, Confidence.WEAK, Stakes.NONE
_start = operator.attrgetter("start")


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
    strong = len(triggers) >= STRONG_AT
    if strong and found:
        found.pop(PlanningTrigger.AMBIGUOUS_SCOPE, None)
    bypass = _bypass(message, reads)
    reasons: tuple[DebateReason, ...] = ()
    stakes = _NO_STAKES
    if found or message.own:
        reasons = debating.reasons_for(found, message.lower) + _own_reasons(message)
        stakes = _stakes(message, found)
    rules = [rule, *[trigger.rule for trigger in triggers], *[reason.rule for reason in reasons]]
    if bypass is not None:
        rules.append(_BYPASS_RULES[bypass])
    return Classification(
        _ACTION,
        _STRONG if strong else _WEAK,
        triggers,
        _SWARM,
        False,  # noqa: FBT003 - by position, for speed
        _PLANNING if reasons and bypass is None else _NO_DEBATE,
        stakes,
        bypass,
        reasons,
        tuple(dict.fromkeys(rules)),
        message.book.version,
    )


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
    if message.book.probes["override.user"].find(message.lower) is not None:
        return Bypass.USER_OVERRIDE
    if reads:
        return Bypass.READ_ONLY
    return Bypass.ALREADY_DEBATED if message.already_debated else None


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
