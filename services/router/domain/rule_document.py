"""The schema of the rule file and of a project's own rules."""

from dataclasses import dataclass
from enum import StrEnum


class RuleProblem(Exception):
    """A rule is invalid: its name and the reason."""

    def __init__(self, rule: str, problem: str) -> None:
        super().__init__(f"rule '{rule}': {problem}")
        self.rule = rule
        self.problem = problem


class RuleEffect(StrEnum):
    """The effect of a match of an own rule."""

    ACTION = "action"
    REFERENCE = "reference"
    ANSWER = "answer"
    HIGH_STAKES = "high_stakes"
    MEDIUM_STAKES = "medium_stakes"


@dataclass(frozen=True, slots=True)
class OwnRule:
    """One rule that a project adds."""

    id: str
    effect: RuleEffect
    pattern: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class PatternRule:
    """One expression over the whole text."""

    kind: str
    pattern: str
    about: str


@dataclass(frozen=True, slots=True)
class ReferenceRules:
    """Words that make a token a file, a folder or a host, and exempt tokens that only look like one."""

    extensions: str
    dot_names: str
    hosts: str
    folders: str
    exempt: str


@dataclass(frozen=True, slots=True)
class EnglishRules:
    """The English lexicon: word classes of base forms, and phrases as expressions."""

    keywords: dict[str, str]
    stopwords: str
    code_indicators: str
    verbs: dict[str, str]
    doubling: str
    nouns: dict[str, str]
    words: dict[str, str]
    faults: str
    look_alikes: str
    """Words of their own that are one edit away from a verb or an approval."""
    tags: str
    """Words after an order that only ask for consent, a blank written as `_`: ok, will_you."""
    brands: str
    phrases: dict[str, str]
    commands: dict[str, str]


@dataclass(frozen=True, slots=True)
class LanguageRules:
    """The lexicon of another language: each term set is a list of words, stems (`*`) or fragments."""

    script: str
    letters: str
    """Letters that languages in Latin script seldom share, which show the language where no stop word does."""
    stopwords: str
    verb_ending: str
    question: str
    polite: str
    do: str
    make: str
    read: str
    imperative: str
    tell: str
    work: str
    prose: str
    thanks: str
    well: str
    denied: str
    declined: str
    solved: str
    narrated: str
    spent: str
    told: str
    general: str
    follow_up: str
    turn: str
    tag: str
    approval: str
    fault: str
    wish: str
    destructive: str
    data: str
    deployment: str
    security: str
    bulk: str
    vague: str


@dataclass(frozen=True, slots=True)
class DebateRule:
    """When a planning debate is held: verbs of an imperative, segments of a path, or an expression over the text."""

    stakes: str
    about: str
    verbs: str = ""
    any_object: str = ""
    pushes: str = ""
    pattern: str = ""
    segments: str = ""
    """Path segments and file stems that trigger the debate."""


@dataclass(frozen=True, slots=True)
class RuleDocument:
    """The whole rule file."""

    version: str
    about: str
    references: ReferenceRules
    patterns: dict[str, PatternRule]
    english: EnglishRules
    languages: dict[str, LanguageRules]
    fast_path: dict[str, str]
    debate: dict[str, DebateRule]
