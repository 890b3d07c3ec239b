"""The compiled rule file: everything that a classification looks up."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pointsman.services.router.domain.classification import debate_triggers
from pointsman.services.router.domain.classification.second_layer import SecondLayer
from pointsman.services.router.domain.enums import Doubt, PlanningTrigger
from pointsman.services.router.domain.language.languages import (
    Languages,
    build_languages,
    check_languages,
    latin_stopwords,
)
from pointsman.services.router.domain.language.lexicon import build_lexicon, spelt_verbs
from pointsman.services.router.domain.language.references import References, build_references
from pointsman.services.router.domain.language.scan import ShapeSet, shape_set
from pointsman.services.router.domain.language.sentence import English
from pointsman.services.router.domain.language.spelling import build_spelling
from pointsman.services.router.domain.model import Classification
from pointsman.services.router.domain.patterns import PatternSet, compile_pattern, pattern_set
from pointsman.services.router.domain.rule_document import OwnRule, RuleDocument, RuleProblem


@dataclass(frozen=True, slots=True)
class RuleBook:
    """A compiled rule file with a project's own rules."""

    document: RuleDocument
    version: str
    shapes: ShapeSet
    """The expressions over the whole text, including those of the debate rules."""
    debated: Mapping[str, PlanningTrigger]
    """The planning trigger of each expression of the debate rules."""
    references: References
    english: English
    languages: Languages
    fast_path: PatternSet
    """The trivial commands, each named by its first word."""
    debate: debate_triggers.DebateRules
    answers: dict[str, Classification]
    """Cache of the ANSWER classification of each rule."""
    own: tuple[tuple[OwnRule, Any], ...] = ()
    layer: SecondLayer | None = None
    """What weighs the words of a message that no firm rule decides; None for the rules alone."""
    threshold: int = 0
    """The score above which an open decision is ACTION."""


THRESHOLDS = {Doubt.BALANCED: 0, Doubt.ACTION: -500, Doubt.ANSWER: 500}
"""The threshold of each setting with a second layer."""


def build_rule_book(document: RuleDocument) -> RuleBook:
    """Compiles a rule file; raises RuleProblem with the name of an invalid rule."""
    english = document.english
    lexicon = build_lexicon(english, debate_triggers.risky_verbs(document.debate), latin_stopwords(document.languages))
    commands = " ".join(english.commands[name] for name in ("read", "write", "destructive"))
    debated = {f"debate.{name}": rule.pattern for name, rule in document.debate.items() if rule.pattern}
    shapes = shape_set({name: rule.pattern for name, rule in document.patterns.items()} | debated)
    return RuleBook(
        document=document,
        version=document.version,
        shapes=shapes,
        debated={name: PlanningTrigger(name.removeprefix("debate.")) for name in debated},
        references=build_references(document.references),
        english=English(
            lexicon=lexicon,
            stopwords=frozenset(english.stopwords.split()),
            phrases=pattern_set(english.phrases),
            shapes=shapes.patterns,
            commands=frozenset(commands.split()),
            launchers=frozenset(english.commands["launcher"].split()),
            launcher_verbs=frozenset(english.commands["launcher_verb"].split()),
            subcommands=frozenset(english.commands["subcommand"].split()),
            everyday=frozenset(english.commands["everyday"].split()),
            command_topics=frozenset(english.commands["topic"].split()),
            brands=frozenset(english.brands.split()),
            spelling=build_spelling(spelt_verbs(lexicon)),
            look_alikes=frozenset(english.look_alikes.split()),
            tags=frozenset(tag.replace("_", " ") for tag in english.tags.split()),
        ),
        languages=build_languages(document.languages, frozenset(english.stopwords.split()), lexicon),
        fast_path=pattern_set(document.fast_path),
        debate=debate_triggers.build_debate(document.debate, english.commands),
        answers={},
    )


def check_rule_book(book: RuleBook) -> None:
    """Compiles what is otherwise compiled at first use; raises RuleProblem with the name of an invalid rule."""
    check_languages(book.languages)


def with_doubt(book: RuleBook, doubt: Doubt) -> RuleBook:
    """Sets how open decisions fall; another setting than the standard one becomes part of the version."""
    if doubt is Doubt.BALANCED:
        return book
    layer = None if doubt is Doubt.RULES else book.layer
    version = f"{book.version}/{doubt}"
    return replace(book, layer=layer, threshold=THRESHOLDS.get(doubt, 0), version=version, answers={})


def with_own_rules(book: RuleBook, own: Sequence[OwnRule]) -> RuleBook:
    """Adds a project's own rules; their digest becomes part of the version."""
    standard = book.version.partition("+")[0]
    if not own:
        return replace(book, own=(), version=standard, answers={})
    seen: set[str] = set()
    compiled = []
    for rule in own:
        if rule.id in seen:
            raise RuleProblem(rule.id, "the id is used twice")
        seen.add(rule.id)
        compiled.append((rule, compile_pattern(rule.id, f"(?i){rule.pattern}")))
    canonical = "\n".join(f"{rule.id}\t{rule.effect}\t{rule.pattern}" for rule in own)
    digest = hashlib.sha256(canonical.encode("utf-8", "replace")).hexdigest()[:12]
    return replace(book, own=tuple(compiled), answers={}, version=f"{standard}+{digest}")
