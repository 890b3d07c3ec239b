"""Finds reasons for a planning debate in sentences, and recognises messages that only read."""

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pointsman.services.router.domain.enums import PlanningTrigger, Stakes
from pointsman.services.router.domain.language.english import speech_act_of
from pointsman.services.router.domain.language.lexicon import (
    ASK,
    BULK,
    CHANGE,
    DATA,
    KEY,
    KEY_OWNER,
    MAKE,
    MASK,
    PRODUCTION,
    READ,
    RISKY,
    SECURITY,
    SURFACE,
    TELL,
    TIME,
    TOOL,
    VAGUE,
    VERB,
    WEIGHTY,
    words_of,
)
from pointsman.services.router.domain.language.readings import Reading
from pointsman.services.router.domain.language.sentence import (
    ACTIVE,
    TELLING,
    English,
    Imperative,
    Sentence,
    SpeechAct,
    senses_of,
)
from pointsman.services.router.domain.model import DebateReason
from pointsman.services.router.domain.rule_document import DebateRule

_ALL = tuple(PlanningTrigger)
MAX_WISHED = 16
_WRITING_MARKS = frozenset({">", ">>", "&", "&&", ";"})
_WRITING_OPTIONS = words_of(
    "-delete -exec -execdir -ok -okdir -fprint -fprintf -fls --exec --exec-batch --delete xargs tee"
)
_WRITES_BY = {
    "sed": ("-i", "--in-place", "-ni", "-ei", "-ri"),
    "awk": ("-i",),
    "sort": ("-o", "--output"),
    "tree": ("-o",),
    "history": ("-c", "-d", "-w", "-a"),
    "fd": ("-x",),
}
_WRITING_SQL = words_of("into insert update delete drop alter create truncate replace merge grant revoke call exec")
_LISTED = frozenset({"branch", "remote", "reflog"})
_LISTING = words_of("""
    -a -r -v -vv -l -av -avv -rv --all --remotes --list --verbose --show-current --contains --no-contains --merged
    --no-merged --sort --format show get-url exists
    """)
_FILTERS = frozenset({"sort", "uniq", "cut", "awk", "sed", "tr"})
_POINTING = frozenset({"it", "them", "those", "these", "this", "that"})
_CHANGING = CHANGE | TOOL
_ACTING = CHANGE | MAKE | READ
_LOOKING = READ | TELL | ASK
_WRITING = CHANGE | MAKE
_SECRET = SECURITY | KEY
_OBJECTS = SECURITY | KEY | VAGUE
_EDGES = frozenset(
    {"from", "in", "of", "to", "with", "by", "under", "on", "for", "at", "into", "when", "if", "that", "which"}
)
_SUBORDINATE = frozenset({"that", "which", "where", "when", "if", "so", "while", "because", "whose"})
_HARMLESS = frozenset({"sort", "filter", "group", "sum", "calculate", "compute", "order", "compare", "let"})
_CHECKED = {trigger: f"debate.{trigger}" for trigger in PlanningTrigger}


@dataclass(frozen=True, slots=True)
class DebateRules:
    """The word sets of the debate rules."""

    destructive: frozenset[str]
    any_object: frozenset[str]
    deployment: frozenset[str]
    pushes: frozenset[str]
    stakes: Mapping[PlanningTrigger, Stakes]
    read_commands: frozenset[str]
    read_launcher_verbs: frozenset[str]
    destructive_commands: frozenset[str]
    segments: frozenset[str]
    """Path segments that name something security-relevant."""


def risky_verbs(rules: Mapping[str, DebateRule]) -> list[str]:
    """All verbs that may trigger a debate."""
    return [verb for rule in rules.values() for verb in f"{rule.verbs} {rule.pushes}".split()]


def build_debate(rules: Mapping[str, DebateRule], commands: Mapping[str, str]) -> DebateRules:
    """Builds the word sets from the rule file."""
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
        segments=frozenset(rules[PlanningTrigger.SECURITY].segments.split()),
    )


def planning_triggers(
    rules: DebateRules, english: English, sentences: Iterable[Sentence], wanted: bool = False
) -> dict[PlanningTrigger, str]:
    """Every reason to debate that the sentences give, with the deciding word; with wanted every sentence counts as a wish."""
    found: dict[PlanningTrigger, str] = {}
    for sentence in sentences:
        act = sentence.act
        if sentence.seen & WEIGHTY:
            act = speech_act_of(english, sentence)
            senses = senses_of(english, sentence)
            if sentence.imperatives:
                _weigh_imperatives(rules, sentence, found)
            if wanted or act is SpeechAct.WISH:
                _weigh_wish(rules, sentence, found)
            if (wanted or act in _IMPLIED_WORK) and sentence.meaning & _SECRET:
                _note(found, PlanningTrigger.SECURITY, _security_word(sentence.words, senses))
        if act is SpeechAct.COMMAND and sentence.words[0] in rules.destructive_commands:
            _note(found, PlanningTrigger.DESTRUCTIVE, sentence.words[0])
    return found


