"""Reflections on failed rounds: short sections of Markdown, the oldest dropped first."""

import re
from collections.abc import Sequence

from pointsman.services.pipeline.domain.enums import Severity

MAX_SECTION_CHARACTERS = 500
MAX_TOTAL_CHARACTERS = 3000
MAX_ROUNDS = 5
_HEADING = re.compile(r"^## Round ", re.MULTILINE)


def section(stage: str, failed_round: int, severity: Severity, hint: str, reports: Sequence[str]) -> str:
    """The section of one round: verdict, stage, problem, and the first report name that fits."""
    lines = (
        f"## Round {failed_round}",
        f"- Verdict: FAIL ({severity})",
        f"- Failed stage: {stage}",
        f"- Key problem: {hint or 'not said; read the report'}",
        "- Report: ",
    )
    text = "\n".join(lines)
    left = MAX_SECTION_CHARACTERS - len(text)
    report = next((name for name in reports if name and name.isprintable() and len(name) <= left), "none")
    return (text + report)[:MAX_SECTION_CHARACTERS]


def with_section(rounds: Sequence[str], new: str) -> tuple[str, ...]:
    """The rounds with a new one; the oldest are dropped until all fit."""
    result = [*rounds, new[:MAX_SECTION_CHARACTERS]][-MAX_ROUNDS:]
    while len(result) > 1 and len(body(result)) >= MAX_TOTAL_CHARACTERS:
        del result[0]
    return tuple(result)


def body(rounds: Sequence[str]) -> str:
    """All rounds as one text, oldest first."""
    return "\n\n".join(rounds)


def rounds_of(text: str) -> tuple[str, ...]:
    """The rounds of a given text; a text without headings is one round."""
    starts = [match.start() for match in _HEADING.finditer(text)] or [0]
    pieces = [text[start:end].strip() for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]
    result: tuple[str, ...] = ()
    for piece in pieces:
        if piece:
            result = with_section(result, piece)
    return result
