"""Detects the language of a message and reads those that are not English, by the term sets of the language."""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from pointsman.services.router.domain.language.lexicon import FOREIGN, Lexicon
from pointsman.services.router.domain.language.term_sets import (
    APPROVAL,
    DECLINED,
    DO,
    FAULT,
    FOLLOW_UP,
    GENERAL,
    IMPERATIVE,
    JOINED,
    MAKE,
    NARRATED,
    OPENER,
    POLITE,
    PROSE,
    QUESTION,
    READ,
    REQUEST,
    SOLVED,
    SPENT,
    STARTER,
    TELL,
    THANKS,
    TOLD,
    TURN,
    WISH,
    WORK,
    Language,
    build_language,
)
from pointsman.services.router.domain.rule_document import LanguageRules, RuleProblem

_WORD = re.compile(r"\w[\w'-]*")
_BREAK = re.compile(r"[.!?;？！。]\s*\S|\n")
_DISTINCTIVE_LETTERS = 3
_SENTENCE = re.compile(r"[^.!?;？！。\n]+[.!?;？！。\n]*")
_CLAUSE = re.compile(r"[^.!?;？！。\n，,；]+[.!?;？！。\n，,；]*")
_PARTS = {"latin": _SENTENCE, "cyrillic": _SENTENCE, "hangul": _SENTENCE, "han": _CLAUSE, "kana": _SENTENCE}
"""What a message of each script is divided into; in Chinese chats commas and blanks end sentences."""
_STRETCH = re.compile(r"[^.!?;？！。\n]{1,400}|[.!?;？！。\n]+")
"""A sentence, or 400 letters of a longer one: expressions that search for the beginning of a clause look no further back."""
_ENDED = re.compile(r"[.!?;？！。\n]\s*$")
_ASKED_OF_YOU = STARTER | APPROVAL | REQUEST | JOINED | IMPERATIVE
"""Term sets of which one has to match if work is asked for beside a question."""
_DOING = DO | MAKE | READ
_KNOWN_OTHERWISE = _DOING | TELL | PROSE | QUESTION | THANKS | APPROVAL | DECLINED | SOLVED
_TOLD_OF = _DOING | WORK
_MORE_THAN_TOLD = POLITE | WISH | APPROVAL | QUESTION | JOINED
_FAULT_ASKED_ABOUT = FAULT | FOLLOW_UP
_SPOKEN = DO | MAKE | TELL | FAULT | THANKS | POLITE | APPROVAL
"""Term sets of which one has to match if a single short word is the only evidence of a language."""
_LETTERS = {
    "han": re.compile("[\u3400-\u4dbf\u4e00-\u9fff]+"),
    "kana": re.compile("[\u3040-\u30ff]+"),
    "hangul": re.compile("[\u1100-\u11ff\uac00-\ud7af]+"),
    "cyrillic": re.compile("[\u0400-\u04ff]+"),
}
_OTHER_LETTERS = re.compile("[" + "".join(letters.pattern.strip("[]+") for letters in _LETTERS.values()) + "]+")
_LATIN = re.compile("[a-z]+")
_ACCENTED = re.compile(r"[^\W\x00-\x7f]")
_SCRIPTS = (*_LETTERS, "latin")


@dataclass(frozen=True, slots=True)
class Languages:
    """All languages but English, and the words that are distinctive of one of them."""

    by_script: Mapping[str, Language]
    latin: tuple[Language, ...]
    english: frozenset[str]
    distinctive: frozenset[str]


class Reading:
    """The result of reading a message in another language."""

    __slots__ = ("active", "hits", "language", "rule", "text")

    def __init__(self, rule: str, language: Language, hits: int, text: str) -> None:
        self.rule = f"{language.code}.{rule}"
        self.active = rule in _ACTIVE_ROWS
        self.language = language
        self.hits = language.names_of(hits)
        self.text = text


def latin_stopwords(rules: Mapping[str, LanguageRules]) -> frozenset[str]:
    """The stop words of all languages in Latin script."""
    return frozenset(word for rule in rules.values() if rule.script == "latin" for word in rule.stopwords.split())


