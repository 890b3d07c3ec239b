"""The lists of other languages: small enough for their automata, and matched in the places that RE2 itself would tell."""

import json
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointsman.services.router.domain.language.languages import _WORD as WORD
from pointsman.services.router.domain.language.languages import without_accents, words_of
from pointsman.services.router.domain.language.term_sets import Language
from pointsman.services.router.domain.patterns import compile_pattern, finder_of
from pointsman.services.router.rules import standard_rule_book

MOST_INSTRUCTIONS = 20_000
"""With 190,000 the automaton of the Spanish verbs did not fit into RE2's memory, and each search took thirty times as long."""
SAMPLES = tuple(sorted((Path(__file__).parents[2] / "data").glob("routing_*.jsonl")))
TEXTS = [json.loads(line) for file in SAMPLES for line in file.read_text("utf-8").splitlines()]
LANGUAGES = standard_rule_book().languages
ALL = (*LANGUAGES.latin, *LANGUAGES.by_script.values())
WESTERN = st.text(st.characters(codec="latin-1"), max_size=60) | st.text("ab'-_ é1.ñ«„", max_size=30)


@pytest.mark.parametrize("language", ALL, ids=lambda language: language.code)
def test_every_list_fits_into_an_automaton(language: Language) -> None:
    sizes = {name: expression.programsize for name, expression in language.term_sets.expressions.items()}
    assert {name: size for name, size in sizes.items() if size > MOST_INSTRUCTIONS} == {}


@pytest.mark.parametrize("language", ALL, ids=lambda language: language.code)
def test_places_are_those_that_re2_itself_tells(language: Language) -> None:
    for text in (without_accents(item["text"].lower()) for item in TEXTS if item["lang"] == language.code):
        for name, expression in language.term_sets.expressions.items():
            places = [found.span() for found in expression.finditer(text)]
            assert language.term_sets.spans(name, text) == places, (name, text)
            assert language.term_sets.first(name, text) == (places[0] if places else None), (name, text)


@pytest.mark.parametrize("language", ALL, ids=lambda language: language.code)
def test_a_number_stands_for_the_lists_that_match(language: Language) -> None:
    for text in (without_accents(item["text"].lower()) for item in TEXTS if item["lang"] == language.code):
        assert language.names_of(language.hits(text)) == language.term_sets.matching(text), text


class Outer:
    """An expression of a release of RE2 that does not show its inner layer."""

    def __init__(self, expression: Any) -> None:
        self.search = expression.search


@pytest.mark.parametrize("text", ["", "fix", "a fix, a fix", "é fix"])
def test_places_are_the_same_without_re2s_inner_layer(text: str) -> None:
    expression = compile_pattern("fix", r"\bfix|\bf")
    inner, outer = finder_of(expression), finder_of(Outer(expression))
    searched = text.encode()
    for position in range(len(searched) + 1):
        assert inner(searched, position) == outer(searched, position)


@given(st.text(max_size=60) | WESTERN)
@settings(max_examples=300, deadline=None)
def test_a_text_loses_its_accents_letter_by_letter(text: str) -> None:
    assert without_accents(text) == "".join(
        unicodedata.normalize("NFD", letter)[0] if letter.isalnum() else letter for letter in text
    )


@given(st.text(max_size=60) | WESTERN)
@settings(max_examples=500, deadline=None)
def test_the_words_of_a_text_are_those_of_the_text_without_accents(text: str) -> None:
    assert words_of(text) - {""} == set(WORD.findall(without_accents(text)))
