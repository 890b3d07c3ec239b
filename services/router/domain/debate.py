"""Whether to debate before starting: what is at stake, and what bypasses the debate."""

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pointsman.services.router.domain.document import DebateRule
from pointsman.services.router.domain.languages import Reading
from pointsman.services.router.domain.lexicon import (
    ASK,
    BULK,
    CHANGE,
    DATA,
    KEY_OWNER,
    KEYS,
    MAKE,
    PRODUCTION,
    READ,
    SECURITY,
    SURFACE,
    TELL,
    TIME,
    TOOL,
    VAGUE,
    VERB,
    WEIGHTY,
)
from pointsman.services.router.domain.sentence import ACTIVE, Act, English, Order, Sentence, senses_of
from pointsman.services.router.domain.values import DebateReason, PlanningTrigger, Stakes

_DESTRUCTIVE, _DEPLOYMENT, _SECURITY, _BULK, _AMBIGUOUS_SCOPE, _OWN_RULE = _ALL = tuple(PlanningTrigger)
_COMMAND, _WISH = Act.COMMAND, Act.WISH
MAX_WISHED = 16
_WRITING_MARKS = frozenset({">", ">>", "&", "&&", ";", "-delete", "-exec", "-execdir", "xargs", "tee"})
_FILTERS = frozenset({"sort", "uniq", "cut", "awk", "sed", "tr"})
_POINTING = frozenset({"it", "them", "those", "these", "this", "that"})
_CHANGING = CHANGE | TOOL
_ACTING = CHANGE | MAKE | READ
_LOOKING = READ | TELL | ASK
_WRITING = CHANGE | MAKE
_EDGES = frozenset(
    {"from", "in", "of", "to", "with", "by", "under", "on", "for", "at", "into", "when", "if", "that", "which"}
)
_SUBORDINATE = frozenset({"that", "which", "where", "when", "if", "so", "while", "because", "whose"})
_HARMLESS = frozenset({"sort", "filter", "group", "sum", "calculate", "compute", "order", "compare", "let"})
_CHECKED = {trigger: f"debate.{trigger}" for trigger in PlanningTrigger}


@dataclass(frozen=True, slots=True)
class DebateRules:
    """The debate's lists, ready to be used."""

    destructive: frozenset[str]
    any_object: frozenset[str]
    deployment: frozenset[str]
    pushes: frozenset[str]
    stakes: Mapping[PlanningTrigger, Stakes]
    read_commands: frozenset[str]
    read_launcher_verbs: frozenset[str]
    destructive_commands: frozenset[str]


def risky_verbs(rules: Mapping[str, DebateRule]) -> list[str]:
    """The verbs that may start a debate."""
    return [verb for rule in rules.values() for verb in f"{rule.verbs} {rule.pushes}".split()]


def build_debate(rules: Mapping[str, DebateRule], commands: Mapping[str, str]) -> DebateRules:
    """Prepare the debate's lists."""
    destructive = rules[PlanningTrigger.DESTRUCTIVE]
    deployment = rules[PlanningTrigger.DEPLOYMENT]
    return DebateRules(
        destructive=frozenset(destructive.verbs.split()),
        any_object=frozenset(destructive.any_object.split()),
        deployment=frozenset(deployment.verbs.split()),
        pushes=frozenset(deployment.pushes.split()),
        stakes={PlanningTrigger(name): Stakes(rule.stakes) for name, rule in rules.items()},
        read_commands=frozenset(commands["read"].split()),
        read_launcher_verbs=frozenset(commands["git_read"].split()),
        destructive_commands=frozenset(commands["destructive"].split()),
    )


def planning_triggers(
    rules: DebateRules, english: English, sentences: Iterable[Sentence]
) -> dict[PlanningTrigger, str]:
    """Every reason to debate that the sentences give, each with the word that stands for it."""
    found: dict[PlanningTrigger, str] = {}
    for sentence in sentences:
        act = sentence.act
        if sentence.seen & WEIGHTY:
            senses = senses_of(english, sentence)
            if sentence.orders:
                _weigh_orders(rules, sentence, found)
            if act is _WISH:
                _weigh_wish(rules, sentence, found)
            if act in _IMPLIED_WORK:
                _note(found, _SECURITY, _security_word(sentence.words, senses))
        if act is _COMMAND and sentence.words[0] in rules.destructive_commands:
            _note(found, _DESTRUCTIVE, sentence.words[0])
    return found


_IMPLIED_WORK = frozenset({Act.FAULT, Act.WISH, Act.CODE})


def _weigh_orders(rules: DebateRules, sentence: Sentence, found: dict[PlanningTrigger, str]) -> None:
    ends = (*[order.at for order in sentence.orders[1:]], len(sentence.words))
    for order, end in zip(sentence.orders, ends, strict=True):
        if order.work and not is_reading(order):
            _weigh(rules, sentence, order, end, found)


def _weigh_wish(rules: DebateRules, sentence: Sentence, found: dict[PlanningTrigger, str]) -> None:
    """What somebody wants done is weighed like an order."""
    verbs = [at for at, flag in enumerate(sentence.flags) if flag & _CHANGING][:MAX_WISHED]
    for at, end in itertools.pairwise((*verbs, len(sentence.words))):
        _weigh(rules, sentence, Order(sentence.words[at], sentence.flags[at] & VERB, at, work=True), end, found)


def _note(found: dict[PlanningTrigger, str], trigger: PlanningTrigger, word: str) -> None:
    if word:
        found.setdefault(trigger, word)


