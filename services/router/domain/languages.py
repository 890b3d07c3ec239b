"""What a message in another language does, by the words and fragments that its language's lists name."""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache

from pointsman.services.router.domain.document import LanguageRules, RuleProblem
from pointsman.services.router.domain.lexicon import FOREIGN, MASK, Lexicon
from pointsman.services.router.domain.scan import PatternSet, pattern_set

_WORD = re.compile(r"\w[\w'-]*")
_BREAK = re.compile(r"[.!?;？！。]\s*\S|\n")
_TELLING_LETTERS = 3
OPENER = "opener"
"""The words of the list of questions that open one."""
STARTER = "starter"
"""A verb of doing at the very beginning: what follows is no question, unless it is marked as one."""
JOINED = "joined"
"""A verb of doing at the beginning of a later clause."""
REQUEST = "request"
"""The polite words that are no mere wish: in a question only these ask for something."""
_SEPARATORS = r"(?:[,.;!?，。；！？、\n]|\b(?:und|dann|et|puis|y|luego|e|poi|depois)\b|然后|并且?|接着|顺便)"
_SENTENCE = re.compile(r"[^.!?;？！。\n]+[.!?;？！。\n]*")
_STRETCH = re.compile(r"[^.!?;？！。\n]{1,400}|[.!?;？！。\n]+")
"""A sentence, or a part of a very long one: what looks for a clause's beginning looks no further back."""
_ENDED = re.compile(r"[.!?;？！。\n]\s*$")
SPENT = "spent"
"""Clauses that ask for nothing: not to be done, done already, or left to the writer."""
_HARD_CLASSES = frozenset({STARTER, "approval", REQUEST})
_DOING = frozenset({"do", "make", "read"})
IMPERATIVE = "imperative"
"""A first word with the ending of an order, right before an object."""
_KNOWN_OTHERWISE = _DOING | {"tell", "prose", "question", "thanks", "approval", "declined", "solved"}
NARRATED = "narrated"
"""What the writer tells of himself: the verbs and things in it are not to be worked on, unless he asks for something too."""
_TOLD_OF = _DOING | {"work"}
_MORE_THAN_TOLD = frozenset({"polite", "wish", "approval", "question", JOINED})
_ASKED_FOR = _DOING | {"fault"}
_QUESTION_MARK = re.compile("[?？¿]")
_SPOKEN = frozenset({"do", "make", "tell", "fault", "thanks", "polite", "approval"})
"""Classes of which one has to match, where a single short word is all that speaks for a language."""
_LETTERS = {
    "han": re.compile("[\u3400-\u4dbf\u4e00-\u9fff]+"),
    "kana": re.compile("[\u3040-\u30ff]+"),
    "hangul": re.compile("[\u1100-\u11ff\uac00-\ud7af]+"),
    "cyrillic": re.compile("[\u0400-\u04ff]+"),
}
_OTHER_SCRIPT = re.compile("[" + "".join(letters.pattern.strip("[]+") for letters in _LETTERS.values()) + "]")
_LATIN = re.compile("[a-z]+")
_ACCENTED = re.compile(r"[^\W\x00-\x7f]")
_SCRIPTS = (*_LETTERS, "latin")
_NO_LISTS = frozenset({"script", "stopwords", "verb_ending", IMPERATIVE})
_LISTS = tuple(field.name for field in fields(LanguageRules) if field.name not in _NO_LISTS)


@dataclass(slots=True)
class Language:
    """One language: its words, matched from the first message on that is written in it."""

    code: str
    script: str
    stopwords: frozenset[str]
    patterns: Mapping[str, str]
    compiled: PatternSet | None = None

    @property
    def classes(self) -> PatternSet:
        """The lists, compiled when they are first needed: most messages need no other language."""
        if self.compiled is None:
            try:
                self.compiled = pattern_set(self.patterns)
            except RuleProblem as problem:
                raise RuleProblem(f"languages.{self.code}.{problem.rule}", problem.problem) from None
        return self.compiled


@dataclass(frozen=True, slots=True)
class Languages:
    """All other languages, and the words that give one of them away."""

    by_script: Mapping[str, Language]
    latin: tuple[Language, ...]
    english: frozenset[str]
    telling: frozenset[str]


