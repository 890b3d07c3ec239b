"""What real agents print as JSON lines, read: samples of sessions with a scripted model are in tests/data/usage."""

from pathlib import Path

import pytest

from pointsman.profiles import profiles
from pointsman.usage.output import AgentOutput, formats
from pointsman.usage.prices import cost_micros, price_of, prices

SAMPLES = Path(__file__).parents[2] / "data" / "usage"
REAL = {
    "claude": ("claude-opus-5-5", 800),
    "codex": ("", None),
    "gemini": ("scripted", None),
    "opencode": ("", None),
}
"""The model that each sample names, and what it says that it cost; all used 120 tokens."""


def read(name: str, piece: int = 7) -> tuple[AgentOutput, bytes]:
    """A sample, read in small pieces as a pipe gives them."""
    shown = bytearray()
    output = AgentOutput(profiles()[name].output, shown.extend)
    body = (SAMPLES / f"{name}.jsonl").read_bytes()
    for start in range(0, len(body), piece):
        output.write(body[start : start + piece])
    output.close()
    return output, bytes(shown)


@pytest.mark.parametrize("name", REAL)
def test_tokens_model_and_cost_of_a_real_session_are_read(name: str) -> None:
    output, _ = read(name)
    used = output.used
    assert used is not None
    model, cost = REAL[name]
    assert (used.tokens, used.model, used.cost_micros) == (120, model, cost)
    assert (used.input_tokens, used.output_tokens) == (100, 20)
    assert used.unpriced_tokens == (0 if cost else 120), "a cost that nobody knows is unknown, never 0"


@pytest.mark.parametrize("name", REAL)
def test_people_see_the_agents_words_and_not_its_json(name: str) -> None:
    output, shown = read(name)
    assert output.said == b"Greeting\n"
    assert b"Greeting\n" in shown
    assert b'"type"' not in shown


def test_what_has_no_format_passes_as_it_is() -> None:
    shown = bytearray()
    output = AgentOutput("", shown.extend)
    output.write(b'hello\n{"type": "result"}')
    output.close()
    assert bytes(shown) == output.said == b'hello\n{"type": "result"}\n'
    assert output.used is None


@pytest.mark.parametrize("name", REAL)
def test_damaged_lines_are_no_obstacle_and_no_usage(name: str) -> None:
    body = (SAMPLES / f"{name}.jsonl").read_bytes()
    for cut in range(0, len(body), 97):
        output = AgentOutput(profiles()[name].output, lambda _chunk: None)
        output.write(
            body[:cut] + b"\xff\x00\n" + b'{"type": 7}\n[1]\n{"type": "result", "usage": {"input_tokens": -5}}\n'
        )
        output.close()
        assert output.used is None or output.used.tokens >= 0


def test_every_profile_names_a_format_that_is_known() -> None:
    assert {profile.output for profile in profiles().values()} - {""} == formats()


def test_a_model_has_the_price_of_its_longest_name_and_an_unknown_one_none() -> None:
    mini = price_of("openai/gpt-4o-mini-2024-07-18")
    assert mini is not None
    assert (mini.match, mini.output) == ("gpt-4o-mini", 0.60)
    assert cost_micros("gpt-4o", 1_000_000, 1_000_000) == 12_500_000
    assert cost_micros("gpt-4o", 0, 0, 1_000_000) == 10_000_000, "undivided: at the dearer of its two prices"
    assert cost_micros("somebody-elses-model", 1000, 0) is None
    assert all(price.as_of.year >= 2025 and price.input > 0 for price in prices())