def _weigh(rules: DebateRules, sentence: Sentence, order: Order, end: int, found: dict[PlanningTrigger, str]) -> None:
    """Look at an order's verb and at the words up to the next order."""
    verb = sentence.words[order.at]
    words, senses = sentence.words[order.at + 1 : end], (sentence.senses or [])[order.at + 1 : end]
    pointed = sentence.meaning if words and words[0] in _POINTING else 0
    if order.verb in rules.destructive and (pointed & DATA or _destroys_data(rules, words, senses, order)):
        _note(found, _DESTRUCTIVE, verb)
    if order.verb in rules.deployment or (order.verb in rules.pushes and _reaches_production(words, senses)):
        _note(found, _DEPLOYMENT, verb)
    _note(found, _SECURITY, _security_word(words, senses, order.verb))
    if order.flags & _CHANGING and not order.flags & MAKE:
        _note(found, _BULK, _bulk_word(sentence, order.at + 1, end))
    _note(found, _AMBIGUOUS_SCOPE, next((word for word, sense in zip(words, senses, strict=True) if sense & VAGUE), ""))


def _destroys_data(rules: DebateRules, words: list[str], senses: list[int], order: Order) -> bool:
    """The object, up to the first preposition, is data; some verbs need no more than any object that is no label."""
    seen = 0
    for at, word in enumerate(words):
        if word in _EDGES and at:
            break
        seen |= senses[at]
        if seen & DATA:
            return True
    return order.verb in rules.any_object and not seen & SURFACE and bool(words)


def _reaches_production(words: list[str], senses: list[int]) -> bool:
    return any(
        sense & PRODUCTION and at and words[at - 1] in ("to", "into", "on", "the") for at, sense in enumerate(senses)
    )


def _security_word(words: list[str], senses: list[int], verb: str = "") -> str:
    for at, word in enumerate(words):
        if senses[at] & SECURITY:
            return word
        if word in KEYS and (verb in ("rotate", "revoke") or (at and senses[at - 1] & KEY_OWNER)):
            return word
    return ""


def _bulk_word(sentence: Sentence, start: int, end: int) -> str:
    """A word of quantity that governs what is changed: before any subordinate clause, and not of time."""
    senses = sentence.senses or []
    if not sentence.meaning & BULK:
        return ""
    words, flags = sentence.words, sentence.flags
    for at in range(start, end):
        word, within = words[at], at + 1 < end
        if word in _SUBORDINATE or (word == "to" and within and flags[at + 1] & _ACTING):
            return ""
        if senses[at] & BULK and not (within and senses[at + 1] & TIME) and not (at > start and words[at - 1] == "at"):
            return word
    return ""


def is_reading(order: Order) -> bool:
    """The order only looks."""
    if order.verb in _HARMLESS:
        return True
    return bool(order.flags & _LOOKING) and not order.flags & _WRITING


def only_reads(rules: DebateRules, sentences: list[Sentence]) -> bool:
    """The whole message only looks: every order, every command, and nothing else that asks for work."""
    for sentence in sentences:
        if sentence.orders:
            for order in sentence.orders:
                if not is_reading(order):
                    return False
        elif sentence.act in ACTIVE and not (sentence.act is _COMMAND and _command_reads(rules, sentence)):
            return False
    return True


def _command_reads(rules: DebateRules, sentence: Sentence) -> bool:
    """Each part of a pipe only reads; what redirects, chains, deletes or executes does not."""
    if not _WRITING_MARKS.isdisjoint(sentence.words):
        return False
    parts = " ".join(sentence.words).split("|")
    return all(_part_reads(rules, part.split()) for part in parts)


def _part_reads(rules: DebateRules, words: list[str]) -> bool:
    if not words or words[0] in rules.read_commands:
        return True
    if words[0] == "git":
        return len(words) > 1 and words[1] in rules.read_launcher_verbs
    return words[0] in _FILTERS and not any(word.startswith("-i") for word in words)


def foreign_triggers(reading: Reading) -> dict[PlanningTrigger, str]:
    """Every reason to debate in another language, by its lists."""
    hits = reading.hits
    names = {
        _DESTRUCTIVE: "destructive" in hits and "data" in hits,
        _DEPLOYMENT: "deployment" in hits,
        _SECURITY: "security" in hits,
        _BULK: "bulk" in hits and "do" in hits,
        _AMBIGUOUS_SCOPE: "vague" in hits and "do" in hits and "work" not in hits,
    }
    expressions = reading.language.classes.expressions
    lists = {_AMBIGUOUS_SCOPE: "vague"}
    return {
        trigger: expressions[lists.get(trigger, trigger.value)].search(reading.text).group().strip()
        for trigger, holds in names.items()
        if holds
    }


def foreign_only_reads(reading: Reading) -> bool:
    """The message only looks, in another language."""
    hits = reading.hits
    return not hits & {"do", "make", "fault", "wish", "approval"} or ("read" in hits and not hits & {"do", "fault"})


def reasons_for(found: Mapping[PlanningTrigger, str], text: str) -> tuple[DebateReason, ...]:
    """The reasons with their places in the text, in the order of the table."""
    reasons = []
    for trigger in _ALL:
        if trigger in found:
            start = max(0, text.find(found[trigger]))
            reasons.append(DebateReason(trigger, _CHECKED[trigger], start, start + len(found[trigger])))
    return tuple(reasons)