@dataclass(frozen=True, slots=True)
class Reading:
    """What a message in another language was found to do."""

    rule: str
    active: bool
    language: Language
    hits: frozenset[str]
    text: str


def latin_stopwords(rules: Mapping[str, LanguageRules]) -> frozenset[str]:
    """The small words of all languages that are written like English."""
    return frozenset(word for rule in rules.values() if rule.script == "latin" for word in rule.stopwords.split())


def build_languages(rules: Mapping[str, LanguageRules], english: frozenset[str], lexicon: Lexicon) -> Languages:
    """Prepare every language's lists; a word that English knows too gives no language away."""
    languages = [_build(code, rule) for code, rule in rules.items()]
    latin = tuple(language for language in languages if language.script == "latin")
    by_script = {language.script: language for language in languages if language.script != "latin"}
    telling = frozenset(word for word in latin_stopwords(rules) if lexicon.flags[word] & FOREIGN)
    return Languages(by_script, latin, english, telling)


def _build(code: str, rules: LanguageRules) -> Language:
    if rules.script not in _SCRIPTS:
        raise RuleProblem(f"languages.{code}.script", f"'{rules.script}' is none of {', '.join(_SCRIPTS)}")
    patterns = {name: "|".join(_item(item, rules.script) for item in getattr(rules, name).split()) for name in _LISTS}
    wishes = rules.wish.split()
    requests = [item for item in rules.polite.split() if item not in wishes]
    patterns[REQUEST] = "|".join(_item(item, rules.script) for item in requests)
    if rules.imperative:
        patterns[IMPERATIVE] = "|".join(_item(item, rules.script) for item in rules.imperative.split())
    if rules.verb_ending:
        for name in _DOING:
            patterns[name] = _verbs(getattr(rules, name).split(), rules)
    openers = [_item(item, rules.script) for item in rules.question.split() if item.startswith("^")]
    if openers:
        patterns[OPENER] = "|".join(openers)
    verbs = f"{rules.do} {rules.make} {rules.read}".split()
    patterns[STARTER] = "|".join(_item(f"^{verb}", rules.script) for verb in verbs)
    joined = "|".join(_stem(verb, rules.script) for verb in verbs)
    patterns[JOINED] = rf"{_SEPARATORS}[^\pL]*(?:{joined})"
    return Language(code, rules.script, frozenset(rules.stopwords.split()), patterns)


def _verbs(items: list[str], rules: LanguageRules) -> str:
    """Verbs in their own endings; at the beginning also the noun of a verb, as titles of tasks have it: update of …."""
    narrow = (_item(item.replace("*", MASK), rules.script).replace(MASK, rules.verb_ending) for item in items)
    return "|".join((*narrow, *(_item(f"^{item}", rules.script) for item in items if "*" in item)))


def check_languages(languages: Languages) -> None:
    """Compile every language now, so that a bad list is refused at load."""
    for language in (*languages.latin, *languages.by_script.values()):
        assert language.classes is not None


def _stem(item: str, script: str) -> str:
    """One entry without its edges: `_` a blank, `*` any ending."""
    return item.removeprefix("^").replace("_", " ").replace("*", "[а-яё]*" if script == "cyrillic" else "[a-z]*")


def _item(item: str, script: str) -> str:
    """One entry as an expression: `^` at the beginning; words are whole in alphabets."""
    if item in ("?", "¿"):
        return re.escape(item)
    body = _stem(item, script)
    if item.startswith("^"):
        return rf"^[^\pL]*{body}"
    if script == "latin":
        return rf"\b{body}\b"
    # RE2's \b knows ASCII only, so the edges of a Cyrillic word are spelt out.
    return rf"(?:^|[^а-яё]){body}(?:$|[^а-яё])" if script == "cyrillic" else body


def plain(text: str) -> str:
    """The text without accents, letter by letter, so that positions stay."""
    return text if text.isascii() else _ACCENTED.sub(_without_accent, text)


def _without_accent(found: re.Match[str]) -> str:
    return _base_of(found[0])