_IMPLIED_WORK = frozenset({SpeechAct.FAULT, SpeechAct.WISH, SpeechAct.CODE})


def _weigh_imperatives(rules: DebateRules, sentence: Sentence, found: dict[PlanningTrigger, str]) -> None:
    imperatives, end = sentence.imperatives, len(sentence.words)
    if len(imperatives) == 1:
        imperative = imperatives[0]
        if imperative.is_work and not is_reading(imperative):
            _weigh(rules, sentence, imperative, end, found)
        return
    ends = (*[imperative.at for imperative in imperatives[1:]], end)
    for imperative, end in zip(imperatives, ends, strict=True):
        if imperative.is_work and not is_reading(imperative):
            _weigh(rules, sentence, imperative, end, found)


def _weigh_wish(rules: DebateRules, sentence: Sentence, found: dict[PlanningTrigger, str]) -> None:
    """Weighs each verb of a wish like an imperative."""
    verbs = [at for at, flag in enumerate(sentence.flags) if flag & _CHANGING][:MAX_WISHED]
    for at, end in itertools.pairwise((*verbs, len(sentence.words))):
        _weigh(rules, sentence, Imperative(sentence.words[at], sentence.flags[at] & VERB, at, is_work=True), end, found)


def _note(found: dict[PlanningTrigger, str], trigger: PlanningTrigger, word: str) -> None:
    if word:
        found.setdefault(trigger, word)


def _weigh(
    rules: DebateRules, sentence: Sentence, imperative: Imperative, end: int, found: dict[PlanningTrigger, str]
) -> None:
    """Weighs an imperative's verb and the words up to the next imperative."""
    verb, flags, at, _ = imperative
    meaning, senses = sentence.meaning, sentence.senses or []
    if senses[at] & RISKY:
        _weigh_verb(rules, sentence, imperative, end, found)
    if meaning & BULK and flags & _CHANGING and not flags & MAKE:
        _note(found, PlanningTrigger.BULK, _bulk_word(sentence, at + 1, end))
    if meaning & _OBJECTS:
        words, senses = sentence.words[at + 1 : end], senses[at + 1 : end]
        if meaning & _SECRET:
            _note(found, PlanningTrigger.SECURITY, _security_word(words, senses, verb))
        if meaning & VAGUE:
            _note(found, PlanningTrigger.AMBIGUOUS_SCOPE, _vague_word(words, senses))


def _weigh_verb(
    rules: DebateRules, sentence: Sentence, imperative: Imperative, end: int, found: dict[PlanningTrigger, str]
) -> None:
    """Adds a reason if the verb destroys its object, or deploys it."""
    verb, _, at, _ = imperative
    words, senses = sentence.words[at + 1 : end], (sentence.senses or [])[at + 1 : end]
    pointed = sentence.meaning if words and words[0] in _POINTING else 0
    if verb in rules.destructive and (pointed & DATA or _destroys_data(rules, words, senses, verb)):
        _note(found, PlanningTrigger.DESTRUCTIVE, sentence.words[at])
    if verb in rules.deployment or (verb in rules.pushes and _reaches_production(words, senses)):
        _note(found, PlanningTrigger.DEPLOYMENT, sentence.words[at])


def _destroys_data(rules: DebateRules, words: list[str], senses: list[int], verb: str) -> bool:
    """Whether the object, up to the first preposition, is data; some verbs destroy any object but a part of a user interface."""
    seen = 0
    for at, word in enumerate(words):
        if word in _EDGES and at:
            break
        seen |= senses[at]
        if seen & DATA:
            return True
    return verb in rules.any_object and not seen & SURFACE and bool(words)


def _reaches_production(words: list[str], senses: list[int]) -> bool:
    return any(
        sense & PRODUCTION and at and words[at - 1] in ("to", "into", "on", "the") for at, sense in enumerate(senses)
    )


def _security_word(words: list[str], senses: list[int], verb: str = "") -> str:
    for at, sense in enumerate(senses):
        if sense & _SECRET and (
            sense & SECURITY or verb in ("rotate", "revoke") or (at and senses[at - 1] & KEY_OWNER)
        ):
            return words[at]
    return ""


def _vague_word(words: list[str], senses: list[int]) -> str:
    for at, sense in enumerate(senses):
        if sense & VAGUE:
            return words[at]
    return ""


def _bulk_word(sentence: Sentence, start: int, end: int) -> str:
    """The quantifier of what is changed: before any subordinate clause, and not of time ("all day")."""
    senses = sentence.senses or []
    words, flags = sentence.words, sentence.flags
    for at in range(start, end):
        word, within = words[at], at + 1 < end
        if word in _SUBORDINATE or (word == "to" and within and flags[at + 1] & _ACTING):
            return ""
        if senses[at] & BULK and not (within and senses[at + 1] & TIME) and not (at > start and words[at - 1] == "at"):
            return word
    return ""