def build_languages(rules: Mapping[str, LanguageRules], english: frozenset[str], lexicon: Lexicon) -> Languages:
    """Builds every language; words that the English lexicon knows too are not distinctive."""
    for code, rule in rules.items():
        if rule.script not in _SCRIPTS:
            raise RuleProblem(f"languages.{code}.script", f"'{rule.script}' is none of {', '.join(_SCRIPTS)}")
    languages = [build_language(code, rule) for code, rule in rules.items()]
    latin = tuple(language for language in languages if language.script == "latin")
    by_script = {language.script: language for language in languages if language.script != "latin"}
    distinctive = frozenset(word for word in latin_stopwords(rules) if lexicon.flags[word] & FOREIGN)
    return Languages(by_script, latin, english, distinctive)


def check_languages(languages: Languages) -> None:
    """Compiles every language now; raises RuleProblem with the name of an invalid term set."""
    for language in (*languages.latin, *languages.by_script.values()):
        assert language.term_sets is not None


def without_accents(text: str) -> str:
    """Removes accents letter by letter, so that positions stay the same."""
    if text.isascii():
        return text
    narrow = text.encode("latin-1", "ignore")
    if len(narrow) == len(text):
        return narrow.translate(_BASES).decode("latin-1")
    return _ACCENTED.sub(_without_accent, text)


def _without_accent(found: re.Match[str]) -> str:
    return _base_of(found[0])


@lru_cache(maxsize=4096)
def _base_of(letter: str) -> str:
    return unicodedata.normalize("NFD", letter)[0]


_BASES = "".join(_ACCENTED.sub(_without_accent, chr(code)) for code in range(256)).encode("latin-1")
"""Latin-1 letters without accents, indexed by code point."""
_BLANKED = re.sub(r"[^\w'-]", " ", _BASES.decode("latin-1")).encode("latin-1")
"""Latin-1 letters without accents, with blanks for what separates words."""


def words_of(text: str) -> set[str]:
    """The words of a text that is not ASCII, without accents."""
    narrow = text.encode("latin-1", "ignore")
    if len(narrow) != len(text):
        return set(_WORD.findall(without_accents(text)))
    blanked = f" {narrow.translate(_BLANKED).decode('latin-1')}"
    words = set(blanked.split())
    return {word.lstrip("'-") for word in words} if " '" in blanked or " -" in blanked else words


def detect_language(languages: Languages, text: str, words: set[str]) -> Language | None:
    """The language of a text by its script, or by its words in Latin script; None for English."""
    ascii_only = text.isascii()
    if not ascii_only:
        if (script := _script(text)) is not None:
            return languages.by_script[script]
        words = words_of(text)
    distinctive = languages.distinctive & words
    if not distinctive:
        return None
    candidates = _candidates(languages, distinctive, words & languages.english)
    if ascii_only and len(distinctive) == 1 and len(min(distinctive)) < _DISTINCTIVE_LETTERS:
        candidates = [language for language in candidates if language.hits(text) & _SPOKEN]
    if len(candidates) > 1:
        return _most_alike(candidates, without_accents(text))
    return candidates[0] if candidates else None


def _candidates(languages: Languages, distinctive: frozenset[str], english: set[str]) -> list[Language]:
    """The languages with the most distinctive words, if these outnumber the English stop words that the language lacks."""
    best = 0
    candidates: list[Language] = []
    for language in languages.latin:
        score = len(distinctive & language.stopwords)
        if score > best:
            best = score
            candidates = [language]
        elif score == best:
            candidates.append(language)
    return [language for language in candidates if best > len(english - language.stopwords)]


def _most_alike(candidates: list[Language], text: str) -> Language:
    """Of languages with equally many distinctive words, the one with the most matching term sets."""
    return max(candidates, key=lambda language: language.hits(text).bit_count())


def _script(text: str) -> str | None:
    """The script of a text that is not Latin and has more letters than a quotation would."""
    if len(text.encode("latin-1", "ignore")) == len(text):
        return None
    letters = "".join(_OTHER_LETTERS.findall(text))
    left = len(letters)
    if left < 2 or (left * 7 < len(text) and left * 6 < len("".join(_LATIN.findall(text)))):
        return None
    found: str | None = None
    most = 1
    kana = 0
    for name, of_script in _LETTERS.items():
        if not left:
            break
        count = len("".join(of_script.findall(letters)))
        left -= count
        if name == "kana":
            kana = count
        if count > most:
            found, most = name, count
    return "kana" if found == "han" and kana > 1 else found