@lru_cache(maxsize=4096)
def _base_of(letter: str) -> str:
    return unicodedata.normalize("NFD", letter)[0]


def detect_language(languages: Languages, text: str, words: set[str]) -> Language | None:
    """The language of a text that is not English; None for English."""
    if not text.isascii():
        script = _script(text)
        if script is not None:
            return languages.by_script[script]
        words = set(_WORD.findall(plain(text)))
    telling = languages.telling & words
    if not telling:
        return None
    scores = [len(telling & language.stopwords) for language in languages.latin]
    best = max(scores)
    english = words & languages.english
    candidates = [
        language
        for language, score in zip(languages.latin, scores, strict=True)
        if score == best > len(english - language.stopwords)
    ]
    if text.isascii() and len(telling) == 1 and len(min(telling)) < _TELLING_LETTERS:
        candidates = [language for language in candidates if not _SPOKEN.isdisjoint(language.classes.matching(text))]
    return _most_alike(candidates, plain(text)) if len(candidates) > 1 else next(iter(candidates), None)


def _most_alike(candidates: list[Language], text: str) -> Language:
    """Of languages with equally many words in a text, the one that understands most of it."""
    return max(candidates, key=lambda language: len(language.classes.matching(text)))


def _script(text: str) -> str | None:
    """The script that is not Latin and has enough letters to be more than a quotation."""
    if _OTHER_SCRIPT.search(text) is None:
        return None
    counts = {name: len("".join(letters.findall(text))) for name, letters in _LETTERS.items()}
    found = max(counts, key=lambda name: counts[name])
    if counts[found] < 2 or sum(counts.values()) * 6 < len("".join(_LATIN.findall(text))):
        return None
    if counts["kana"] >= 2 and found == "han":
        return "kana"
    return found


def read_language(language: Language, text: str) -> Reading:
    """Decide by the first row whose condition holds, without the clauses that ask for nothing."""
    folded = plain(text) if language.script == "latin" else text
    hits = language.classes.matching(folded)
    if SPENT in hits:  # for a debate even what is not to be done is named
        rule = _rule_beside_spent(language, _without_spent(language, folded), "fault" in hits)
    else:
        rule, hits = _rule_of(language, folded, hits)
    return Reading(f"{language.code}.{rule}", rule in _ACTIVE_ROWS, language, hits, folded)


def _rule_beside_spent(language: Language, text: str, faulty: bool) -> str:
    """The row of what is left: a fault counts only if it is still there, and what was spent may have named it."""
    rule, hits = _rule_of(language, text, language.classes.matching(text))
    if "turn" in hits:
        return "fault" if faulty and rule == "statement" else rule
    return "declined" if rule in _SOFT_ROWS else rule


def _without_spent(language: Language, text: str) -> str:
    """The text with blanks for what was done already, will be done by the writer, or is not to be done."""
    return "".join(_cleared(language, stretch) for stretch in _STRETCH.findall(text))


def _cleared(language: Language, stretch: str) -> str:
    """One stretch without its spent clauses; a but ends such a clause."""
    turn = language.classes.expressions["turn"]
    pieces: list[str] = []
    position = 0
    for start, end in language.classes.spans(SPENT, stretch):
        turned = turn.search(stretch[start:end])
        length = turned.start() if turned is not None and turned.start() else end - start
        pieces += (stretch[position:start], " " * length)
        position = start + length
    return "".join((*pieces, stretch[position:]))


def _rule_of(language: Language, text: str, hits: frozenset[str]) -> tuple[str, frozenset[str]]:
    """The row of a whole message: of one with a question among other sentences, that of the sentence that asks for most."""
    if "told" in hits and not _does_more(language, text):
        return "tell", hits
    asked = _QUESTION_MARK.search(text) is not None
    if {"fault", "follow_up"} <= hits:
        return "fault", hits
    if asked and len(parts := _SENTENCE.findall(text)) > 1:
        return _mixed_rule(language, parts), hits
    if asked and ("general" in hits or REQUEST not in hits):
        hits -= {"polite"}
    if OPENER in hits and _asks_once(text):
        hits -= {"polite"}
    elif STARTER in hits and not asked:
        hits -= {"question"}
    hits = _with_unlisted_order(language, text, _without_told(hits))
    return _first_row(hits, "prose" in hits and _prose_rules(language, text, hits)), hits


