"""What failed rounds teach the next one: short sections, the oldest forgotten first."""

import re
from collections.abc import Sequence

from pointsman.services.pipeline.domain.enums import Severity

MAX_SECTION_CHARACTERS = 500
MAX_TOTAL_CHARACTERS = 3000
MAX_ROUNDS = 5
_HEADING = re.compile(r"^## Round ", re.MULTILINE)


def section(stage: str, failed_round: int, severity: Severity, hint: str, reports: Sequence[str]) -> str:
    """One round: the verdict, the stage, what was wrong, and the first name of the report that fits whole on a line."""
    lines = (
        f"## Round {failed_round}",
        f"- Verdict: FAIL ({severity})",
        f"- Failed stage: {stage}",
        f"- Key problem: {hint or 'not said; read the report'}",
        "- Report: ",
    )
    text = "\n".join(lines)
    room = MAX_SECTION_CHARACTERS - len(text)
    report = next((name for name in reports if name and name.isprintable() and len(name) <= room), "none")
    return (text + report)[:MAX_SECTION_CHARACTERS]


def with_section(rounds: Sequence[str], new: str) -> tuple[str, ...]:
    """The rounds with one more, whole rounds dropped from the oldest until they fit."""
    kept = [*rounds, new[:MAX_SECTION_CHARACTERS]][-MAX_ROUNDS:]
    while len(kept) > 1 and len(body(kept)) >= MAX_TOTAL_CHARACTERS:
        del kept[0]
    return tuple(kept)


def body(rounds: Sequence[str]) -> str:
    """All rounds as one text, oldest first."""
    return "\n\n".join(rounds)


def rounds_of(text: str) -> tuple[str, ...]:
    """The rounds of a text that was handed in; a text without headings is one round."""
    starts = [match.start() for match in _HEADING.finditer(text)] or [0]
    pieces = [text[start:end].strip() for start, end in zip(starts, [*starts[1:], len(text)], strict=True)]
    kept: tuple[str, ...] = ()
    for piece in pieces:
        if piece:
            kept = with_section(kept, piece)
    return kept
