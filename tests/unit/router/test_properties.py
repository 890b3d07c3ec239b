"""Any text whatever is decided: without exception, in linear time, with spans that hold."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pointsman.services.router.domain.classify import classify, lower_case
from pointsman.services.router.domain.values import Classification, Confidence, Debate, Mode
from pointsman.services.router.rules import standard_rule_book

FRAGMENTS = (
    "fix", "delete all", "src/a.py", "```", "~~~", "https://x.y", "?", "!", ".", "\n", "can you", "please", "what is",
    "我", "修复", "吗", "直して", "corrige", "lösche", "ошибка", "고쳐", "İ", "ß", "\ud800", "\x01", "\x02", "\0", "’",
    "echo", "ping", "pwd", "&&", ">", "`", "/", "//", "://", "..", "*.", "C:\\", "the", "don't", "no need to", "I'll",
    "(", ")", "'", '"', "🙂", "\u200b", "-", "--force", "git", "rm -rf", "you need to", "let's", "help me", "@", ":",
)  # fmt: skip
HOSTILE = st.lists(st.sampled_from(FRAGMENTS), max_size=30).flatmap(
    lambda parts: st.sampled_from((" ", "", ", ", "\n")).map(lambda joint: joint.join(parts))
)


def check(text: str) -> Classification:
    found = classify(standard_rule_book(), text)
    lower = lower_case(text)
    assert len(lower) == len(text)
    for trigger in found.triggers:
        assert 0 <= trigger.start <= trigger.end <= len(text)
        if trigger.kind in ("path", "url", "host", "keyword"):
            assert lower[trigger.start : trigger.end] == trigger.name
    for reason in found.reasons:
        assert 0 <= reason.start <= reason.end <= len(text)
    if found.mode is Mode.ANSWER:
        assert (found.confidence, found.triggers, found.debate) == (Confidence.NONE, (), Debate.NONE)
    else:
        assert found.confidence is (Confidence.STRONG if len(found.triggers) >= 3 else Confidence.WEAK)
    if found.debate is Debate.PLANNING:
        assert found.reasons
        assert found.bypass is None
    assert found.rules
    return found


@given(st.text(max_size=200))
@settings(max_examples=300, deadline=None)
def test_any_unicode_text_is_decided(text: str) -> None:
    assert check(text) == check(text)


@given(HOSTILE)
@settings(max_examples=800, deadline=None)
def test_any_mixture_of_what_the_rules_look_for_is_decided(text: str) -> None:
    check(text)


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_bytes_taken_for_text_are_decided(data: bytes) -> None:
    check(data.decode("utf-8", "surrogateescape"))


REPEATED = (
    "fix src/a.py ", "a", "```", "~~~ ```", "a/b/", "../", "http://", "can you ", "please fix it and ", "? ", "修复",
    "the the ", "delete all files, ", "(", "'", ". ", "é ", "corrige la ", "a.b.", "ошибка ", "\n", "`x` ", "don't ", "-",
    "this repo ", "i'm sure ", "x_y ", "* ", "ok ", "yes, ", "=" , "no need to ", "https://example.com/a ", "@a/b.c ",
)  # fmt: skip


def _seconds(text: str) -> float:
    book = standard_rule_book()
    best = float("inf")
    for _ in range(7):
        begun = time.process_time()
        classify(book, text)
        best = min(best, time.process_time() - begun)
    return best


@pytest.mark.parametrize("unit", REPEATED)
def test_the_time_grows_with_the_length_and_no_faster(unit: str) -> None:
    def of(length: int) -> str:
        return (unit * (length // len(unit) + 1))[:length]

    short, long = _seconds(of(8_192)), _seconds(of(65_536))
    assert long < 0.02 or long < 5 * 8 * short, (short, long)  # a quadratic one takes 64 times as long


def test_the_longest_text_of_any_kind_is_decided_in_less_than_a_second() -> None:
    for unit in REPEATED:
        assert _seconds(unit * (65_536 // len(unit))) < 1.0, unit
