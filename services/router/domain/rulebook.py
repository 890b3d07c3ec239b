"""A rule file, compiled: everything that a decision looks up."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pointsman.services.router.domain import debate as debating
from pointsman.services.router.domain.document import OwnRule, RuleDocument, RuleProblem
from pointsman.services.router.domain.languages import Languages, build_languages
from pointsman.services.router.domain.lexicon import build_lexicon
from pointsman.services.router.domain.references import References, build_references
from pointsman.services.router.domain.scan import PatternSet, Probe, build_probe, compile_pattern, pattern_set
from pointsman.services.router.domain.sentence import English
from pointsman.services.router.domain.values import Classification, PlanningTrigger


@dataclass(frozen=True, slots=True)
class RuleBook:
    """A rule file, compiled, with a project's own rules."""

    document: RuleDocument
    version: str
    probes: Mapping[str, Probe]
    debate_probes: Mapping[PlanningTrigger, Probe]
    references: References
    english: English
    languages: Languages
    fast_path: PatternSet
    debate: debating.DebateRules
    indicators: frozenset[str]
    keywords: frozenset[str]
    risky: frozenset[str]
    """Words without which no expression of the debate can match."""
    answers: dict[str, Classification]
    """The decision of each rule that says talk, made once."""
    known: dict[tuple[str, bool], Classification]
    """Decisions on short texts that were met lately: people repeat themselves, and retries repeat them."""
    own: tuple[tuple[OwnRule, Any], ...] = ()


def build_rule_book(document: RuleDocument) -> RuleBook:
    """Compile a rule file; a rule that cannot be taken is refused by name."""
    english = document.english
    lexicon = build_lexicon(english, debating.risky_verbs(document.debate))
    commands = " ".join(english.commands[name] for name in ("read", "write", "destructive"))
    indicators = frozenset(english.code_indicators.split())
    probes = {name: build_probe(name, rule.pattern, rule.needs) for name, rule in document.patterns.items()}
    return RuleBook(
        document=document,
        version=document.version,
        probes=probes,
        debate_probes=_debate_probes(document),
        references=build_references(document.references),
        english=English(
            lexicon=lexicon,
            stopwords=frozenset(english.stopwords.split()),
            phrases=pattern_set(english.phrases),
            identifier=probes["shape.identifier"],
            commands=frozenset(commands.split()),
            launchers=frozenset(english.commands["launcher"].split()),
            launcher_verbs=frozenset(english.commands["launcher_verb"].split()),
        ),
        languages=build_languages(document.languages, frozenset(english.stopwords.split()), frozenset(lexicon.flags)),
        fast_path=pattern_set(document.fast_path),
        debate=debating.build_debate(document.debate, english.commands),
        indicators=indicators,
        keywords=frozenset(lexicon.stems) | indicators,
        risky=frozenset(word.strip() for rule in document.debate.values() for word in rule.needs.split("|")),
        answers={},
        known={},
    )


def _debate_probes(document: RuleDocument) -> dict[PlanningTrigger, Probe]:
    return {
        PlanningTrigger(name): build_probe(f"debate.{name}", rule.pattern, rule.needs)
        for name, rule in document.debate.items()
        if rule.pattern
    }


def with_own_rules(book: RuleBook, own: Sequence[OwnRule]) -> RuleBook:
    """The same book with a project's rules added; the version names them by their digest."""
    if not own:
        return replace(book, own=(), version=book.document.version, answers={}, known={})
    seen: set[str] = set()
    compiled = []
    for rule in own:
        if rule.id in seen:
            raise RuleProblem(rule.id, "the id is used twice")
        seen.add(rule.id)
        compiled.append((rule, compile_pattern(rule.id, f"(?i){rule.pattern}")))
    told = "\n".join(f"{rule.id}\t{rule.effect}\t{rule.pattern}" for rule in own)
    digest = hashlib.sha256(told.encode("utf-8", "replace")).hexdigest()[:12]
    return replace(book, own=tuple(compiled), answers={}, known={}, version=f"{book.document.version}+{digest}")
