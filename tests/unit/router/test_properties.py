"""Any text whatever is decided: without exception, in linear time, with spans that hold."""

import itertools
import sys
import time
from types import FrameType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pointsman.services.router.domain.classification.classify import classify
from pointsman.services.router.rules import standard_rule_book
from tests.bench.router_fuzz import campaign, check

FRAGMENTS = (
    "fix", "delete all", "src/a.py", "```", "~~~", "https://x.y", "?", "!", ".", "\n", "can you", "please", "what is",
    "我", "修复", "吗", "直して", "corrige", "lösche", "ошибка", "고쳐", "İ", "ß", "\ud800", "\x01", "\x02", "\0", "’",
    "echo", "ping", "pwd", "&&", ">", "`", "/", "//", "://", "..", "*.", "C:\\", "the", "don't", "no need to", "I'll",
    "(", ")", "'", '"', "🙂", "\u200b", "-", "--force", "git", "rm -rf", "you need to", "let's", "help me", "@", ":",
)  # fmt: skip
HOSTILE = st.lists(st.sampled_from(FRAGMENTS), max_size=30).flatmap(
    lambda parts: st.sampled_from((" ", "", ", ", "\n")).map(lambda joint: joint.join(parts))
)


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


@pytest.mark.parametrize("seed", [1, 2])
def test_a_short_campaign_of_random_texts_and_the_rules_own_words_finds_nothing(seed: int) -> None:
    assert campaign(1_500, seed)["texts"] == 1_500


REPEATED = (
    "fix src/a.py ", "a", "```", "~~~ ```", "a/b/", "../", "http://", "can you ", "please fix it and ", "? ", "修复",
    "the the ", "delete all files, ", "(", "'", ". ", "é ", "corrige la ", "a.b.", "ошибка ", "\n", "`x` ", "don't ", "-",
    "this repo ", "i'm sure ", "x_y ", "* ", "ok ", "yes, ", "=" , "no need to ", "https://example.com/a ", "@a/b.c ",
)  # fmt: skip


GROWING = (
    *REPEATED,
    "const\n", "let's ", "let's just ", "let's help me ", "help me so ", "x please ", "so just ", "and help me ", "give x, ",
    "where is this repo ", "where is this repo\n", "let's #\n", "a#a the x and ", "agrega# el ", "修复代码诗", "исправь код стих ", "@\n",
    "the page is wrong. what is it? ", "we need a broker. which one? ", "ya lo arregle yo y ", "自分で直したので変更しないで", "不要改代码但",
    "habe ich nicht ", "je l'ai corrigé et ", "¿qué pasa? hola. ", "erklär mir, wie ",
)  # fmt: skip


def of(unit: str, length: int) -> str:
    """A unit as often as it goes into a length; where it has a #, each time with another number."""
    times = length // len(unit)
    return unit * times if "#" not in unit else "".join(unit.replace("#", f"q{turn}") for turn in range(times))


def steps(text: str) -> int:
    """How many steps of Python a decision takes: a count, so that a busy machine changes nothing."""
    counted = 0

    def count(frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal counted
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        counted += event == "opcode"
        return count

    classify(standard_rule_book(), text)  # what is compiled at first need is no step of a decision
    before = sys.gettrace()
    sys.settrace(count)
    try:
        classify(standard_rule_book(), text)
    finally:
        sys.settrace(before)
    return counted


@pytest.mark.parametrize("unit", GROWING)
def test_the_steps_grow_with_the_length_and_no_faster(unit: str) -> None:
    short, long = steps(of(unit, 1_280)), steps(of(unit, 5_120))
    assert long < 1.5 * 4 * short + 1_000, (short, long)  # a quadratic procedure takes 16 times as many


def seconds(text: str) -> float:
    begun = time.process_time()
    classify(standard_rule_book(), text)
    return time.process_time() - begun


def grows_with_its_length(unit: str) -> None:
    """The processor's time at twice the length, twice: that of expressions and searches too, the best of some looks each."""
    short, long = of(unit, 8_192), of(unit, 32_768)
    share, took = min(seconds(short) for _ in range(3)), min(seconds(long) for _ in range(2))
    for _ in range(6):  # the machine can only make a look longer, so that more of them come closer to the truth
        if took < 9 * share + 0.002:
            return
        share, took = min(share, seconds(short)), min(took, seconds(long))
    assert took < 9 * share + 0.002, (unit, share, took)  # 3 for each doubling; a quadratic procedure takes 4, so 16


@pytest.mark.parametrize("unit", GROWING)
def test_each_doubling_takes_no_more_than_three_times_as_long(unit: str) -> None:
    grows_with_its_length(unit)


ENGLISH = sorted(word for word in standard_rule_book().english.lexicon.flags if "\x01" not in word)
PIECES = st.sampled_from((*FRAGMENTS, *REPEATED, "x#", "DatePicker", "x_y()", "if x", "while (", "const", "git", "a.b"))
UNITS = st.lists(
    st.tuples(PIECES | st.sampled_from(ENGLISH), st.sampled_from(("\n", ". ", "? ", "; ", " ", ", ", ""))),
    min_size=1,
    max_size=3,
).map(lambda parts: "".join(itertools.chain.from_iterable(parts)))


@given(UNITS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_each_doubling_of_any_repetition_takes_no_more_than_three_times_as_long(unit: str) -> None:
    grows_with_its_length(unit)
