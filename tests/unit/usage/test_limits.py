"""Limits of providers, recognised in what real agents printed when a scripted server refused them (tests/data/limits)."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pointsman.profiles import profiles
from pointsman.usage.limits import LimitKind, limit_in
from pointsman.usage.output import AgentOutput

RECORDINGS = sorted((Path(__file__).parents[2] / "data" / "limits").glob("*.txt"))
NOW = datetime(2026, 11, 18, tzinfo=UTC)
SAYS_LESS = {"gptme-quota": "throttled"}
"""What it prints for a used-up quota is the status 429, as for too many requests; nobody could tell them apart."""
_ENDED = re.compile(r"\n\(asked \d+ times, exit: .*\)\n$")


def failures_in(recording: Path) -> list[str]:
    """The lines that the worker looks at: those that report a failure, and those that are no JSON."""
    name = recording.name.partition("-")[0]
    known = profiles().get(name)
    output = AgentOutput(known.output if known else "", lambda _chunk: None)
    output.write(_ENDED.sub("", recording.read_text()).encode())
    output.close()
    return output.failures


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.stem)
def test_what_a_real_agent_prints_at_a_limit_is_recognised(recording: Path) -> None:
    found = limit_in(failures_in(recording), NOW)
    assert found is not None
    assert found.kind == SAYS_LESS.get(recording.stem, recording.stem.partition("-")[2])


@pytest.mark.parametrize(
    ("line", "reset"),
    [
        ("Claude AI usage limit reached|1794967458", datetime.fromtimestamp(1794967458, UTC)),
        ('{"type":"usage_limit_reached","resets_in_seconds":7200}', NOW + timedelta(hours=2)),
        ("You will regain access on 2030-01-01 at 00:00 UTC. API usage limits", datetime(2030, 1, 1, tzinfo=UTC)),
        ("Rate limit reached for gpt-4o. Please try again in 20s.", NOW + timedelta(seconds=20)),
        ("429 Too Many Requests", None),
    ],
)
def test_the_time_of_the_reset_is_read_where_it_is_said(line: str, reset: datetime | None) -> None:
    found = limit_in(["something else", line], NOW)
    assert found is not None
    assert found.reset_at == reset


@pytest.mark.parametrize(
    "line",
    [
        "AssertionError: 430 != 431", "it ended with exit code 1", "connection refused", "invalid api key (401)",
        "error: unknown option '--json'", "context length exceeded: 200001 tokens", "model not found (404)",
    ],
)  # fmt: skip
def test_other_failures_are_no_limit(line: str) -> None:
    assert limit_in([line], NOW) is None


def test_what_a_model_or_a_tool_says_is_not_taken_for_a_limit() -> None:
    """An agent that would like its failures not to count cannot say them away."""
    output = AgentOutput("codex-json", lambda _chunk: None)
    said = '{"type":"item.completed","item":{"type":"agent_message","text":"429 Too Many Requests, usage limit reached"}}\n'
    output.write(said.encode() + b'{"type":"turn.failed","error":{"message":"the model stopped"}}\n')
    assert limit_in(output.failures, NOW) is None


def test_the_last_failure_decides() -> None:
    lines = ["429 Too Many Requests", "529 Overloaded"]
    found = limit_in(lines, NOW)
    assert found is not None
    assert found.kind is LimitKind.OVERLOADED