def read_language(language: Language, text: str) -> Reading:
    """Reads a message by the first row of _ROWS that holds, ignoring clauses that ask for nothing."""
    folded = without_accents(text) if language.script == "latin" else text
    hits = language.hits(folded)
    if hits & SPENT:  # the debate still weighs all term sets, including those of spent clauses
        rule = _rule_beside_spent(language, _without_spent(language, folded), bool(hits & FAULT))
    else:
        rule, hits = _rule_of(language, folded, hits)
    return Reading(rule, language, hits, folded)


def _rule_beside_spent(language: Language, text: str, faulty: bool) -> str:
    """The row of the text without its spent clauses; after a turn ("but …") a fault named in a spent clause counts."""
    rule, hits = _rule_of(language, text, language.hits(text))
    if hits & TURN:
        return "fault" if faulty and rule == "statement" else rule
    return "declined" if rule in _SOFT_ROWS else rule


def _without_spent(language: Language, text: str) -> str:
    """The text with blanks for clauses about what is done already, left to the writer, or not to be done."""
    return "".join([_cleared(language, stretch) for stretch in _STRETCH.findall(text)])


def _cleared(language: Language, stretch: str) -> str:
    """One stretch without its spent clauses; a "but" ends such a clause."""
    pieces: list[str] = []
    position = 0
    for start, end in language.term_sets.spans("spent", stretch):
        turned = language.term_sets.first("turn", stretch[start:end])
        length = turned[0] if turned is not None and turned[0] else end - start
        pieces += (stretch[position:start], " " * length)
        position = start + length
    return "".join((*pieces, stretch[position:])) if position else stretch


def _rule_of(language: Language, text: str, hits: int) -> tuple[str, int]:
    """The row of a message: of its only sentence, or of the one that weighs most."""
    if hits & _FAULT_ASKED_ABOUT == _FAULT_ASKED_ABOUT:
        return "fault", hits
    if len(parts := _PARTS[language.script].findall(text)) > 1:
        return _rule_of_parts(language, parts), hits
    return _rule_of_part(language, text, hits)


def _rule_of_part(language: Language, text: str, hits: int) -> tuple[str, int]:
    """The row of one sentence or clause."""
    if hits & TOLD and not _does_more(language, text):
        return "tell", hits
    asked = "?" in text or "？" in text or "¿" in text
    if asked and (hits & GENERAL or not hits & REQUEST):
        hits &= ~POLITE
    if hits & OPENER and _asks_once(text):
        hits &= ~POLITE
    elif hits & STARTER and not asked:
        hits &= ~QUESTION
    hits = _with_unlisted_imperative(language, text, _without_told(hits))
    return _first_row(hits, hits & PROSE != 0 and _prose_rules(language, text, hits)), hits


def _without_told(hits: int) -> int:
    """Drops term sets that only belong to an explanation to give, or to what the writer narrates."""
    if hits & TOLD:
        hits &= ~TELL
    if hits & NARRATED and not hits & _MORE_THAN_TOLD:
        hits &= ~_TOLD_OF
    return hits


def _with_unlisted_imperative(language: Language, text: str, hits: int) -> int:
    """Adds DO if the first word looks like an imperative with its object and is not a stop word."""
    if (
        not hits & IMPERATIVE or hits & _KNOWN_OTHERWISE or text[:1] == " "
    ):  # a blank at the start: a spent clause was removed
        return hits
    first = _WORD.search(text)
    return hits if first is None or first.group() in language.stopwords else hits | DO


def _does_more(language: Language, text: str) -> bool:
    """Whether work is asked for before or after an explanation: look it up and tell me."""
    explanation = language.term_sets.first("told", text)
    if explanation is None:
        return False
    before = _SENTENCE.findall(text[: explanation[0]])
    if before and not _ENDED.search(before[-1]) and language.hits(before[-1]) & _DOING:
        return True
    return language.hits(text[explanation[1] :]) & JOINED != 0


