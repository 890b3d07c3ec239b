"""Detects the language of a message: by its script, or by the stop words of languages in Latin script."""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from pointsman.services.router.domain.language.lexicon import FOREIGN, Lexicon
from pointsman.services.router.domain.language.term_sets import (
    APPROVAL,
    DO,
    FAULT,
    MAKE,
    POLITE,
    TELL,
    THANKS,
    Language,
    build_language,
)
from pointsman.services.router.domain.rule_document import LanguageRules, RuleProblem

_WORD = re.compile(r"\w[\w'-]*")
_DISTINCTIVE_LETTERS = 3
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
        return None if ascii_only or words & languages.english else _by_letters(languages, text)
    candidates = _candidates(languages, distinctive, words & languages.english)
    if ascii_only and len(distinctive) == 1 and len(min(distinctive)) < _DISTINCTIVE_LETTERS:
        candidates = [language for language in candidates if language.hits(text) & _SPOKEN]
    if len(candidates) > 1:
        return _most_alike(candidates, without_accents(text))
    return candidates[0] if candidates else None


def _by_letters(languages: Languages, text: str) -> Language | None:
    """The language in Latin script whose letters a text has, if its term sets match too."""
    folded = without_accents(text)
    written = [language for language in languages.latin if not language.letters.isdisjoint(text)]
    candidates = [language for language in written if language.hits(folded) & _SPOKEN]
    return _most_alike(candidates, folded) if candidates else None


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