def _without_told(hits: frozenset[str]) -> frozenset[str]:
    """What is left beside something to be told, and beside what the writer tells himself."""
    if "told" in hits:
        hits -= {"tell"}
    if NARRATED in hits and hits.isdisjoint(_MORE_THAN_TOLD):
        hits -= _TOLD_OF
    return hits


def _with_unlisted_order(language: Language, text: str, hits: frozenset[str]) -> frozenset[str]:
    """A first word that looks like an order with its object, and is none of the language's small words, is one."""
    if IMPERATIVE not in hits or not hits.isdisjoint(_KNOWN_OTHERWISE) or text[:1] == " ":  # a spent clause was there
        return hits
    first = _WORD.search(text)
    return hits if first is None or first.group() in language.stopwords else hits | {"do"}


def _does_more(language: Language, text: str) -> bool:
    """Whether something is to be done before it is told, or behind that: look it up and tell me."""
    start, end = next(language.classes.spans("told", text))
    before = _SENTENCE.findall(text[:start])
    if before and not _ENDED.search(before[-1]) and not _DOING.isdisjoint(language.classes.matching(before[-1])):
        return True
    return JOINED in language.classes.matching(text[end:])


def _mixed_rule(language: Language, parts: list[str]) -> str:
    """Beside a question only a clear order counts: what else is said tells why somebody asks."""
    for part in parts:
        found = language.classes.matching(part)
        if _HARD_CLASSES.isdisjoint(found):
            continue
        rule, _ = _rule_of(language, part.strip(), found)
        requested = REQUEST in found and not _ASKED_FOR.isdisjoint(found)
        if rule in _ACTIVE_ROWS and (requested or rule not in _SOFT_ROWS):
            return rule
    return "question"


def _asks_once(text: str) -> bool:
    """One question, and nothing before or behind it."""
    asked = text.rstrip()
    return asked[-1:] in ("?", "？") and _BREAK.search(asked[:-1]) is None


def _prose_rules(language: Language, text: str, hits: frozenset[str]) -> bool:
    """Where both are named, the head of the phrase rules: it comes first in Europe, and last in East Asia."""
    if "work" not in hits:
        return "fault" not in hits or bool(hits & {"make", "tell", "question"})
    classes, searched = language.classes.expressions, text.encode()  # in bytes the order is the same
    if language.script not in _HEAD_LAST:
        return bool(classes["prose"].search(searched).start() < classes["work"].search(searched).start())
    if hits & {"do", "fault", "read"}:
        return False
    prose, work = (max(match.start() for match in classes[name].finditer(searched)) for name in ("prose", "work"))
    return bool(prose > work)


_HEAD_LAST = frozenset({"han", "kana", "hangul"})
_SOFT_ROWS = frozenset({"fault", "unlisted", "wish", "work"})
_ACTIVE_ROWS = frozenset({"approval", "fault", "order", "make", "read", "unlisted", "wish", "work"})


def _first_row(hits: frozenset[str], prose: bool) -> str:
    asking = "question" in hits and "polite" not in hits
    rows = (
        ("declined", "declined" in hits and not hits & {"question", "fault", "wish"}),
        ("declined", "solved" in hits and not hits & {"question", "wish", "turn"}),
        ("approval", "approval" in hits and not asking),
        ("fault", "fault" in hits and not asking and not prose),
        ("question", asking),
        ("fault", {"thanks", "turn", "work"} <= hits and not prose),
        ("prose", prose),
        ("order", "do" in hits),
        ("make", "make" in hits and ("work" in hits or "tell" not in hits)),
        ("tell", "tell" in hits),
        ("read", "read" in hits),
        ("thanks", "thanks" in hits and "work" not in hits),
        ("wish", "wish" in hits),
        ("thanks", "thanks" in hits),
        ("unlisted", "polite" in hits),
        ("question", "question" in hits),
        ("work", "work" in hits),
    )
    return next((name for name, holds in rows if holds), "statement")