def _rule_of_parts(language: Language, parts: list[str]) -> str:
    """The row of a message with several parts: work that is asked for outweighs faults and wishes, these a question, this talk."""
    read = [(_rule_of_part(language, part.strip(), hits)[0], hits) for part in parts if (hits := language.hits(part))]
    rows = {row for row, _ in read} or {"statement"}
    if "question" in rows:
        general = any(hits & GENERAL for row, hits in read if row == "question")
        rows = {row for row, hits in read if not _explains_question(language, row, hits, general)}
    return min(rows, key=_WEIGHT_OF_ROW.__getitem__)


def _explains_question(language: Language, row: str, hits: int, general: bool) -> bool:
    """Whether a part only explains the question beside it: what writers narrate of themselves, work that nobody asks for."""
    if row in _SOFT_ROWS and (general or hits & NARRATED):
        return True
    if language.script == "han":  # whose verbs have no form by which an imperative is told from a statement
        return False
    return row in _HARD_ROWS and not hits & _ASKED_OF_YOU


def _asks_once(text: str) -> bool:
    """Whether the text is one question and nothing else."""
    asked = text.rstrip()
    return asked[-1:] in ("?", "？") and _BREAK.search(asked[:-1]) is None


def _prose_rules(language: Language, text: str, hits: int) -> bool:
    """Whether prose is what the text is about: the head noun decides, which comes first in Europe and last in East Asia."""
    if hits & DO and not hits & (MAKE | TELL | QUESTION):
        return False
    if not hits & WORK:
        return not hits & FAULT or hits & (MAKE | TELL | QUESTION) != 0
    if language.script in _HEAD_LAST:
        if hits & (DO | FAULT | READ):
            return False
        return language.term_sets.spans("prose", text)[-1][0] > language.term_sets.spans("work", text)[-1][0]
    finders, searched = language.term_sets.finders, text.encode()  # offsets in bytes compare like offsets in letters
    return finders["prose"](searched, 0)[0] < finders["work"](searched, 0)[0]


_HEAD_LAST = frozenset({"han", "kana", "hangul"})
_SOFT_ROWS = frozenset({"fault", "unlisted", "wish", "work"})
_HARD_ROWS = frozenset({"approval", "order", "make", "read"})
_WEIGHTS = (
    "order",
    "make",
    "read",
    "approval",
    "fault",
    "wish",
    "question",
    "unlisted",
    "tell",
    "prose",
    "work",
    "declined",
    "thanks",
    "statement",
)
_WEIGHT_OF_ROW = {row: weight for weight, row in enumerate(_WEIGHTS)}
_ACTIVE_ROWS = frozenset({"approval", "fault", "order", "make", "read", "unlisted", "wish", "work"})
_ASKING = 1 << 40
"""A question without a polite request."""
_HEAD = 1 << 41
"""The head noun is prose."""
_ROWS: tuple[tuple[str, int, int], ...] = (
    ("declined", DECLINED, QUESTION | FAULT | WISH),
    ("declined", SOLVED, QUESTION | WISH | TURN),
    ("approval", APPROVAL, _ASKING),
    ("fault", FAULT, _ASKING | _HEAD),
    ("question", _ASKING, 0),
    ("fault", THANKS | TURN | WORK, _HEAD),
    ("prose", _HEAD, 0),
    ("order", DO, 0),
    ("make", MAKE | WORK, 0),
    ("make", MAKE, TELL),
    ("tell", TELL, 0),
    ("read", READ, 0),
    ("thanks", THANKS, WORK),
    ("wish", WISH, 0),
    ("thanks", THANKS, 0),
    ("unlisted", POLITE, 0),
    ("question", QUESTION, 0),
    ("work", WORK, 0),
)
"""Rows of (name, term sets that must match, term sets that must not); the first row that holds decides."""


def _first_row(hits: int, prose: bool) -> str:
    if hits & QUESTION and not hits & POLITE:
        hits |= _ASKING
    if prose:
        hits |= _HEAD
    for name, needed, without in _ROWS:
        if hits & needed == needed and not hits & without:
            return name
    return "statement"
