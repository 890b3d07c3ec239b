"""What became of trials, as tables."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

DECISIONS = ("accepted", "asked", "refused")


@dataclass(frozen=True)
class Row:
    """One trial and what became of it."""

    key: str
    ecosystem: str
    group: str
    name: str
    decision: str
    grade: str
    seconds: float
    bare_seconds: float
    told: list[str]
    without: dict[str, str] = field(default_factory=dict)


def tables(found: Sequence[Row]) -> Iterator[str]:
    """Figures by group, and by kind; then the time of true solutions in each ecosystem."""
    for group in dict.fromkeys(row.group for row in found):
        mine = [row for row in found if row.group == group]
        yield from ("", f"### {group[:1].upper()}{group[1:]}", "")
        yield from ("| kind | trials | accepted | asked | refused |", "|---|---|---|---|---|")
        for name in sorted({row.name for row in mine}):
            yield _row(name, [row for row in mine if row.name == name])
        yield _row("**all**", mine)
    yield ""
    for ecosystem in dict.fromkeys(row.ecosystem for row in found):
        timed = [
            row for row in found if row.ecosystem == ecosystem and row.name == "true solution" and row.bare_seconds
        ]
        whole, bare = sum(row.seconds for row in timed), sum(row.bare_seconds for row in timed)
        if timed:
            yield f"True solutions in {ecosystem}: {whole:.1f} s against {bare:.1f} s of the bare command, {len(timed)} proofs."


def defences(found: Sequence[Row]) -> Iterator[str]:
    """Mechanical cheats that would have been paid without each defence, the others being there."""
    rows = [row for row in found if row.group == "mechanical" and row.without]
    yield from ("", "### Each defence switched off", "", "| without | trials | accepted | asked | kinds accepted |")
    yield "|---|---|---|---|---|"
    for name in dict.fromkeys(name for row in rows for name in row.without):
        paid = [row for row in rows if row.without[name] == DECISIONS[0]]
        asked = sum(row.without[name] == DECISIONS[1] for row in rows)
        kinds = ", ".join(sorted({row.name for row in paid})[:8])
        yield f"| {name} | {len(rows)} | {len(paid)} | {asked} | {kinds} |"


def _row(name: str, rows: Sequence[Row]) -> str:
    count = Counter(row.decision for row in rows)
    grades = Counter(row.grade for row in rows if row.decision == DECISIONS[0])
    shown = ", ".join(f"{grade} {number}" for grade, number in sorted(grades.items()))
    accepted = f"{count[DECISIONS[0]]} ({shown})" if grades else "0"
    return f"| {name} | {len(rows)} | {accepted} | {count[DECISIONS[1]]} | {count[DECISIONS[2]]} |"