def is_reading(imperative: Imperative) -> bool:
    """Whether the imperative only reads."""
    verb, flags, _, _ = imperative
    return bool(flags & _LOOKING and not flags & _WRITING) or verb in _HARMLESS


def only_reads(rules: DebateRules, english: English, sentences: list[Sentence], harmful: bool) -> bool:
    """Whether the message only reads: all its imperatives and commands do, there is one, and no harmful code stands alone."""
    for sentence in sentences:
        for verb, flags, _, _ in sentence.imperatives:
            if (flags & _WRITING or not flags & _LOOKING) and verb not in _HARMLESS:
                return False
    looks = False
    for sentence in sentences:
        looking = _looks(rules, english, sentence, harmful)
        if looking is None:
            return False
        looks = looks or looking
    return looks


def _looks(rules: DebateRules, english: English, sentence: Sentence, harmful: bool) -> bool | None:
    """Whether a sentence reads (True), is only talk (False), or asks for more (None); a reference alone proves nothing."""
    words = sentence.words
    act = speech_act_of(english, sentence)
    if act is not SpeechAct.QUESTION and not _WRITING_OPTIONS.isdisjoint(words):
        return None
    if sentence.imperatives:
        return True
    if act is SpeechAct.COMMAND:
        return True if command_reads(rules, sentence) else None
    if act in TELLING and not harmful and _only_selects(sentence.message.lower):
        return True
    if act in ACTIVE or (harmful and act in TELLING and any(word[0] == MASK for word in words)):
        return None
    return act is SpeechAct.QUESTION or act is SpeechAct.REQUEST


def _only_selects(text: str) -> bool:
    """Whether the text is an SQL query without any writing statement."""
    return text.lstrip().startswith("select ") and _WRITING_SQL.isdisjoint(text.split())


def command_reads(rules: DebateRules, sentence: Sentence) -> bool:
    """Whether each part of a pipe only reads, without redirecting, chaining, deleting or executing."""
    if not _WRITING_MARKS.isdisjoint(sentence.words):
        return False
    parts = " ".join(sentence.words).split("|")
    return all(_part_reads(rules, part.split()) for part in parts)


def _part_reads(rules: DebateRules, words: list[str]) -> bool:
    if not words:
        return True
    program, given = words[0], words[1:]
    if program == "git":
        return bool(given) and given[0] in rules.read_launcher_verbs and _git_lists(given)
    if program not in rules.read_commands and program not in _FILTERS:
        return False
    if program == "env" and given:  # env runs the command that follows
        return False
    return not any(word.startswith(_WRITES_BY.get(program, ())) for word in given)


def _git_lists(words: list[str]) -> bool:
    """Whether `git branch`, `git remote` or `git reflog` only lists: without arguments or with a listing option."""
    return words[0] not in _LISTED or words[1:2] == [] or words[1] in _LISTING


def foreign_planning_triggers(reading: Reading) -> dict[PlanningTrigger, str]:
    """Every reason to debate in another language, found by its term sets."""
    hits, term_sets = reading.hits, reading.language.term_sets
    found: dict[PlanningTrigger, str] = {}
    for trigger, name, needed, without in _FOREIGN:
        if needed <= hits and without not in hits and (place := term_sets.first(name, reading.text)) is not None:
            found[trigger] = reading.text[place[0] : place[1]].strip()
    return found


_FOREIGN: tuple[tuple[PlanningTrigger, str, frozenset[str], str], ...] = (
    (PlanningTrigger.DESTRUCTIVE, "destructive", frozenset({"destructive", "data"}), ""),
    (PlanningTrigger.DEPLOYMENT, "deployment", frozenset({"deployment"}), ""),
    (PlanningTrigger.SECURITY, "security", frozenset({"security"}), ""),
    (PlanningTrigger.BULK, "bulk", frozenset({"bulk", "do"}), ""),
    (PlanningTrigger.AMBIGUOUS_SCOPE, "vague", frozenset({"vague", "do"}), "work"),
)
"""Rows of (trigger, term set that names it, term sets that must match, term set that must not)."""
_CHANGED = frozenset({"do", "fault"})
_MADE = frozenset({"make", "wish", "approval"})
_LOOKED_AT = frozenset({"read", "question", "tell"})


def foreign_only_reads(reading: Reading) -> bool:
    """Whether a message in another language only reads."""
    hits = reading.hits
    if not hits.isdisjoint(_CHANGED) or not ("read" in hits or hits.isdisjoint(_MADE)):
        return False
    return not hits.isdisjoint(_LOOKED_AT)


def reasons_for(found: Mapping[PlanningTrigger, str], text: str) -> tuple[DebateReason, ...]:
    """The reasons with their spans in the text, in the order of PlanningTrigger."""
    reasons = []
    for trigger in found if len(found) < 2 else filter(found.__contains__, _ALL):
        start = max(0, text.find(found[trigger]))
        reasons.append(DebateReason(trigger, _CHECKED[trigger], start, start + len(found[trigger])))
    return tuple(reasons)
